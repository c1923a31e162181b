package timeline

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// says is a message of the receiving program, acknowledging up to pos.
func (x *tape) says(at int64, message, pos, window int) {
	x.all = append(x.all, flow.Segment{At: at, Src: serverEnd, Dst: clientEnd, Seq: 5000 + uint32(message)*40,
		Ack: 1000 + uint32(pos), Flags: flow.ACK | flow.PSH, Window: uint16(window >> 7), Payload: 40})
}

// blocks plays a program that sends a number of segments for each request, over a path that takes 100 µs for each,
// and thinks before it responds. The tap is loop from the sender.
func blocks(t *testing.T, segments int, rtt, loop, think int64) Diagnosis {
	x := newTape(rtt, loop)
	pos, at := 0, rtt+10*ms
	for i := range 60 {
		x.says(at-loop-50_000, i, pos, 4<<20)
		for k := range segments {
			x.data(at+int64(k)*100_000, pos, 1460, 0)
			pos += 1460
			if k%2 == 1 && k < segments-1 {
				x.ack(at+int64(k)*100_000+rtt-loop, pos, 4<<20)
			}
		}
		at += rtt + int64(segments)*100_000 + think
	}
	g, _ := x.judge(t)
	return g
}

// One to four losses that are repaired do not make another limiter of blocks that wait for requests: the repairs take
// their time, and no more.
func TestRequestResponse_RepairedLosses(t *testing.T) {
	const rtt = 40 * ms
	for _, segments := range []int{3, 8, 40} {
		for losses := 1; losses <= 4; losses++ {
			x := newTape(rtt, 0)
			pos, at := 0, rtt+10*ms
			for i := range 90 {
				x.says(at-50_000, i, pos, 4<<20)
				begin := pos
				lost := i%20 == 10 && i/20 < losses
				for k := range segments {
					x.data(at+int64(k)*100_000, pos, 1460, 0)
					pos += 1460
					switch {
					case lost && k > 0:
						x.ack(at+int64(k)*100_000+rtt, begin, 4<<20)
					case !lost && k%2 == 1 && k < segments-1:
						x.ack(at+int64(k)*100_000+rtt, pos, 4<<20)
					}
				}
				if lost { // behind the tap
					at += rtt + int64(segments)*100_000
					x.data(at, begin, 1460, 0)
				}
				at += rtt + int64(segments)*100_000
			}
			g, d := x.judge(t)
			if g.Limiter != verdict.Application || g.Shares[verdict.Application] < 0.7 || d.Retransmitted != int64(losses) {
				t.Errorf("%d segments, %d losses: %s %s/%s %v", segments, d.Retransmitted, g.Confidence, g.Limiter, g.Subtype,
					g.Shares)
			}
		}
	}
}

// Evidence for blocks that wait for requests has their size and number, and predicts the rate of twice as much at a
// time.
func TestRequestResponse(t *testing.T) {
	for _, loop := range []int64{0, 20 * ms, 40 * ms} {
		g := blocks(t, 40, 40*ms, loop, 0)
		if g.Limiter != verdict.Application || g.Subtype != verdict.RequestResponse {
			t.Fatalf("tap %d ms from the sender: %s %s/%s %v", loop/ms, g.Confidence, g.Limiter, g.Subtype, g.Shares)
		}
		e := evidenceOf(&g, verdict.CapturedExchanges)
		if n := e["exchanges"]; n < 55 || n > 60 || e["block_bytes"] < 55_000 || e["block_bytes"] > 65_000 {
			t.Errorf("%v", e)
		}
		twice := blocks(t, 80, 40*ms, loop, 0)
		if r := e["twice_bps"] / twice.GoodputBps; r < 0.85 || r > 1.15 {
			t.Errorf("twice as much: %.3g bit/s said, %.3g came", e["twice_bps"], twice.GoodputBps)
		}
	}
	if g := blocks(t, 40, 40*ms, 0, 400*ms); g.Subtype != "" {
		t.Errorf("a program that takes its time: %s/%s", g.Limiter, g.Subtype)
	}
}

