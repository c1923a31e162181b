package timeline

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
)

// A timer repeats an answer of one or two segments whose acknowledgement is late.
func TestJudge_RepeatedShortAnswerIsTooFew(t *testing.T) {
	for _, segments := range []int{1, 2} {
		for _, length := range []int{60, 799, 1460} {
			for _, rtt := range []int64{1 * ms, 62 * ms, 300 * ms} {
				x := newTape(rtt, 0)
				for i := range segments {
					x.data(2*rtt+int64(i), i*length, length, flow.PSH)
				}
				rto := 200*ms + 2*rtt
				x.data(2*rtt+rto, 0, length, flow.PSH)
				x.ack(3*rtt+rto, segments*length, 64<<10)
				g, _ := x.judge(t)
				if g.Limiter != verdict.Unknown || g.Confidence != verdict.Low || g.LostTime != 0 {
					t.Errorf("%d of %d bytes, %d ms: %s %s, lost %s", segments, length, rtt/ms, g.Confidence, g.Limiter,
						g.LostTime)
				}
			}
		}
	}
}

// Below ten segments or three round trips no verdict that needs a rate has high confidence.
func TestJudge_FewSegmentsAreNotSure(t *testing.T) {
	for _, segments := range []int{1, 2, 4, 9} {
		for _, pause := range []int64{0, 1, 3, 50} { // round trips between two of them
			x := newTape(20*ms, 0)
			at := 40 * ms
			for i := range segments {
				x.data(at, i*1460, 1460, 0)
				x.ack(at+20*ms, (i+1)*1460, 64<<10)
				at += pause*20*ms + 1000
			}
			if g, _ := x.judge(t); g.Confidence == verdict.High {
				t.Errorf("%d segments, %d round trips apart: %s %v", segments, pause, g.Limiter, g.Shares)
			}
		}
	}
}

// lostSYNs writes a transfer of segments after a number of SYNs that got no answer.
func lostSYNs(count int, rto int64, segments int) func(x *tape) {
	return func(x *tape) {
		const rtt = 20 * ms
		var repeats []flow.Segment
		total := int64(0)
		for range count {
			syn := x.all[0]
			syn.At = total
			repeats = append(repeats, syn)
			total += rto
			rto *= 2
		}
		for i := range x.all {
			x.all[i].At += total
		}
		x.all = append(repeats, x.all...)
		at := total + 2*rtt
		for i := range segments {
			if i%10 == 0 {
				at += rtt
			}
			x.data(at+int64(i%10)*1000, i*1460, 1460, 0)
			x.ack(at+int64(i%10)*1000+rtt, (i+1)*1460, 64<<10)
		}
	}
}

