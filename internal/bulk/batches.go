package bulk

import "time"

// A receiver that takes more than batchRate waits for batchBytes instead of each packet: waking it for one costs the
// sender's core more than the packet itself. Where a batch takes longer than batchWait, it waits for each packet again.
const (
	batchRate  = 1e9 // bytes per second; of the 10 Gbit/s and more of a fast network or a loopback
	batchBytes = 1 << 20
	batchWait  = 2 * time.Millisecond
	batchLook  = 10 * time.Millisecond // over which the rate is measured
)

// batches decides for what one receiver waits.
type batches struct {
	set   func(bytes int, rate float64) bool // socket.Stream.Batch; nil: always for the next packet
	on    bool
	since time.Duration // on the clock
	bytes int           // taken since then
}

// timeout returns how long the receiver waits at most.
func (b *batches) timeout(left time.Duration) time.Duration {
	if b.on {
		return min(left, batchWait)
	}
	return left
}

// took counts the n bytes of a read at a time; waited says whether it followed a wait.
func (b *batches) took(n int, waited bool, now time.Duration) {
	if b.set == nil {
		return
	}
	if b.on && waited && n < batchBytes {
		b.on = !b.set(1, 0)
		b.since = now
		b.bytes = 0
	}
	b.bytes += n
	span := now - b.since
	if b.on || span < batchLook {
		return
	}
	rate := float64(b.bytes) / span.Seconds()
	b.on = rate > batchRate && b.set(batchBytes, rate)
	b.since = now
	b.bytes = 0
}
