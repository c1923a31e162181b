package live

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// A sender whose buffer is full gathers what it may still hold into larger segments: that
// waits in no queue. A shaper's queue keeps much more waiting.
func TestGatheredSegmentsWaitInNoQueue(t *testing.T) {
	c := &connection{mss: 1448}
	for _, v := range []struct {
		inFlight, notSent int64
		waits             bool
	}{
		{147840, 4096, false}, {147840, 12288, false}, {147840, 16000, true}, {20000, 2000, false}, {20000, 44000, true},
		{0, 2896, true},
	} {
		s := transfer.Sample{Have: transfer.HaveSendWnd, InFlight: v.inFlight, NotSent: v.notSent, Cwnd: 411720,
			SendWnd: 191000}
		if got := c.waits(&s, threshold.OpenWindow); got != v.waits {
			t.Errorf("%d in flight, %d unsent: waits is %v", v.inFlight, v.notSent, got)
		}
	}
}