// Each rule that needs no rate has high confidence in a transfer of few segments.
func TestJudge_RulesWithoutARate(t *testing.T) {
	const rtt = 20 * ms
	largeLost := func(x *tape) {
		x.data(40*ms, 0, 300, 0)
		x.ack(60*ms, 300, 64<<10)
		at := 61 * ms
		for wait := 250 * ms; wait < 5000*ms; wait *= 2 {
			x.data(at, 300, 1460, 0)
			at += wait
		}
		x.data(at, 300, 500, 0)
		x.ack(at+rtt, 800, 64<<10)
	}
	tests := []struct {
		name, rule string
		write      func(x *tape)
	}{
		{"one large segment lost again and again", "repeated loss of one large segment", largeLost},
		{"ICMP too big", "repeated loss of one large segment", func(x *tape) {
			largeLost(x)
			for i := range int64(3) {
				x.all = append(x.all, flow.Segment{At: (62 + 300*i) * ms, Src: clientEnd, Dst: serverEnd,
					Options: flow.IsTooBig, MSS: 1400})
			}
		}},
		{"two SYNs lost before a transfer", "lost SYNs", lostSYNs(2, 1000*ms, 6)},
		{"one SYN lost before a short answer", "lost SYNs", lostSYNs(1, 3000*ms, 1)},
		{"five SYNs lost", "lost SYNs", lostSYNs(5, 1000*ms, 300)},
		{"super-segments lost", "all segments longer than the MSS lost", superSegments(2920, 4, false, 0)},
		{"zero window", "zero window", func(x *tape) {
			for i := range 4 {
				x.data(40*ms+int64(i), i*1460, 1460, 0)
			}
			x.ack(60*ms, 4*1460, 0)
			x.ack(4000*ms, 4*1460, 64<<10)
			x.data(4001*ms, 4*1460, 1460, 0)
			x.ack(4021*ms, 5*1460, 64<<10)
		}},
		{"three probes", "window that opens only in the answer to a probe", func(x *tape) {
			for i := range 4 {
				at := int64(40+500*i) * ms
				x.data(at, i*1460, 1460, 0)
				x.ack(at+rtt, (i+1)*1460, 0)
				x.data(at+400*ms, (i+1)*1460-1, 1, 0)
				x.ack(at+400*ms+rtt, (i+1)*1460, 64<<10)
			}
		}},
	}
	limiters := map[string]verdict.Name{"repeated loss of one large segment": verdict.MTUBlackHole,
		"all segments longer than the MSS lost": verdict.MTUBlackHole, "lost SYNs": verdict.Congestion,
		"zero window": verdict.ReceiverApplication,
		"window that opens only in the answer to a probe": verdict.ReceiverWindow}
	for _, test := range tests {
		x := newTape(rtt, 0)
		test.write(x)
		g, _ := x.judge(t)
		if test.rule == "lost SYNs" && (!has(&g, verdict.CapturedLostSYNs) || g.Subtype != verdict.LostSYNs ||
			g.LostTime.Seconds() < 1) {
			t.Errorf("%s: %s, %v", test.name, g.LostTime, g.Evidence)
		}
		if g.Limiter != limiters[test.rule] || g.Confidence != verdict.High {
			t.Errorf("%s: %s %s %v", test.name, g.Confidence, g.Limiter, g.Shares)
		}
	}
}

// The time of lost SYNs comes before the transfer: shares, sentence and lost time count both.
func TestJudge_LostSYNsAddToTheTime(t *testing.T) {
	repaired := func(count int, rto, pause int64) func(x *tape) {
		return func(x *tape) {
			lostSYNs(count, rto, 40)(x)
			last := x.all[len(x.all)-1].At
			x.data(last+pause, 40*1460, 1460, 0)
			x.data(last+pause+250*ms, 40*1460, 1460, 0) // after a timeout
			x.ack(last+pause+270*ms, 41*1460, 64<<10)
		}
	}
	tests := []struct {
		name  string
		write func(x *tape)
		main  bool // the lost SYNs are the verdict
	}{
		{"a plain transfer", lostSYNs(2, 1000*ms, 100), true},
		{"a segment lost too", repaired(1, 3000*ms, 1*ms), true},
		{"two segments' timeouts, and the SYN's", func(x *tape) {
			repaired(1, 1000*ms, 1*ms)(x)
			last := x.all[len(x.all)-1].At
			x.data(last+500*ms, 41*1460, 1460, 0)
			x.data(last+900*ms, 41*1460, 1460, 0)
			x.ack(last+920*ms, 42*1460, 64<<10)
		}, true},
		{"idle for most of the time", repaired(1, 1000*ms, 2000*ms), false},
		{"idle for about as long", repaired(1, 2000*ms, 2200*ms), false},
		{"idle for long", repaired(1, 1000*ms, 9000*ms), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x := newTape(20*ms, 0)
			test.write(x)
			g, d := x.judge(t)
			length := time.Duration(d.Last - d.First)
			if g.SYNWait < 900*time.Millisecond || g.LostTime < g.SYNWait/2 || g.LostTime > length+g.SYNWait {
				t.Errorf("lost %v of %v after %v of lost SYNs", g.LostTime, length, g.SYNWait)
			}
			if !has(&g, verdict.CapturedLostSYNs) || has(&g, verdict.FigureDoesNotFit) {
				t.Errorf("%s: %v", g.Limiter, g.Evidence)
			}
			main := g.Subtype == verdict.LostSYNs
			if main != test.main || main && g.Evidence[0].Code != verdict.CapturedLostSYNs {
				t.Errorf("%s (%s): %v", g.Limiter, g.Subtype, g.Evidence)
			}
			for _, e := range g.Evidence {
				if wait := g.SYNWait.Seconds() / (length + g.SYNWait).Seconds(); e.Code == verdict.CapturedLoss &&
					e.Values["time_ratio"] > 1.001-wait {
					t.Errorf("a congestion window took %.2f of the time, lost SYNs %.2f", e.Values["time_ratio"], wait)
				}
			}
		})
	}
}

