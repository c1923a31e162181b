package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// A queue marks a segment now and then, long before the link is full: the congestion window falls by 30 % and grows by
// a segment each round trip. Without marks, a window that does the same is the sender's own.
func TestMarksHoldTheWindow(t *testing.T) {
	const counted = flow.AE | flow.CWR | flow.ECE
	for _, c := range []struct {
		name        string
		syn, synAck flow.Flags
		limiter     verdict.Name
	}{
		{"asked", flow.ECE | flow.CWR, flow.ECE, verdict.Congestion},
		{"counted", counted, flow.CWR, verdict.Congestion},
		{"without ECN", 0, 0, verdict.Sender},
	} {
		for _, loop := range []int64{0, 30 * ms} {
			x := newTape(30*ms, loop)
			x.all[0].Flags |= c.syn
			x.all[1].Flags |= c.synAck
			pos, window := 0, 20
			counter := []flow.Flags{flow.AE | flow.ECE, flow.AE | flow.CWR, counted, 0, flow.ECE, flow.CWR}
			marks := 0
			for round := range 200 {
				at := 100*ms + int64(round)*31*ms
				echo := flow.Flags(0)
				if c.syn == counted {
					echo = counter[marks%len(counter)]
				}
				if round%8 == 7 {
					marks++
					if c.syn == flow.ECE|flow.CWR {
						echo = flow.ECE
					}
				}
				for k := range window {
					x.data(at+int64(k)*200_000, pos, 1460, 0)
					pos += 1460
					x.ack(at+int64(k)*200_000+30*ms-loop+1000, pos, 3_000_000)
					x.all[len(x.all)-1].Flags |= echo
				}
				window++
				if round%8 == 7 {
					window = max(window*7/10, 14)
				}
			}
			g, d := x.judge(t)
			if g.Limiter != c.limiter {
				t.Errorf("%s, loop %d: %s %s %v, %d marks", c.name, loop, g.Confidence, g.Limiter, g.Shares, d.Marks)
			}
			if marked := g.Subtype == verdict.Marked && has(&g, verdict.CapturedMarks); marked != (c.syn != 0) {
				t.Errorf("%s, loop %d: %q, %v", c.name, loop, g.Subtype, g.Evidence)
			}
		}
	}
}
