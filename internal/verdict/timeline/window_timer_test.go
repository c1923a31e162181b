package timeline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// nextSmallWindow draws a transfer with a window of 1 to 10 segments.
func (r sample) nextSmallWindow() transfer {
	x := transfer{ackEvery: 1 + r.IntN(2), timestamps: r.IntN(2) == 0, delayedAck: 40*ms + r.Int64N(160*ms),
		rtt: int64(r.between(0.5, 60) * 1e6), bps: r.between(64e3, 1e9)}
	x.rtt += int64(2 * 64 * 8e9 / x.bps) // a SYN and a SYN-ACK
	x.window = (1 + r.IntN(10)) * x.mss()
	x.bytes = x.window * (20 + r.IntN(30))
	place := r.IntN(3)
	x.loop = x.rtt * []int64{1, 50, 99}[place] / 100
	x.tapBeforeLine = place == 0 || place == 1 && r.IntN(2) == 0
	return x
}

// TestJudge_AcksOnlyByTimer checks windows of a few segments whose receiver acknowledges only by a timer, as embedded
// stacks do. The line is idle while the timer runs.
func TestJudge_AcksOnlyByTimer(t *testing.T) {
	count := 1000
	if testing.Short() {
		count = 150
	}
	r := sample{rand.New(rand.NewPCG(48, 1))}
	open := 0
	for n := 0; n < count; {
		x := r.nextSmallWindow()
		x.ackEvery = math.MaxInt
		if line := float64(x.window) * 8e9 / x.bps; 5*line > float64(x.delayedAck) || x.delayedAck < x.rtt {
			continue
		}
		n++
		g, _, _ := x.play(t)
		if !isTimerOrOpen(&g) {
			t.Errorf("%s %s (%s) %v %v, empty path %s: %+v", g.Confidence, g.Limiter, g.Subtype, g.Candidates, g.Shares,
				g.RTT, x)
		} else if g.Limiter == verdict.Unknown { // at the sender a slow line looks the same
			open++
		} else if e := evidenceOf(&g, verdict.WindowAwaitsAckTimer); 1e9*e["timer_s"] > 1.25*float64(x.delayedAck) ||
			1e9*e["timer_s"] < 0.7*float64(x.delayedAck) {
			t.Errorf("%v: %+v", g.Evidence, x)
		}
	}
	if 5*open > count {
		t.Errorf("%d of %d are open", open, count)
	}
}

// gains returns by how much the transfer is faster without each of its limiters. By definition, a limiter is what makes
// it a tenth faster when it is gone.
func (x transfer) gains(t *testing.T) map[verdict.Name]float64 {
	t.Helper()
	took := float64(x.run(t).done)
	without := func(change func(*transfer)) float64 {
		y := x
		change(&y)
		return took / float64(y.run(t).done)
	}
	return map[verdict.Name]float64{
		verdict.ReceiverWindow:  without(func(y *transfer) { y.window, y.scale = 1<<22, 7 }),
		verdict.Bottleneck:      without(func(y *transfer) { y.bps = math.Max(10*y.bps, 1e9) }),
		verdict.NagleDelayedAck: without(func(y *transfer) { y.ackEvery = 1 })}
}

// TestJudge_SmallWindows compares verdicts on windows of a few segments with the gains of the simulated transfer. At
// most 1 in 200 is wrong and sure, and most are right.
func TestJudge_SmallWindows(t *testing.T) {
	count := 2000
	if testing.Short() {
		count = 200
	}
	r := sample{rand.New(rand.NewPCG(49, 2))}
	right := 0
	var wrong []string
	for range count {
		x := r.nextSmallWindow()
		g, _, _ := x.play(t)
		gains := x.gains(t)
		switch {
		case g.Limiter == verdict.Unknown || g.Limiter == verdict.Mixed || g.Confidence == verdict.Low:
		case gains[g.Limiter] < threshold.CauseFactor.Value:
			wrong = append(wrong, fmt.Sprintf("%s %s %v, at %s, gains %.3v: %+v", g.Confidence, g.Limiter, g.Shares,
				g.Vantage, gains, x))
		default:
			right++
		}
	}
	t.Logf("%d right, %d wrong and sure of %d", right, len(wrong), count)
	if 200*len(wrong) > count || 10*right < 6*count {
		t.Errorf("%d of %d right, wrong and sure:\n%s", right, count, strings.Join(wrong, "\n"))
	}
}
