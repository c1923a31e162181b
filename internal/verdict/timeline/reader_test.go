package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// The line needs up to two thirds of the interval to deliver a piece, and the reader limits. A tap at the receiver
// estimates the data in flight: one case in ten may stay mixed there.
func TestJudge_SlowReader(t *testing.T) {
	mixed, far := 0, 0
	for _, r := range []transfer{
		{window: 200_000, read: 32 << 10, scale: 7}, {window: 200_000, read: 32 << 10, scale: 3},
		{window: 200_000, read: 16 << 10, scale: 7}, {window: 400_000, read: 64 << 10, scale: 4},
		{window: 200_000, read: 100_000, scale: 7},
	} {
		r.ackEvery = 2
		r.delayedAck = 40 * ms
		r.bytes = 120 * r.read
		for _, rtt := range []int64{1, 5, 20, 40} {
			for _, segment := range []int64{12_000, 120_000, 1_200_000} { // nanoseconds of the line
				for _, busy := range []int64{20, 45, 65} { // per cent of the interval, of the line
					for _, tap := range []int64{0, rtt*ms - 50_000} {
						r.rtt = rtt * ms
						r.loop = tap
						r.bps = 1500 * 8e9 / float64(segment)
						r.readEvery = max(int64(r.read/1460)*segment*100/busy, r.rtt*3/2)
						g, _, _ := r.play(t)
						if tap > 0 {
							far++
						}
						if tap > 0 && g.Limiter == verdict.Mixed {
							mixed++
						} else if g.Limiter != verdict.ReceiverApplication {
							t.Errorf("%+v: %s %s %v", r, g.Confidence, g.Limiter, g.Shares)
						}
					}
				}
			}
		}
	}
	if 10*mixed > far {
		t.Errorf("%d of %d cases at the receiver are mixed", mixed, far)
	}
}

// ReaderPaced is a part of the whole time, which lost SYNs are part of.
func TestReaderPaced_ShareOfTheWholeTime(t *testing.T) {
	x := timeline{length: 1, c: &flow.Connection{SYNWait: 1e9}, d: &flow.Direction{ReaderPaced: 5e8},
		time: map[verdict.Name]float64{verdict.Congestion: 1, verdict.Sender: 0.8, verdict.ReceiverApplication: 0.2}}
	if got := x.shares()[verdict.ReceiverApplication]; got != 0.1+0.25 {
		t.Errorf("receiver-application %g, want 0.35", got)
	}
}