func evidenceOf(g *Diagnosis, code verdict.Code) verdict.Values {
	for _, e := range g.Evidence {
		if e.Code == code {
			return e.Values
		}
	}
	return nil
}

// windowOfProgram plays a sender with at most window segments of 1460 bytes in flight over 24 ms. A message releases
// each batch, or an acknowledgement alone.
func windowOfProgram(t *testing.T, window int, loop int64, messages bool) Diagnosis {
	const rtt, batch = 24 * ms, 20
	x := newTape(rtt, loop)
	at, pos := rtt+10*ms, 0
	for i := 0; i < window; i += batch {
		for range batch {
			x.data(at, pos, 1460, 0)
			pos += 1460
			at += 100_000
		}
	}
	first := rtt + 10*ms
	for i := range 60 * window / batch {
		arrives := first + int64(i%(window/batch))*batch*100_000 + int64(1+i/(window/batch))*rtt
		acked := (i + 1) * batch * 1460
		for k := range batch / 2 {
			x.ack(arrives-loop-int64(batch/2-k)*100_000, acked-batch*1460+(k+1)*2920, 4<<20)
		}
		if messages {
			x.says(arrives-loop+1000, i, acked, 4<<20)
		}
		for k := range int64(batch) {
			x.data(arrives+2000+k*50_000, pos, 1460, 0)
			pos += 1460
		}
	}
	g, _ := x.judge(t)
	return g
}

// At other taps real captures are judged: TestProgramsOwnWindows in e2e/kernel.
func TestProgramWindow(t *testing.T) {
	g := windowOfProgram(t, 200, 0, true)
	e := evidenceOf(&g, verdict.CapturedProgramWindow)
	if g.Limiter != verdict.Application || g.Subtype != verdict.ProgramWindow || g.Confidence == verdict.High {
		t.Errorf("%s %s/%s %v", g.Confidence, g.Limiter, g.Subtype, g.Shares)
	} else if w := e["program_window_bytes"]; w < 280_000 || w > 330_000 {
		t.Errorf("a window of %.0f bytes", w)
	}
	if g := windowOfProgram(t, 200, 0, false); g.Limiter != verdict.Sender {
		t.Errorf("without messages: %s %s/%s", g.Confidence, g.Limiter, g.Subtype)
	}
}

// inTurn plays a program that, after a dozen small requests one by one, has two blocks of 200 segments in flight. The
// last segment of each is a part segment. It sends another block after the response to one, or, without responses,
// after its acknowledgement.
func inTurn(t *testing.T, loop int64, responses bool) Diagnosis {
	const rtt, each, segments, blocks, small = 100 * ms, 20_000, 200, 60, 12
	x := newTape(rtt, loop)
	var answered []int64
	at, pos := int64(rtt+10*ms), 0
	for i := range small {
		x.data(at, pos, 120, flow.PSH)
		pos += 120
		x.says(at+rtt-loop, i, pos, 4<<20)
		at += rtt + 50_000
	}
	for i := range blocks {
		if i >= 2 {
			at = max(at, answered[i-2])
		}
		for k := range segments {
			length := 1460
			if k == segments-1 {
				length = 700
			}
			x.data(at, pos, length, 0)
			pos += length
			if k%2 == 1 && (k < segments-1 || !responses) {
				x.ack(at+rtt-loop, pos, 4<<20)
			}
			at += each
		}
		if responses {
			x.says(at-each+rtt-loop, small+i, pos, 4<<20)
		}
		answered = append(answered, at+rtt)
	}
	g, _ := x.judge(t)
	return g
}

