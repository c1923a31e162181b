//go:build linux

package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// among is the number of views that were as expected.
type among struct{ good, all int }

func (n *among) count(good bool) {
	n.all++
	if good {
		n.good++
	}
}

func (n among) String() string { return fmt.Sprintf("%d of %d", n.good, n.all) }

// interval returns the exact 95 % confidence interval as text.
func (n among) interval() string {
	low, high := tally{known: n.all, right: n.good}.interval()
	return fmt.Sprintf("95 %% interval %.1f–%.1f %%", 100*low, 100*high)
}

// verdict compares the confidence interval of a share with the smallest share required.
func (n among) verdict(least float64) string {
	low, high := tally{known: n.all, right: n.good}.interval()
	switch {
	case n.all > 0 && low >= least:
		return "pass"
	case n.all > 0 && high < least:
		return "fail"
	}
	return "inconclusive"
}

// reportDiagnoses records the rows about verdicts on captures.
func reportDiagnoses(t *testing.T, trials []*diagnosed) {
	t.Helper()
	row := func(name, claim string, n among, spread []string, least float64) {
		t.Helper()
		record(t, bankRow{Section: "Verdicts on captures", Case: name, Claim: claim, Measured: n.String(),
			Spread: strings.Join(append([]string{n.interval()}, spread...), "; "), Verdict: n.verdict(least),
			Command: "make bank RUN=TestBankDiagnose"})
	}
	for _, r := range trials {
		if r.err != nil {
			t.Errorf("%s at %v: %v", r.cause.Name, r.point, r.err)
		}
	}
	trials = slices.DeleteFunc(slices.Clone(trials), func(r *diagnosed) bool { return r.err != nil })
	least := map[string]float64{"sender": 0.9, "receiver": 0.85, "middle": 0.85}
	near := map[string]float64{"sender": 0.05, "receiver": 0.1, "middle": 0.1}
	var confident, predicted, lossNoted, agreed among
	for _, vantage := range vantages {
		var right, window among
		var wrong []string
		var off []float64
		split := map[string]*among{"super-segments": {}, "packets": {}, "to 20 Mbit/s": {}, "above": {}}
		each(trials, vantage, func(r *diagnosed, v *view) {
			if ok, known := r.fits(v); known {
				right.count(ok)
				split[map[bool]string{true: "super-segments", false: "packets"}[v.Offloads]].count(ok)
				split[map[bool]string{true: "to 20 Mbit/s", false: "above"}[r.point.RateBps <= lightest]].count(ok)
				confident.count(ok || v.Confidence != verdict.High)
				if !ok {
					wrong = append(wrong, r.cause.Name)
				}
				if p := v.Prediction; p != nil && ok && (v.Limiter == r.cause.Limiter || v.Limiter == verdict.Sender) {
					predicted.count(r.foresaw(p))
				}
			}
			if v.WindowShare >= 0 {
				o := math.Abs(windowClock(v.flow) - v.WindowShare)
				off = append(off, o)
				window.count(o <= near[vantage])
			}
			if v.Lost > 0 && v.flow.Unseen > 0 {
				lossNoted.count(slices.ContainsFunc(v.Evidence, func(e verdict.Evidence) bool {
					return strings.Contains(e.Text,
						"capture")
				}))
			}
		})
		var parts []string
		for name, n := range split {
			parts = append(parts, fmt.Sprintf("%s %v", name, n))
		}
		slices.Sort(parts)
		if slices.Sort(wrong); len(wrong) > 0 {
			parts = append(parts, "wrong: "+strings.Join(slices.Compact(wrong), ", "))
		}
		row("verdict at the "+vantage, fmt.Sprintf("right in at least %.0f %%", 100*least[vantage]), right, parts,
			least[vantage])
		if slices.Sort(off); len(off) > 0 {
			row("share of a full window at the "+vantage, fmt.Sprintf("within %.0f points of the kernel's clock in 90 %%",
				100*near[vantage]), window,
				[]string{fmt.Sprintf("median off %.1f, most %.1f points", 100*off[len(off)/2], 100*off[len(off)-1])}, 0.9)
		}
	}
	var differ []string
	for _, r := range trials {
		for _, offloads := range []bool{true, false} {
			if agreed.count(r.agree(offloads)); !r.agree(offloads) {
				differ = append(differ, r.cause.Name)
			}
		}
	}
	row("wrong with high confidence", "in at most 1 %", confident, []string{"counted are those that are not"}, 0.99)
	row("the vantages agree", "one limiter, each a true one, or unknown, in 95 %", agreed, differ, 0.95)
	row("prediction after the fix", "inside the printed range in 90 %", predicted, nil, 0.9)
	if lossNoted.all > 0 {
		row("packets that a capture lost", "said beside the verdict", lossNoted, nil, 0.9)
	}
}

// each calls do for the views from one vantage.
func each(trials []*diagnosed, vantage string, do func(*diagnosed, *view)) {
	for _, r := range trials {
		for i := range r.views {
			if r.views[i].captureInfo.Vantage == vantage {
				do(r, &r.views[i])
			}
		}
	}
}
