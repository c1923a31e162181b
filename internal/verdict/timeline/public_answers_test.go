package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// A middlebox acknowledges the first message to the sender itself, far sooner than the sender
// could, which is a round trip away and fills the window in each.
func TestMiddleboxAcknowledges(t *testing.T) {
	const rtt = 22 * ms
	x := newTape(rtt, rtt)
	says := func(at, answered int64, message int) {
		x.says(at, message, 0, 64<<10)
		x.all = append(x.all, flow.Segment{At: at + answered, Src: clientEnd, Dst: serverEnd, Seq: 1000,
			Ack: 5040 + uint32(message)*40, Flags: flow.ACK, Window: 9490})
	}
	says(30*ms, 1_400_000, 0)
	says(60*ms, rtt+100_000, 1)
	says(100*ms, rtt+300_000, 2)
	pos, at := 0, 150*ms
	for range 60 {
		for k := range int64(44) {
			x.data(at+k*20_000, pos, 1460, 0)
			pos += 1460
			x.ack(at+k*20_000+10_000, pos, 64<<10)
		}
		at += rtt + 500_000
	}
	if g, d := x.judge(t); g.Limiter != verdict.ReceiverWindow || g.Vantage != AtReceiver || d.RTTMin < 20*ms {
		t.Errorf("%s %s %v, tap at the %s, round trip %d µs", g.Confidence, g.Limiter, g.Shares, g.Vantage, d.RTTMin/1000)
	}
}

// Losses before a tap at the receiver: each is repaired after a timeout, and data that had arrived is retransmitted,
// which the tap sees and the receiver reports as well.
func TestNeedlessAndNeeded(t *testing.T) {
	const rtt = 3 * ms
	x := newTape(rtt, rtt)
	pos, at := 0, 20*ms
	for range 20 {
		for k := range 2 {
			x.data(at+int64(k)*10_000, pos, 1460, 0)
			pos += 1460
			x.ack(at+int64(k)*10_000+30_000, pos, 64<<10)
		}
		x.data(at+40_000, pos+1460, 1460, 0)
		x.ack(at+60_000, pos, 64<<10)
		at += 210 * ms
		x.data(at, pos, 1460, 0)
		pos += 2 * 1460
		x.ack(at+20_000, pos, 64<<10)
		x.data(at+rtt, pos-1460, 1460, 0)
		x.ack(at+rtt+20_000, pos, 64<<10)
		last := &x.all[len(x.all)-1]
		last.SACKs, last.SACK[0] = 1, [2]uint32{1000 + uint32(pos-1460), 1000 + uint32(pos)}
		at += 2 * rtt
	}
	g, d := x.judge(t)
	if d.Spurious != 20 || d.Retransmitted != 40 {
		t.Errorf("%d of %d needless", d.Spurious, d.Retransmitted)
	}
	if g.Limiter != verdict.Congestion {
		t.Errorf("%s %s %v", g.Confidence, g.Limiter, g.Shares)
	}
}

// Acknowledgements are lost beyond a tap at the receiver: data that had arrived is retransmitted after a timeout, and
// until then nothing seems to be outstanding.
func TestAcknowledgementsLostBeyondTheTap(t *testing.T) {
	const rtt = 3 * ms
	x := newTape(rtt, rtt)
	pos, at := 0, 20*ms
	for i := range 20 {
		for k := range int64(4) {
			x.data(at+k*10_000, pos, 1460, 0)
			pos += 1460
			x.ack(at+k*10_000+5_000, pos, 64<<10)
		}
		at += 210 * ms << (i % 3)
		x.data(at, pos-1460, 1460, 0)
		x.ack(at+5_000, pos, 64<<10)
		at += rtt + 200_000
	}
	g, d := x.judge(t)
	if g.Limiter != verdict.Congestion || d.Timeouts < 19 {
		t.Errorf("%s %s %v, %d timeouts", g.Confidence, g.Limiter, g.Shares, d.Timeouts)
	}
}
