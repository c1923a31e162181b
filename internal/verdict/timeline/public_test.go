package timeline

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Public captures taught these; each tape has the mechanism, not the capture.

// A slow start that goes on for long after the link is full: only its queue grows.
func TestSlowStartIntoAQueue(t *testing.T) {
	const rtt, spacing = 5 * ms, 100_000 // 120 Mbit/s, and 50 segments fill the path
	x := newTape(rtt, 0)
	sent, leaves := 0, int64(10*ms)
	send := func(at int64) {
		x.data(at, sent*1460, 1460, 0)
		leaves = max(leaves+spacing, at+spacing)
		sent++
		x.ack(leaves+rtt, sent*1460, 4<<20)
	}
	for range 10 {
		send(10 * ms)
	}
	for acked := 3; acked < len(x.all) && sent < 1000; acked++ { // each acknowledgement lets two segments out
		if a := x.all[acked]; a.Src == serverEnd {
			send(a.At)
			send(a.At)
		}
	}
	if g, _ := x.judge(t); g.Limiter == verdict.SlowStart || g.Shares[verdict.Bottleneck] < 0.5 {
		t.Errorf("%s %s %v", g.Confidence, g.Limiter, g.Shares)
	}
}

// The receiver acknowledges data that it cannot use, and then no more: it went away after that.
func TestSilentAfterDuplicates(t *testing.T) {
	x := newTape(70*ms, 70*ms)
	pos, at := 0, 100*ms
	for range 100 {
		x.data(at, pos, 1460, 0)
		pos += 1460
		x.ack(at+200_000, pos, 64<<10)
		at += ms
	}
	for k := range 30 {
		x.data(at+int64(k)*ms, pos+(k+1)*1460, 1460, 0)
		x.ack(at+int64(k)*ms+200_000, pos, 64<<10)
	}
	at += 30 * ms
	for wait := 300 * ms; wait < 30_000*ms; wait *= 2 {
		at += wait
		x.data(at, pos, 1460, 0)
	}
	if g, _ := x.judge(t); g.Limiter != verdict.Unknown || !has(&g, verdict.CapturedSilent) {
		t.Errorf("%s %s %v, %v", g.Confidence, g.Limiter, g.Shares, g.Evidence)
	}
}

// A sender that goes on beyond a window that had closed proves nothing of how far it is away.
func TestBeyondTheWindow(t *testing.T) {
	const rtt = 70 * ms
	x := newTape(rtt, rtt)
	pos, at, right := 0, 100*ms, 2_000_000
	for range 40 { // rounds of 40 segments; the right edge of the window stays where it is
		for k := range 40 {
			x.data(at+int64(k)*10_000, pos, 1460, 0)
			pos += 1460
			x.ack(at+int64(k)*10_000+5_000, min(pos, right), max(right-pos, 0))
		}
		at += rtt
	}
	x.ack(at+ms, right, 3_000_000-right)
	x.data(at+2*ms, pos, 1460, 0)
	g, d := x.judge(t)
	if d.Beyond == 0 || g.Vantage != AtReceiver || d.RTTMin < rtt-ms {
		t.Errorf("%d bytes beyond the window, tap %s, round trip %d µs", d.Beyond, g.Vantage, d.RTTMin/1000)
	}
}

// A filter let one segment of five through, and hardly any acknowledgement.
func TestMostIsNotCaptured(t *testing.T) {
	x := newTape(30*ms, 30*ms)
	for i := range 300 {
		x.data(50*ms+int64(i)*20*ms, i*5*1460, 1460, 0)
		if i < 10 {
			x.ack(51*ms+int64(i)*20*ms, i*5*1460+1460, 64<<10)
		}
	}
	g, d := x.judge(t)
	if g.Limiter != verdict.Unknown || !has(&g, verdict.CapturedGaps) || d.Missing < d.Bytes/2 {
		t.Errorf("%s %s %v, %d of %d bytes missing", g.Confidence, g.Limiter, g.Shares, d.Missing, d.Bytes)
	}
}

