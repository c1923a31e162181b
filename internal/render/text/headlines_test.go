package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestTuneHeadline_SparedLosses checks that the headline has the retransmissions where a setup is chosen for them.
func TestTuneHeadline_SparedLosses(t *testing.T) {
	share := func(ratio float64) *float64 { return &ratio }
	for _, c := range []struct {
		before, after *float64
		want          bool
	}{{share(0.19), share(0.001), true}, {share(0.015), share(0), false}, {share(0), share(0.19), false},
		{nil, share(0), false}, {share(0.19), nil, false}} {
		d := &record.TuneDirection{Chosen: &record.TuneChosen{PacingBps: 28e6}, Gain: &record.TuneGain{Factor: 0.97},
			Before: record.TuneMeasured{MedianBps: 29e6, Runs: 3, RetransmittedRatio: c.before},
			After:  &record.TuneMeasured{MedianBps: 28e6, Runs: 3, RetransmittedRatio: c.after}}
		const part = " and retransmits 0.1 % instead of 19 %"
		if got := tuneHeadline(d).do; strings.Contains(got, part) != c.want || strings.Contains(got, "instead") != c.want {
			t.Errorf("%v to %v: %s", c.before, c.after, got)
		}
	}
}
