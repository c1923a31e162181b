package timeline

import (
	"math/rand/v2"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_LossesOfRequests checks that lost requests, each less than a segment and repeated by a timer, are not taken
// for a congestion window or a full link, at any tap.
func TestJudge_LossesOfRequests(t *testing.T) {
	for seed, test := range []struct {
		request, response int
		rtt               int64
		loss              float64
	}{{200, 400, 6 * ms, 0.04}, {30, 1000, 40 * ms, 0.1}, {900, 20, ms, 0.02}, {1000, 1000, 15 * ms, 0.3}} {
		for _, percent := range []int64{1, 50, 99} { // the loop's part of the round trip
			r := rand.New(rand.NewPCG(8, uint64(seed)))
			loop := test.rtt * percent / 100
			x := newTape(test.rtt, loop)
			at := 2 * test.rtt
			for i := range 150 {
				pos := i * test.request
				for r.Float64() < test.loss { // behind the tap
					x.data(at, pos, test.request, 0)
					at += 210 * ms
				}
				x.data(at, pos, test.request, 0)
				x.ack(at+test.rtt-loop+200_000, pos+test.request, 64<<10)
				x.all[len(x.all)-1].Payload = uint32(test.response)
				x.all[len(x.all)-1].Seq += uint32(i * test.response)
				for k := range x.all {
					if x.all[k].Payload > 0 && x.all[k].At >= at && x.all[k].Src == clientEnd {
						x.all[k].Ack = 5000 + uint32(i*test.response)
					}
				}
				at += test.rtt + 300_000
			}
			g, _ := x.judge(t)
			if g.Limiter != verdict.Application || g.Shares[verdict.Congestion]+g.Shares[verdict.Bottleneck] > 0 {
				t.Errorf("%+v, tap at %d %%: %s %s %v", test, percent, g.Confidence, g.Limiter, g.Shares)
			}
		}
	}
}