// A short transfer whose window opens by a segment a round trip, and ends below the receive window: only the
// congestion window limits.
func TestShortTransferOpening(t *testing.T) {
	for _, loop := range []int64{0, 7 * ms} {
		x := newTape(8*ms, loop)
		pos, at := 0, 20*ms
		for _, segments := range []int{3, 5, 6, 7, 8, 9, 3} {
			for k := range int64(segments) {
				x.data(at+k*20_000, pos, 1460, 0)
				pos += 1460
			}
			x.ack(at+8*ms-loop, pos, 64<<10)
			at += 8*ms + 300_000
		}
		if g, _ := x.judge(t); g.Limiter != verdict.SlowStart || g.Confidence == verdict.High {
			t.Errorf("tap %d ms from the sender: %s %s %v", loop/ms, g.Confidence, g.Limiter, g.Shares)
		}
	}
}

// An MTU black hole before the tap: the end of a request arrives, and its large segments never
// do; behind a filter that lets few packets through, nobody asks for them.
func TestNoneLarge(t *testing.T) {
	for _, asks := range []bool{true, false} {
		x := newTape(40*ms, 40*ms)
		x.data(50*ms, 0, 300, flow.PSH)
		x.ack(50*ms+100_000, 300, 64<<10)
		x.data(100*ms, 300+3*1460, 200, flow.PSH)
		if asks {
			x.ack(100*ms+100_000, 300, 64<<10)
		}
		g, d := x.judge(t)
		if has(&g, verdict.CapturedNoneLarge) != asks || g.Limiter != verdict.Unknown ||
			asks && g.Candidates[0] != verdict.MTUBlackHole {
			t.Errorf("asked for: %v: %s %s, candidates %v, %d bytes wanted", asks, g.Confidence, g.Limiter, g.Candidates,
				d.Wanted)
		}
	}
}

// A round trip that a step of a clock left too short, in a transfer with few others: its
// verdict does not fit its figures, and the one by a supported round trip does.
func TestJudge_RetriesWithSupportedRTT(t *testing.T) {
	c := windowed(40e6, 500, 7, 6).Finish()[0]
	d := c.Directions()[0]
	d.RTTMin, d.DataRTTMin = d.RTTMin/3, d.DataRTTMin/3
	g := Judge(c, d)
	if g.Limiter != verdict.ReceiverWindow || !has(&g, verdict.JudgedAgain) || g.Confidence == verdict.High {
		t.Errorf("%s %s %v, %v", g.Confidence, g.Limiter, g.Shares, g.Evidence)
	}
}

// Requests and responses that grow, as when a program greets: each is all that there was, and no congestion window
// waits for acknowledgements.
func TestGrowingExchangesAreNoSlowStart(t *testing.T) {
	for _, loop := range []int64{0, 26 * ms} {
		x := newTape(26*ms, loop)
		pos, at, length := 0, 50*ms, 400
		for k := range 8 {
			for sent := 0; sent < length; sent += 1460 {
				x.data(at, pos+sent, min(1460, length-sent), 0)
			}
			pos += length
			x.ack(at+26*ms-loop, pos, 64<<10)
			x.says(at+27*ms-loop, k, pos, 64<<10)
			at += 54 * ms
			length = length * 3 / 2
		}
		if g, _ := x.judge(t); g.Limiter == verdict.SlowStart || g.Shares[verdict.SlowStart] > 0.5 {
			t.Errorf("%s %s %v", g.Confidence, g.Limiter, g.Shares)
		}
	}
}

// Data that arrive evenly at a receiver that sends no timestamps: single segments come from a full line, though only
// that shows it. Pairs come from a paced sender or from a line that delivers several at a time.
func TestEvenDataWhereNoQueueIsSeen(t *testing.T) {
	for _, within := range []int64{500_000, 12_000} { // nanoseconds between the segments of a pair
		x := newTape(20*ms, 20*ms)
		for k := range 4000 {
			at := 30*ms + int64(k/2)*1_000_000 + int64(k%2)*within
			x.data(at, k*1460, 1460, 0)
			if k%2 == 1 {
				x.ack(at+20_000, (k+1)*1460, 1<<20)
			}
		}
		g, _ := x.judge(t)
		pairs := g.Limiter == verdict.Unknown && slices.Contains(g.Candidates, verdict.Bottleneck) &&
			has(&g, verdict.CapturedQueueUnseen)
		single := g.Limiter == verdict.Bottleneck && g.Confidence == verdict.Low
		if within == 12_000 && !pairs || within == 500_000 && !single {
			t.Errorf("%d ns: %s %s %v, %v, %v", within, g.Confidence, g.Limiter, g.Shares, g.Candidates, g.Evidence)
		}
	}
}

