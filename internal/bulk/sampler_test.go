package bulk

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestSampler_FirstStreamEndsEarly checks that the samples of the other streams are thinned too.
func TestSampler_FirstStreamEndsEarly(t *testing.T) {
	s := newSampler(clock{}, make([]*loop, 3), true, nil)
	for n := range 3 * s.most() {
		s.thin()
		for i := 1; i < len(s.series); i++ {
			s.series[i] = append(s.series[i], transfer.Sample{At: time.Duration(n)})
		}
		if got := len(s.series[1]); got > s.most() {
			t.Fatalf("%d samples of a stream, at most %d are kept", got, s.most())
		}
	}
	if s.stretch < 2 {
		t.Errorf("the interval grew by %d", s.stretch)
	}
}
