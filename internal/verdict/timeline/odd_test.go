package timeline

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const ms = int64(1e6)

// tape writes what a tap saw of one connection whose client sends to a server. Between the
// tap and the client lies loop of the round trip.
type tape struct {
	all  []flow.Segment
	loop int64
}

var clientEnd, serverEnd = flow.Endpoint4(1, 40000), flow.Endpoint4(2, 5201)

func newTape(rtt, loop int64) *tape {
	x := &tape{loop: loop}
	options := flow.HasMSS | flow.HasScale | flow.HasSACKPermitted
	x.all = []flow.Segment{
		{At: 0, Src: clientEnd, Dst: serverEnd, Seq: 999, Flags: flow.SYN, Window: 64240, MSS: 1460, Scale: 7,
			Options: options},
		{At: rtt - loop, Src: serverEnd, Dst: clientEnd, Seq: 4999, Ack: 1000, Flags: flow.SYN | flow.ACK, Window: 64240,
			MSS: 1460, Scale: 7, Options: options},
		{At: rtt, Src: clientEnd, Dst: serverEnd, Seq: 1000, Ack: 5000, Flags: flow.ACK, Window: 502},
	}
	return x
}

func (x *tape) data(at int64, pos, length int, flags flow.Flags) {
	x.all = append(x.all, flow.Segment{At: at, Src: clientEnd, Dst: serverEnd, Seq: 1000 + uint32(pos), Ack: 5000,
		Flags: flow.ACK | flags, Window: 502, Payload: uint32(length)})
}

func (x *tape) ack(at int64, pos, window int) {
	x.all = append(x.all, flow.Segment{At: at, Src: serverEnd, Dst: clientEnd, Seq: 5000, Ack: 1000 + uint32(pos),
		Flags: flow.ACK, Window: uint16(window >> 7)})
}

func (x *tape) judge(t *testing.T) (Diagnosis, *flow.Direction) {
	t.Helper()
	slices.SortStableFunc(x.all, func(a, b flow.Segment) int { return int(max(min(a.At-b.At, 1), -1)) })
	table := flow.NewTable(flow.Config{})
	for i := range x.all {
		table.Add(&x.all[i])
	}
	c := table.Finish()[0]
	d := c.Directions()[0]
	return Judge(c, d), d
}

func has(g *Diagnosis, code verdict.Code) bool {
	return slices.ContainsFunc(g.Evidence, func(e verdict.Evidence) bool { return e.Code == code })
}

// A program writes 8 kB now and then; one segment of all is lost before the tap.
func TestOneLossDoesNotFillTheLink(t *testing.T) {
	for _, loop := range []int64{0, 15 * ms, 29 * ms} {
		for _, flags := range []flow.Flags{flow.PSH, 0} {
			x := newTape(30*ms, loop)
			pos := 0
			for i := range 150 {
				at := 100*ms + int64(i)*600*ms
				for k := range 6 {
					length, f := 1460, flow.Flags(0)
					if k == 5 {
						f = flags
						if flags != 0 {
							length = 700
						}
					}
					when := at + int64(k)*100_000
					if i == 70 && k == 2 {
						when += 230 * ms
					}
					x.data(when, pos, length, f)
					pos += length
				}
				answer := at + 30*ms - loop + 600_000
				if i == 70 {
					x.ack(answer, pos-4*1460, 64000)
					answer += 230 * ms
				}
				x.ack(answer, pos, 64000)
			}
			g, _ := x.judge(t)
			want := verdict.Application
			if flags == 0 && loop > 5*ms {
				want = verdict.Unknown
			}
			if g.Limiter != want || g.Limiter == verdict.Unknown && !slices.Equal(g.Candidates,
				[]verdict.Name{verdict.Application, verdict.Congestion}) {
				t.Errorf("loop %d ms, flags %d: %s %s %v, candidates %v", loop/ms, flags, g.Confidence, g.Limiter, g.Shares,
					g.Candidates)
			}
		}
	}
}

