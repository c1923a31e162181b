package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_LossBehindTheTap checks losses by their place: at a tap at the receiver, data that is retransmitted
// although it had passed the tap was lost in the receiving host, unless a DSACK reports it as received. A wrong
// checksum explains the loss.
func TestJudge_LossBehindTheTap(t *testing.T) {
	for _, test := range []struct {
		name                           string
		atReceiver, passes, dsack, bad bool
		allBad                         bool // the capturing host left all checksums to its device
		want                           string
	}{
		{name: "lost before the tap", atReceiver: true},
		{name: "lost behind the tap", atReceiver: true, passes: true, want: verdict.ReceiverDrops},
		{name: "tap at the sender", passes: true},
		{name: "received twice", atReceiver: true, passes: true, dsack: true},
		{name: "damaged", atReceiver: true, passes: true, bad: true, want: verdict.Damaged},
		{name: "checksums left to the device", atReceiver: true, passes: true, bad: true, allBad: true,
			want: verdict.ReceiverDrops},
	} {
		for _, rtt := range []int64{16 * ms, 45 * ms} {
			loop := int64(0)
			if test.atReceiver {
				loop = rtt
			}
			x := newTape(rtt, loop)
			const window = 24
			pos, at, beyond := 0, 2*rtt, rtt-loop+ms/10
			for round := range 90 {
				lost := -1
				if round%7 == 5 {
					lost = window / 3
				}
				hole := pos + lost*1460
				for k := range window {
					when := at + int64(k)*60_000
					if k != lost || test.passes {
						x.data(when, pos, 1460, 0)
						if last := &x.all[len(x.all)-1]; test.bad && (k == lost || test.allBad) {
							last.Options |= flow.BadChecksum
						}
					}
					pos += 1460
					acked := pos
					if lost >= 0 && k >= lost {
						acked = hole
					}
					x.ack(when+beyond, acked, 4<<20)
				}
				if lost >= 0 {
					at += rtt + ms
					x.data(at, hole, 1460, 0)
					x.ack(at+beyond, pos, 4<<20)
					if last := &x.all[len(x.all)-1]; test.dsack {
						last.SACKs = 1
						last.SACK[0] = [2]uint32{1000 + uint32(hole), 1000 + uint32(hole+1460)}
					}
				}
				at += rtt + ms
			}
			g, d := x.judge(t)
			if g.Subtype != test.want || test.want != "" && g.Limiter != verdict.Congestion ||
				has(&g, verdict.CapturedDamaged) != (test.want == verdict.Damaged) {
				t.Errorf("%s, round trip %d ms: %s %s (%s) %v, %d damaged, %d of %d bytes had passed", test.name, rtt/ms,
					g.Confidence, g.Limiter, g.Subtype, g.Shares, d.Damaged, d.Repeated, d.Repeated+d.Replaced)
			}
		}
	}
}