// A SYN is retransmitted after a second with any round trip: on a longer path none was lost.
func TestJudge_SYNsSentAgainWithinARoundTrip(t *testing.T) {
	tests := []struct {
		name     string
		rtt      int64   // ms
		again    []int64 // ms
		lost     bool
		segments int
	}{
		{"a short path", 600, []int64{1000}, true, 10},
		{"a satellite behind a full queue", 1200, []int64{1000}, false, 10},
		{"a few segments", 1200, []int64{1000}, false, 3},
		{"two within a round trip", 3500, []int64{1000, 3000}, false, 10},
		{"one within a round trip, one lost", 1200, []int64{1000, 3000}, true, 10},
	}
	for _, test := range tests {
		rtt := test.rtt * ms
		answered := int64(0) // the SYN
		if test.lost {
			answered = test.again[len(test.again)-1] * ms
		}
		x := newTape(rtt, 0)
		x.all[1].At += answered
		x.all[2].At += answered
		for _, at := range test.again {
			syn := x.all[0]
			syn.At = at * ms
			x.all = append(x.all, syn)
		}
		for i := range test.segments {
			x.data(answered+rtt+int64(i)*1000, i*1460, 1460, 0)
			x.ack(answered+2*rtt+int64(i)*1000, (i+1)*1460, 64<<10)
		}
		if g, _ := x.judge(t); has(&g, verdict.CapturedLostSYNs) != test.lost || (g.SYNWait > 0) != test.lost {
			t.Errorf("%s: %s %s (%s), waited %v: %v", test.name, g.Confidence, g.Limiter, g.Subtype, g.SYNWait, g.Evidence)
		}
	}
}

// TestJudge_ProgramSteadyAfterSlowStart plays programs whose rate the congestion window reaches in a few round trips.
// The transfer ends a few round trips later: slow start may not have limited it.
func TestJudge_ProgramSteadyAfterSlowStart(t *testing.T) {
	for _, test := range []struct {
		name   string
		rounds []int // segments of each round trip
		high   bool
	}{
		{"steady for four round trips", []int{10, 20, 40, 60, 60, 60, 60, 60}, false},
		{"steady for three round trips", []int{10, 20, 32, 32, 32, 32}, false},
		{"grows to the end", []int{10, 20, 40, 80, 160, 90}, true},
	} {
		for _, rtt := range []int64{15 * ms, 45 * ms, 190 * ms} {
			x := newTape(rtt, 0)
			pos := 0
			for round, segments := range test.rounds {
				at := int64(round+2) * rtt
				for i := range segments {
					sent := at + int64(i)*rtt/int64(segments+1)
					x.data(sent, pos, 1460, 0)
					pos += 1460
					x.ack(sent+rtt, pos, 4<<20)
				}
			}
			g, _ := x.judge(t)
			if high := g.Limiter == verdict.SlowStart && g.Confidence == verdict.High; high != test.high {
				t.Errorf("%s, %d ms: %s %s %v", test.name, rtt/ms, g.Confidence, g.Limiter, g.Shares)
			}
		}
	}
}

// TestTimeline_PausesAreNoFullLine checks that a queue is no high confidence in a full line where the sender pauses: a
// program that writes by its own clock is as fast over any faster line.
func TestTimeline_PausesAreNoFullLine(t *testing.T) {
	for pausing, want := range map[bool]verdict.Confidence{false: verdict.High, true: verdict.Medium} {
		line := timeline{c: &flow.Connection{}, d: &flow.Direction{ScaleKnown: true}, vantage: AtReceiver, queueing: true,
			pausing: pausing}
		if got := rule.Confidence(levels, nil, verdict.Bottleneck, &line); got != want {
			t.Errorf("pausing %t: %s, want %s", pausing, got, want)
		}
	}
}