func TestOneDirectionOnly(t *testing.T) {
	x := newTape(30*ms, 0)
	x.all = x.all[:1]
	for i := range 5000 {
		x.data(50*ms+int64(i)*ms, i*1460, 1460, 0)
	}
	if g, _ := x.judge(t); g.Limiter != verdict.Unknown || g.Confidence != verdict.Low ||
		!has(&g, verdict.CapturedOneDirection) {
		t.Errorf("%s %s, %v", g.Confidence, g.Limiter, g.Evidence)
	}
}

// Only acknowledgements are in the capture: the rate is theirs.
func TestJudge_OnlyAcknowledgements(t *testing.T) {
	for _, step := range []int{1460, 2920, 1 << 20} {
		for _, handshake := range []int{0, 1, 3} { // segments of it
			for _, count := range []int{1, 500, 5000} {
				x := newTape(30*ms, 0)
				x.all = x.all[3-handshake:]
				if handshake == 1 {
					x.all = x.all[:0]
				}
				x.ack(50*ms, 0, 64<<10)
				for i := range count {
					x.ack(50*ms+int64(i+1)*ms, (i+1)*step, 64<<10)
				}
				table := flow.NewTable(flow.Config{})
				for i := range x.all {
					table.Add(&x.all[i])
				}
				c := table.Finish()[0]
				if all := c.Directions(); len(all) == 0 {
					if step*count >= 3*1460 {
						t.Errorf("%d times %d bytes: nothing", count, step)
					}
					continue
				}
				d := c.Directions()[0]
				g := Judge(c, d)
				rate := float64(step) * 8000
				if d.Bytes != int64(step*count) || count > 1 && (g.GoodputBps < 0.99*rate || g.GoodputBps > 1.01*rate*
					float64(count)/float64(count-1)) || !has(&g, verdict.CapturedOneDirection) ||
					g.Confidence != verdict.Low || d.From != clientEnd {
					t.Errorf("%d times %d bytes: %d at %.0f bit/s, %v", count, step, d.Bytes, g.GoodputBps, g.Evidence)
				}
			}
		}
	}
}

// Most of the data is missing, and acknowledgements speak of it: that is no capture of one direction.
func TestJudge_MostBytesMissing(t *testing.T) {
	for _, every := range []int{40, 50, 200} { // one segment in this many was captured
		x := newTape(30*ms, 0)
		for i := range 40 * every {
			at := 50*ms + int64(i)*ms
			if i%every == 0 {
				x.data(at, i*1460, 1460, 0)
			}
			if i%2 == 1 {
				x.ack(at+30*ms, (i+1)*1460, 64<<10)
				answer := &x.all[len(x.all)-1] // none is pure
				answer.Seq += uint32(i/2) * 100
				answer.Payload = 100
			}
		}
		if g, _ := x.judge(t); g.Limiter != verdict.Unknown || has(&g, verdict.CapturedOneDirection) ||
			!has(&g, verdict.CapturedGaps) {
			t.Errorf("one of %d: %s %v", every, g.Limiter, g.Evidence)
		}
	}
}

// A jump of the sequence numbers that nothing acknowledges is no goodput.
func TestJudge_SequenceJumpIsNoGoodput(t *testing.T) {
	for _, jump := range []int{1 << 24, 464_000_000, 1 << 30} {
		x := newTape(30*ms, 0)
		for i := range 50 {
			x.data(50*ms+int64(i)*ms, i*1460, 1460, 0)
			x.data(50*ms+int64(i)*ms+1000, jump+i*1460, 1460, 0)
			x.ack(80*ms+int64(i)*ms, (i+1)*1460, 64<<10)
		}
		if g, d := x.judge(t); g.GoodputBps > 50*2*1460*8/0.05 {
			t.Errorf("jump %d: %.0f bit/s, %d of %d missing, %v", jump, g.GoodputBps, d.Missing, d.Bytes, g.Evidence)
		}
	}
}

// A capture of one direction has no goodput if its sequence numbers jump.
func TestJudge_SequenceJumpInOneDirection(t *testing.T) {
	x := newTape(30*ms, 0)
	for i := range 50 {
		x.data(50*ms+int64(i)*ms, i*1460, 1460, 0)
	}
	for i := range 50 {
		x.data(110*ms+int64(i)*ms, 1<<24+i*1460, 1460, 0)
	}
	if g, d := x.judge(t); g.GoodputBps != 0 || evidenceOf(&g, verdict.CapturedOneDirection) == nil {
		t.Errorf("%.0f bit/s of %d bytes, %v", g.GoodputBps, d.Bytes, g.Evidence)
	}
}