// Several requests in flight, as a file server's client has them, are a window of the program's. Without responses it
// is the sender's, and not paced.
func TestRequestsInTurn(t *testing.T) {
	for _, loop := range []int64{0, 50 * ms, 80 * ms} {
		g := inTurn(t, loop, true)
		e := evidenceOf(&g, verdict.CapturedProgramWindow)
		if g.Limiter != verdict.Application || g.Subtype != verdict.ProgramWindow || g.Confidence == verdict.High {
			t.Errorf("tap %d ms from the sender: %s %s/%s %v", loop/ms, g.Confidence, g.Limiter, g.Subtype, g.Shares)
		} else if w := e["program_window_bytes"]; w < 570_000 || w > 600_000 {
			t.Errorf("tap %d ms from the sender: a window of %.0f bytes", loop/ms, w)
		}
	}
	if g := inTurn(t, 0, false); g.Limiter != verdict.Sender || g.Candidates[0] == verdict.Pacing {
		t.Errorf("without responses: %s %s/%s %v", g.Confidence, g.Limiter, g.Subtype, g.Candidates)
	}
}

// periodicSpacing is the time that the path takes for a segment.
const periodicSpacing = 50_000

// periodicWrites plays a program that writes a block of segments each period, 60 times, by its own clock. The other
// end responses one block in every few with a message, or none if 0. The tap is loop from the sender.
func periodicWrites(t *testing.T, period, rtt, loop int64, segments, responses int, timestamps bool) Diagnosis {
	x := newTape(rtt, loop)
	at := rtt + 10*ms
	pos := 0
	said := 0
	for i := range 60 {
		begin := at
		for k := range segments {
			length := 1460
			if k == segments-1 {
				length = 700
			}
			x.data(at, pos, length, 0)
			pos += length
			if k%2 == 1 && k < segments-1 {
				x.ack(at+rtt-loop, pos, 4<<20)
			}
			at += periodicSpacing
		}
		x.ack(at-periodicSpacing+rtt-loop, pos, 4<<20)
		if responses > 0 && i%responses == 0 {
			x.says(at+rtt-loop, said, pos, 4<<20)
			said++
		}
		at = max(at, begin+period)
	}
	if timestamps {
		x.addTimestamps(rtt)
	}
	g, _ := x.judge(t)
	return g
}

// A program that writes by a clock of its own waits for no message, though each of its blocks is answered.
func TestPrograms_PeriodicWrites(t *testing.T) {
	for _, period := range []int64{20, 40, 100, 200, 500, 1000} {
		for _, rtt := range []int64{1, 10, 30, 90} {
			for _, segments := range []int{2, 8, 44, 150} {
				for _, loop := range []int64{0, rtt} {
					// An answer that comes just before the next block looks like its reason.
					phase := (rtt*ms + int64(segments)*periodicSpacing) % (period * ms)
					if 20*(period*ms-phase) <= 3*period*ms || loop > period {
						continue
					}
					for _, responses := range []int{0, 1, 3} {
						g := periodicWrites(t, period*ms, rtt*ms, loop*ms, segments, responses, period%200 == 0)
						if g.Subtype != "" || g.Limiter == verdict.Bottleneck {
							t.Errorf("%d segments each %d ms, round trip %d ms, tap %d ms from the sender, 1 of %d answered: %s (%s), %s",
								segments, period, rtt, loop, responses, g.Limiter, g.Subtype, g.Confidence)
						}
					}
				}
			}
		}
	}
}

// Programs that wait for an answer before each block, and think for less than the round trip.
func TestPrograms_ShortThinking(t *testing.T) {
	for _, rtt := range []int64{10, 40, 100} {
		for _, think := range []int64{0, rtt / 20} {
			if g := blocks(t, 20, rtt*ms, 0, think*ms); g.Subtype != verdict.RequestResponse {
				t.Errorf("round trip %d ms, thinks %d ms: %s (%s) %v", rtt, think, g.Limiter, g.Subtype, g.Shares)
			}
		}
	}
}
