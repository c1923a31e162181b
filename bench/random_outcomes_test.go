//go:build linux

package bench

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// keptCase is a measured case.
type keptCase struct {
	Case string
	// Late is the reason for leaving the case out; "": it counts.
	Late   string                     `json:",omitempty"`
	Gains  map[verdict.Name][]float64 // of each pair: without the cause over with it, less 1; nil: by its numbers
	Result *transfer.Result
}

// outcomes counts the results of the cases.
type outcomes struct {
	mu                                                       sync.Mutex // guards the rest
	known, right, sure, close, late, high, named             int
	built, builtRight, paired, pairedRight, agreed, disputed int
}

// row returns the row of the bank.
func (n *outcomes) row(command string) bankRow {
	low, high := (tally{known: n.known, right: n.right}).interval()
	row := bankRow{Section: "Attribution", Case: "random paths, truth by their numbers and by counterfactual",
		Claim: "right in at least 95 %, wrong with high confidence in at most 1 %",
		Measured: fmt.Sprintf("%d of %d right (by their numbers %d of %d, by counterfactual in pairs %d of %d), %d of them "+
			"by a name, %d with high confidence; %d wrong with high confidence", n.right, n.known, n.builtRight, n.built,
			n.pairedRight, n.paired, n.named, n.high, n.sure),
		Spread: fmt.Sprintf("95 %% interval %.1f–%.1f %%; %d too close to call, %d left out because lab or programs were "+
			"late; the numbers said what pairs showed in %d of %d", 100*low, 100*high, n.close, n.late, n.agreed,
			n.agreed+n.disputed),
		Command: command}
	switch {
	case high < 0.95 || n.sure > (n.known+99)/100:
		row.Verdict = "fail"
	case low >= 0.95:
		row.Verdict = "pass"
	default:
		row.Verdict = "inconclusive"
	}
	return row
}

// add judges a case. It compares the verdict with the median gain of the pairs or with the numbers that the path was
// made of.
func (n *outcomes) add(t *testing.T, k keptCase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k.Late != "" {
		n.late++
		t.Logf("%v: left out: %s", k.Case, k.Late)
		return
	}
	p, err := parsePath(k.Case)
	if err != nil {
		t.Error(err)
		return
	}
	v, gains, name := live.Judge(k.Result), map[verdict.Name]float64{}, p.constructed()
	for name, pairs := range k.Gains {
		gains[name] = stats.Median(pairs)
	}
	paired := len(gains) > 0
	right, known := p.rightByNumbers(v)
	if paired {
		right, known = rightByGains(v, gains)
		switch {
		case name == "":
		case gains[name] >= limits:
			n.agreed++
		default:
			n.disputed++
			t.Logf("DISPUTED: %s by its numbers", name)
		}
	}
	text := "right"
	one := map[bool]int{true: 1}
	switch {
	case !known:
		text = "too close to call"
		n.close++
	case right:
		_, named := gains[v.Limiter]
		n.named += one[named || !paired]
		n.high += one[v.Confidence == verdict.High]
	default:
		text = "WRONG"
		n.sure += one[v.Confidence == verdict.High]
	}
	n.known += one[known]
	n.right += one[known && right]
	n.paired += one[known && paired]
	n.pairedRight += one[known && right && paired]
	n.built += one[known && !paired]
	n.builtRight += one[known && right && !paired]
	code := verdict.Code("")
	if len(v.Evidence) > 0 {
		code = v.Evidence[0].Code
	}
	t.Logf("%s: FULLPIPE_BANK_CASE='%v': %.3g Mbit/s, %s %s %s (%s), by its numbers %s, gains %.2v, shares %.2v", text,
		k.Case, harness.Goodput(k.Result)/1e6, v.Limiter, v.Subtype, v.Confidence, code, name, gains, v.Shares)
}

// rightByGains compares a verdict with the gains from removing causes. A verdict that names a limiter is wrong if
// removing that limiter gains nothing, even where no other removal gains; mixed and unknown are right there. Mixed is
// also right where each of its candidates gains by itself. A verdict that names a cause which was not removed is
// wrong where another removal gains.
func rightByGains(v verdict.Verdict, gains map[verdict.Name]float64) (right, known bool) {
	best := 0.0
	for _, g := range gains {
		best = max(best, g)
	}
	g, tried := gains[v.Limiter]
	open := v.Limiter == verdict.Mixed || v.Limiter == verdict.Unknown || v.Limiter == verdict.SlowStart && !tried
	each := v.Limiter == verdict.Mixed && len(v.Candidates) > 1 && !slices.ContainsFunc(v.Candidates,
		func(n verdict.Name) bool { return gains[n] < limits })
	switch {
	case each:
		return true, true
	case open:
		return best < limits+unsure, best < limits-unsure || best >= limits+unsure
	case tried:
		return g >= limits, g >= limits || g < limits-unsure
	}
	return false, best >= limits+unsure
}

// TestRightByGains checks the judgement of verdicts by gains.
func TestRightByGains(t *testing.T) {
	gains := map[verdict.Name]float64{verdict.Bottleneck: 0.9, verdict.SendBuffer: 0.07, verdict.Congestion: 0.01}
	nothing := map[verdict.Name]float64{verdict.Bottleneck: 0.02, verdict.SlowStart: 0.04}
	two := map[verdict.Name]float64{verdict.SendBuffer: 0.36, verdict.ReceiverWindow: 0.35, verdict.Bottleneck: 0.03}
	for _, c := range []struct {
		limiter      verdict.Name
		gains        map[verdict.Name]float64
		right, known bool
		candidates   []verdict.Name
	}{
		{verdict.Bottleneck, gains, true, true, nil}, {verdict.SendBuffer, gains, false, false, nil},
		{verdict.Congestion, gains, false, true, nil}, {verdict.CPU, gains, false, true, nil},
		{verdict.Mixed, gains, false, true, nil}, {verdict.Unknown, nothing, true, true, nil},
		{verdict.Mixed, nothing, true, true, nil}, {verdict.SlowStart, nothing, false, true, nil},
		{verdict.CPU, nothing, false, false, nil},
		{verdict.Mixed, two, true, true, []verdict.Name{verdict.SendBuffer, verdict.ReceiverWindow}},
		{verdict.Mixed, two, false, true, []verdict.Name{verdict.SendBuffer, verdict.Bottleneck}},
		{verdict.Unknown, two, false, true, []verdict.Name{verdict.SendBuffer, verdict.ReceiverWindow}},
	} {
		v := verdict.Verdict{Limiter: c.limiter, Candidates: c.candidates}
		if right, known := rightByGains(v, c.gains); right != c.right || known != c.known {
			t.Errorf("%s of %v: %t, %t", c.limiter, c.gains, right, known)
		}
	}
}
