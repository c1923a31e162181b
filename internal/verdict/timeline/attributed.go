package timeline

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// attributed is what a slice's time was given to, seconds.
type attributed []struct {
	name verdict.Name
	took float64
}

func (s *attributed) add(n verdict.Name, took float64) {
	for i := range *s {
		if one := &(*s)[i]; one.name == n {
			one.took += took
			return
		}
	}
	*s = append(*s, struct {
		name verdict.Name
		took float64
	}{n, took})
}

// most is what got most of it; of equals the first in the order of Names.
func (s attributed) most() verdict.Name {
	best := verdict.Unknown
	most := 0.0
	for _, one := range s {
		earlier := slices.Index(verdict.Names(), one.name) < slices.Index(verdict.Names(), best)
		if one.took > most || one.took == most && earlier {
			best = one.name
			most = one.took
		}
	}
	return best
}

func joined(bands []Band) []Band {
	return slices.CompactFunc(extended(bands), func(a, b Band) bool { return a.Limiter == b.Limiter })
}

// extended moves the end of each band to the end of the last adjacent band with the same limiter.
func extended(bands []Band) []Band {
	for i := len(bands) - 2; i >= 0; i-- {
		if bands[i].Limiter == bands[i+1].Limiter {
			bands[i].End = bands[i+1].End
		}
	}
	return bands
}

// activeTime is a slice's length without the sender's pauses, seconds.
func activeTime(s *flow.Slice) float64 {
	return float64(s.End-s.Start-s.Clock[flow.Idle]-s.Clock[flow.NagleWait]-s.Clock[flow.AckTimer]) / 1e9
}