// A capture that lacks some data and the last acknowledgement still has a goodput.
func TestJudge_LastACKMissingKeepsGoodput(t *testing.T) {
	for _, acked := range []int{10, 11, 12, 14} {
		x := newTape(20*ms, 0)
		for i := range 14 {
			if i != 4 && i != 5 {
				x.data(40*ms+int64(i)*ms, i*1460, 1460, 0)
			}
		}
		for i := 2; i <= acked; i += 2 {
			x.ack(60*ms+int64(i)*ms, i*1460, 64<<10)
		}
		if g, d := x.judge(t); g.GoodputBps <= 0 || g.GoodputBps > 14*1460*8/0.02 {
			t.Errorf("%d segments acknowledged: %.0f bit/s, %d of %d missing", acked, g.GoodputBps, d.Missing, d.Bytes)
		}
	}
}

// A box renumbers sequence numbers, but not SACK blocks.
func TestJudge_SACKOutsideTheWindow(t *testing.T) {
	for _, offset := range []uint32{0, 50_000_000, 1 << 30, 3_000_000_000} {
		x := newTape(20*ms, 0)
		pos := 0
		for at := 40 * ms; at < 4000*ms; at += 300 * ms {
			for k := range 6 {
				x.data(at+int64(k)*1000, pos+k*1460, 1460, 0)
			}
			x.ack(at+20*ms, pos, 64<<10)
			last := &x.all[len(x.all)-1]
			last.SACKs = 1
			last.SACK[0] = [2]uint32{1000 + offset + uint32(pos+1460), 1000 + offset + uint32(pos+6*1460)}
			x.data(at+240*ms, pos, 1460, 0)
			pos += 6 * 1460
			x.ack(at+260*ms, pos, 64<<10)
		}
		if g, d := x.judge(t); has(&g, verdict.CapturedSACKOutside) != (offset > 0) {
			t.Errorf("offset %d: %d of %d, %v", offset, d.SACKOutside, d.SACKBlocks, g.Evidence)
		}
	}
}

// A few losses do not explain a transfer that a small window limits.
func TestFewLossesDoNotExplainMuch(t *testing.T) {
	x := newTape(20*ms, 10*ms)
	pos, at := 0, 30*ms
	for i := range 1000 {
		x.data(at, pos, 1460, 0)
		x.data(at+100_000, pos+1460, 1460, 0)
		if i == 100 || i == 200 {
			x.data(at+40*ms, pos, 1460, 0)
			at += 40 * ms
		}
		pos += 2920
		x.ack(at+10*ms, pos, 64<<10)
		at += 20 * ms
	}
	if g, _ := x.judge(t); g.Limiter == verdict.Congestion {
		t.Errorf("%s %s %v", g.Confidence, g.Limiter, g.Shares)
	}
}

// An outage of 60 s, in which one segment is retransmitted at doubling distances, in 10 s of transfer; and the same
// without an end.
func TestOutages(t *testing.T) {
	for _, returns := range []bool{true, false} {
		x := newTape(40*ms, 0)
		pos := 0
		run := func(at int64) {
			for range 100 {
				for k := range 20 {
					x.data(at+int64(k)*ms, pos, 1460, 0)
					pos += 1460
					x.ack(at+int64(k)*ms+40*ms, pos, 128<<10)
				}
				at += 41 * ms
			}
		}
		run(100 * ms)
		at := 4300 * ms
		for k := range 20 {
			x.data(at+int64(k)*ms, pos+k*1460, 1460, 0)
		}
		for wait := 300 * ms; wait < 40_000*ms; wait *= 2 {
			at += wait
			x.data(at, pos, 1460, 0)
		}
		if returns {
			pos += 20 * 1460
			x.ack(at+40*ms, pos, 128<<10)
			run(at + 41*ms)
		}
		g, _ := x.judge(t)
		if returns && (g.Limiter != verdict.Congestion || !has(&g, verdict.CapturedOutage)) {
			t.Errorf("%s %s %v, %v", g.Confidence, g.Limiter, g.Shares, g.Evidence)
		}
		if !returns && (g.Limiter != verdict.Unknown || !has(&g, verdict.CapturedSilent)) {
			t.Errorf("%s %s %v, %v", g.Confidence, g.Limiter, g.Shares, g.Evidence)
		}
	}
}

