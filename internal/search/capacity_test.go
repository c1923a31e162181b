package search

import (
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// climb runs a search on a link with a rate in bit/s and a queue as a time, for a
// sender that sends at most fastest.
func climb(link, fastest, stray float64, queue time.Duration) (best float64, atLeast bool, trials int) {
	var c Capacity
	for {
		bps, done := c.Next()
		if done {
			best, atLeast = c.Best()
			return best, atLeast, trials
		}
		trials++
		t := CapacityTrial{OfferedBps: bps, SentBps: min(bps, fastest)}
		t.ReceivedBps = min(t.SentBps*(1-stray), link)
		t.LossRatio = 1 - t.ReceivedBps/t.SentBps
		if t.SentBps > link {
			t.Variation = units.Duration(queue)
		}
		c.Observe(t)
	}
}

func TestCapacity(t *testing.T) {
	for name, c := range map[string]struct {
		link, fastest, stray float64
		queue                time.Duration
		atLeast              bool
	}{
		"20 Mbit/s":                   {20e6, 1e10, 0, 10 * time.Millisecond, false},
		"64 kbit/s":                   {64e3, 1e10, 0, time.Second, false},
		"a deep queue":                {20e6, 1e10, 0, time.Second, false},
		"1 Gbit/s":                    {1e9, 1e10, 0, time.Millisecond, false},
		"a rare loss":                 {100e6, 1e10, 1e-4, time.Millisecond, false},
		"a sender slower than a link": {1e12, 2e9, 0, 0, true},
	} {
		best, atLeast, trials := climb(c.link, c.fastest, c.stray, c.queue)
		want := min(c.link, c.fastest)
		if math.Abs(best-want) > 0.03*want || atLeast != c.atLeast || trials > capacityTrials {
			t.Errorf("%s: %.4g bit/s, at least %v, after %d trials; want %.4g", name, best, atLeast, trials, want)
		}
	}
	// A path that loses at every rate ends too.
	if best, _, trials := climb(1e9, 1e10, 0.05, 0); trials > capacityTrials || best <= 0 {
		t.Errorf("a lossy path: %.4g after %d trials", best, trials)
	}
}
