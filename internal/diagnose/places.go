package diagnose

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Copies returns a note for each file that has only packets of another one. Its Words are both names.
func Copies(a *capture.Analysis) (notes []verdict.Note) {
	for _, s := range a.Shared {
		if s.IsCopy {
			notes = append(notes, verdict.Note{Code: verdict.FileTwice, Words: []string{s.Second, s.First}})
		}
	}
	return notes
}

// MayBeTwoPlaces returns two files that have the same segments at different times, nil for none. Parts of one capture
// do too where data without timestamps was retransmitted after the first part's end: TwoPlaces distinguishes them.
func MayBeTwoPlaces(a *capture.Analysis) *capture.Shared {
	for i := range a.Shared {
		s := &a.Shared[i]
		if s.Segments >= int(threshold.AlignedSegments.Value) && s.SameTime <= s.Segments/2 {
			return s
		}
	}
	return nil
}

// TwoPlaces reports whether two captures are of the same connections at two places. They need Passes.
func TwoPlaces(s *capture.Shared, near, far *capture.Analysis) bool {
	if s.Stamped >= int(threshold.AlignedSegments.Value) {
		return true
	}
	known := newTwins(far.Connections)
	return slices.ContainsFunc(near.Connections, func(c *flow.Connection) bool {
		w := known.find(c)
		if w == nil {
			return false
		}
		_, aligned := align(c, w)
		return aligned
	})
}