// An acknowledgement of many segments times the last of them: no queue.
func TestAcknowledgementsOfManySegments(t *testing.T) {
	x := newTape(300_000, 200_000)
	for k := range 12_000 {
		at := ms + int64(k)*100_000
		x.data(at, k*1400, 1400, 0)
		if k%32 == 31 {
			x.ack(at+100_000, (k+1)*1400, 64<<10)
		}
	}
	g, d := x.judge(t)
	if mean := d.PastSum / max(d.RTTs, 1); g.Limiter == verdict.Bottleneck || mean > 200_000 {
		t.Errorf("%s %s %v, %d µs beyond the tap", g.Confidence, g.Limiter, g.Shares, mean/1000)
	}
}

// The delayed-ACK timer delays the last acknowledgement, and nothing waits for it.
func TestLastAcknowledgementLate(t *testing.T) {
	x := newTape(ms, 0)
	for k := range 81 {
		at := 2*ms + int64(k)*80_000
		x.data(at, k*1460, 1460, 0)
		if k%2 == 1 {
			x.ack(at+ms, (k+1)*1460, 256<<10)
		}
	}
	x.ack(200*ms, 81*1460, 256<<10)
	if _, d := x.judge(t); d.Last > 20*ms {
		t.Errorf("lasted until %d ms", d.Last/ms)
	}
}

// Data come as fast as a queue of acknowledgements releases them, and that grows all the time: the bytes outstanding
// grow, but a window that opens is not the limiter.
func TestAQueueOfAcknowledgementsSeenFromTheReceiver(t *testing.T) {
	const rtt, apart = 300 * ms, 8 * ms
	x := newTape(rtt, rtt)
	stamped := func(tsval, tsecr int64) {
		s := &x.all[len(x.all)-1]
		s.Options |= flow.HasTimestamps
		s.TSVal, s.TSEcr = uint32(1000+tsval/ms), uint32(1000+max(tsecr, 0)/ms)
	}
	for i := range x.all {
		x.all[i].Options |= flow.HasTimestamps
		x.all[i].TSVal, x.all[i].TSEcr = uint32(1000+x.all[i].At/ms), 1000
	}
	for k := range 1800 {
		at := rtt + int64(k)*apart
		heard := (at - rtt) * 10 / 12 // of the acknowledgements: they wait a fifth of the time that went by
		x.data(at, k*1448, 1448, 0)
		stamped(at-rtt/2, heard)
		x.ack(at+50_000, (k+1)*1448, 4<<20)
		stamped(at, at-rtt/2)
	}
	g, _ := x.judge(t)
	if g.Limiter == verdict.SlowStart || g.Limiter == verdict.Sender && g.Confidence != verdict.Low {
		t.Errorf("%s %s %v", g.Confidence, g.Limiter, g.Shares)
	}
	if !has(&g, verdict.CapturedWaitsSomewhere) {
		t.Errorf("%v", g.Evidence)
	}
}

// Two small segments a message, where the second waits until the first is acknowledged: with the acknowledgements
// that is Nagle's rule, without them in the capture the cause is unknown.
func TestNagle_NeedsCapturedAcknowledgements(t *testing.T) {
	for _, captured := range []bool{true, false} {
		x := newTape(30*ms, 0)
		pos, at := 0, 50*ms
		for i := range 60 {
			x.data(at, pos, 100, flow.PSH)
			x.ack(at+70*ms, pos+100, 64<<10)
			x.data(at+70*ms, pos+100, 50, flow.PSH)
			pos += 150
			x.says(at+100*ms, i, pos, 64<<10)
			at += 100*ms + 50_000
		}
		x.ack(at, pos, 64<<10)
		x.all[len(x.all)-1].Flags |= flow.FIN
		if !captured {
			x.all = slices.DeleteFunc(x.all, func(s flow.Segment) bool {
				return s.Payload == 0 && s.Flags&(flow.SYN|flow.FIN) == 0
			})
		}
		g, _ := x.judge(t)
		if captured && (g.Limiter != verdict.NagleDelayedAck || g.Confidence == verdict.Low) {
			t.Errorf("%s %s %v", g.Confidence, g.Limiter, g.Shares)
		}
		if !captured && g.Limiter != verdict.NagleDelayedAck && g.Confidence != verdict.Low {
			t.Errorf("without acknowledgements: %s %s %v", g.Confidence, g.Limiter, g.Shares)
		}
	}
}
