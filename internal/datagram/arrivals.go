package datagram

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Arrivals has a flow's receive counts by iperf3's rules: a gap in the sequence numbers counts as lost, a late
// datagram reduces the loss.
type Arrivals struct {
	Datagrams  int64
	Bytes      int64
	Highest    uint64 // highest sequence number, the sent datagrams as far as known
	Lost       int64
	Reordered  int64
	Duplicates int64
	Jitter     time.Duration // RFC 1889 A.8: the mean deviation, smoothed by 1/16

	// MinDelay and the delays are receiver's clock less sender's. Only their differences are meaningful.
	MinDelay  time.Duration
	lastDelay time.Duration
	seen      [seenWords]uint64 // a ring of bits below Highest, to detect duplicates
}

const seenWords = 64 // 4096 datagrams

// Add counts a datagram of size bytes that arrived at now. It returns its delay above MinDelay.
func (a *Arrivals) Add(h Header, size int, now time.Duration) time.Duration {
	a.Datagrams++
	a.Bytes += int64(size)
	delay := now - h.Sent
	if a.Datagrams == 1 {
		a.MinDelay = delay
		a.lastDelay = delay
	}
	a.MinDelay = min(a.MinDelay, delay)
	a.Jitter += ((delay - a.lastDelay).Abs() - a.Jitter) / 16
	a.lastDelay = delay

	const window = seenWords * 64
	switch {
	case h.Sequence > a.Highest:
		gap := h.Sequence - a.Highest
		if gap >= window {
			a.seen = [seenWords]uint64{}
		} else {
			for c := a.Highest + 1; c < h.Sequence; c++ {
				a.seen[c/64%seenWords] &^= 1 << (c % 64)
			}
		}
		a.Lost += int64(min(gap-1, 1<<62))
		a.Highest = h.Sequence
	case a.Highest-h.Sequence < window && a.seen[h.Sequence/64%seenWords]&(1<<(h.Sequence%64)) != 0:
		a.Duplicates++
	default:
		a.Reordered++
		a.Lost = max(0, a.Lost-1)
	}
	a.seen[h.Sequence/64%seenWords] |= 1 << (h.Sequence % 64)
	return delay - a.MinDelay
}

// delaySample is a uniform random sample of a flow's delays, with a limited size.
type delaySample struct {
	kept []time.Duration
	seen int
}

const keptDelays = 8192

func (d *delaySample) add(delay time.Duration) {
	d.seen++
	if len(d.kept) < keptDelays {
		if d.kept == nil {
			d.kept = make([]time.Duration, 0, keptDelays)
		}
		d.kept = append(d.kept, delay)
	} else if i := rand.IntN(d.seen); i < keptDelays {
		d.kept[i] = delay
	}
}

// Variation returns the distribution of delays above the minimum, nil without arrivals.
func (f *Flows) Variation() *transfer.Variation {
	var all []time.Duration
	for _, one := range f.All {
		for _, delay := range one.delays.kept {
			all = append(all, delay-one.Arrivals.MinDelay)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))] }
	return &transfer.Variation{Median: at(0.5), P95: at(0.95), P99: at(0.99), Largest: at(1)}
}

// datagramsOf returns the datagrams of dropped batches by the mean size of those that arrived.
func datagramsOf(dropped, arrived, batches int64) int64 {
	if batches == 0 {
		return dropped
	}
	return int64(float64(dropped)*float64(arrived)/float64(batches) + 0.5)
}

// receiveCounted receives, and counts the drops of the socket meanwhile.
func (f *Flows) receiveCounted(one *Flow) error {
	before, known := one.Socket.Drops()
	err := f.receive(one)
	after, _ := one.Socket.Drops()
	if known {
		one.SocketDrops = new(datagramsOf(after-before, one.Arrivals.Datagrams, one.batches))
	}
	return err
}
