package datagram

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Arrivals counts a flow as its receiver sees it, by iperf3's rules: a gap in the sequence
// numbers is so many lost, a late datagram gives one back.
type Arrivals struct {
	Datagrams  int64
	Bytes      int64
	Highest    uint64 // the largest sequence number seen: datagrams that were sent, as far as is known
	Lost       int64
	Reordered  int64
	Duplicates int64
	Jitter     time.Duration // RFC 1889 A.8: the mean deviation, smoothed by 1/16

	// LeastDelay and the delays are receiver's clock less sender's: only their
	// differences mean anything.
	LeastDelay time.Duration
	lastDelay  time.Duration
	seen       [seenWords]uint64 // a ring of bits below Highest, to tell late from twice
}

const seenWords = 64 // 4096 datagrams back

// Add counts one datagram of size bytes that arrived at the receiver's time now. It
// answers the datagram's delay above the least one so far.
func (a *Arrivals) Add(h Header, size int, now time.Duration) time.Duration {
	a.Datagrams++
	a.Bytes += int64(size)
	delay := now - h.Sent
	if a.Datagrams == 1 {
		a.LeastDelay = delay
		a.lastDelay = delay
	}
	a.LeastDelay = min(a.LeastDelay, delay)
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
	return delay - a.LeastDelay
}

// delaySample keeps a fair sample of a flow's delays, of bounded size.
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

// Variation is the distribution above the least delay; nil for no flow that received.
func (f *Flows) Variation() *transfer.Variation {
	var all []time.Duration
	for _, one := range f.All {
		for _, delay := range one.delays.kept {
			all = append(all, delay-one.Arrivals.LeastDelay)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	at := func(q float64) time.Duration { return all[int(q*float64(len(all)-1))] }
	return &transfer.Variation{Median: at(0.5), P95: at(0.95), P99: at(0.99), Largest: at(1)}
}
