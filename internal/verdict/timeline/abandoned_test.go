package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_AbandonedRepair checks a sender that stops retransmitting: the silence until the connection ends is the
// sender's, and unacknowledged data is no goodput. A sender that retransmits did not stop.
func TestJudge_AbandonedRepair(t *testing.T) {
	for _, test := range []struct {
		name               string
		repeats, acked, at bool // retransmits the hole; it arrives; the tap is at the sender
		silence            int64
		want               bool
	}{
		{"stops", false, false, true, 12_000 * ms, true},
		{"stops for longer", false, false, true, 44_000 * ms, true},
		{"ends at once", false, false, true, 300 * ms, false},
		{"at the receiver", false, false, false, 12_000 * ms, false},
		{"repairs", true, true, true, 12_000 * ms, false},
		{"in vain", true, false, true, 12_000 * ms, false},
	} {
		const rtt = 24 * ms
		loop := int64(0)
		if !test.at {
			loop = rtt
		}
		x := newTape(rtt, loop)
		at, pos := 2*rtt, 0
		for range 120 {
			x.data(at, pos, 1460, 0)
			pos += 1460
			x.ack(at+rtt-loop+ms/10, pos, 1<<20)
			at += 2 * ms
		}
		hole := pos
		for k := range 20 { // the first of these is lost
			if k > 0 || test.at {
				x.data(at, pos, 1460, 0)
			}
			pos += 1460
			if k > 0 {
				x.ack(at+rtt-loop+ms/10, hole, 1<<20)
			}
			at += 2 * ms
		}
		at += rtt
		if test.repeats {
			for wait := 250 * ms; wait < test.silence; wait *= 2 {
				x.data(at+wait, hole, 1460, 0)
				if test.acked {
					x.ack(at+wait+rtt, pos, 1<<20)
					break
				}
			}
		}
		x.all = append(x.all, flow.Segment{At: at + test.silence, Src: clientEnd, Dst: serverEnd, Seq: 1000 + uint32(pos),
			Ack: 5000, Flags: flow.RST | flow.ACK})
		g, d := x.judge(t)
		if got := has(&g, verdict.CapturedAbandoned); got != test.want {
			t.Errorf("%s: %s %s %v %v", test.name, g.Confidence, g.Limiter, g.Shares, g.Evidence)
			continue
		}
		if !test.want {
			continue
		}
		goodput := float64(hole) * 8e9 / float64(d.Last-d.First)
		if g.Limiter != verdict.Sender || g.Confidence != verdict.High || g.GoodputBps < 0.99*goodput ||
			g.GoodputBps > 1.01*goodput || float64(d.Last-d.First) < float64(test.silence) {
			t.Errorf("%s: %s %s at %.0f bit/s, %v", test.name, g.Confidence, g.Limiter, g.GoodputBps, g.Shares)
		}
	}
}