// A window of 64 KB over a link of 1 Mbit/s whose queue takes all of it: round trips of half
// a second over 40 ms, with a loss now and then that somebody else's traffic made.
func TestFullWindowOverALongQueue(t *testing.T) {
	for _, every := range []int{0, 400, 150} { // segments from loss to loss
		x := newTape(40*ms, 0)
		const spacing, window = 12 * ms, 44 // of segments
		sent, at := 0, 50*ms
		for ; sent < 20; sent++ {
			x.data(at, sent*1460, 1460, 0)
		}
		for acked := 1; acked < 1500; acked++ {
			at = max(at, 50*ms) + spacing
			if lost := every > 0 && acked%every == 0; lost {
				for range 40 { // later segments come, and the hole stays
					at += spacing
					x.ack(at, (acked-1)*1460, 64<<10)
				}
				x.data(at, (acked-1)*1460, 1460, 0)
				at += window * spacing
				acked += 40
			}
			x.ack(at, acked*1460, 64<<10)
			for sent < acked+window {
				x.data(at, sent*1460, 1460, 0)
				sent++
			}
		}
		g, d := x.judge(t)
		if g.Limiter != verdict.Bottleneck {
			t.Errorf("a loss in %d: %s %s %v, round trips %d to %d ms", every, g.Confidence, g.Limiter, g.Shares, d.RTTMin/ms,
				d.RTTMax/ms)
		}
	}
}

// A program takes 32 KiB at a time out of a buffer of 200 kB, and a little is always left.
func TestSlowReaderOfLargePieces(t *testing.T) {
	for _, left := range []int{0, 300, 700} {
		x := newTape(20*ms, 0)
		pos, at := 0, 30*ms
		for pos < 200_000 {
			x.data(at, pos, 1460, 0)
			pos += 1460
			at += 100_000
			x.ack(at+20*ms, pos, 200_000-pos+left)
		}
		for range 100 {
			at += 200 * ms
			x.ack(at, pos, 32<<10+left)
			for k := range 22 {
				x.data(at+int64(k)*10_000, pos, 1460, 0)
				pos += 1460
				x.ack(at+20*ms+int64(k)*10_000, pos, 32<<10-(k+1)*1460+left)
			}
		}
		if g, _ := x.judge(t); g.Limiter != verdict.ReceiverApplication {
			t.Errorf("%d left: %s %s %v", left, g.Confidence, g.Limiter, g.Shares)
		}
	}
}

// Every verdict agrees with its own figures: transfers through windows of all sizes over clocks that jump.
func TestVerdictsAgreeWithTheirFigures(t *testing.T) {
	for _, raw := range []uint16{46, 64, 500, 1024} {
		for _, jump := range []int64{0, -15 * ms, -30 * ms, 40 * ms} {
			t.Run(fmt.Sprintf("window %d, jump %d ms", int(raw)<<7, jump/ms), func(t *testing.T) {
				c := windowed(40e6, raw, 7, 60).Finish()[0]
				if len(c.Directions()) == 0 {
					t.Fatal("no data")
				}
				d := c.Directions()[0]
				d.RTTMin, d.DataRTTMin = max(d.RTTMin+jump, 1), max(d.DataRTTMin+jump, 1)
				g := Judge(c, d)
				if allows := float64(d.WindowMax) * 8e9 / float64(d.RTTMin); g.Limiter == verdict.ReceiverWindow &&
					allows > 5*g.GoodputBps {
					t.Errorf("%s %s, though the window allows %.0f and %.0f came", g.Confidence, g.Limiter, allows, g.GoodputBps)
				}
				if jump == 0 && g.Limiter != verdict.ReceiverWindow {
					t.Errorf("%s %s, %v", g.Confidence, g.Limiter, g.Evidence)
				}
			})
		}
	}
}
