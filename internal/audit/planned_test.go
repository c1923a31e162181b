package audit

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestJudge_PlannedValuesLimitNothing checks that plan and audit use one arithmetic: on the path that a plan was made
// for, a host with its settings has no limit.
func TestJudge_PlannedValuesLimitNothing(t *testing.T) {
	judged := 0
	for _, name := range []string{"windows-2000", "windows-xp", "server-2003", "windows-98", "windows-7", "server-2019",
		"linux-5.4", "linux-6.18", "freebsd-14", "macos-14"} {
		target := must.Get(plan.ParseTarget(name))(t)
		for _, rate := range []float64{64e3, 1.3e6, 7e6, 34e6, 140e6, 900e6} {
			for _, rtt := range []time.Duration{300 * time.Microsecond, 4 * time.Millisecond, 23 * time.Millisecond,
				77 * time.Millisecond, 310 * time.Millisecond} {
				path := plan.Path{RateBps: rate, RTT: rtt}
				p := must.Get(plan.New(path, target, plan.Options{}))(t)
				if slices.ContainsFunc(p.Warnings, func(w plan.Statement) bool { return w.Code == plan.AutotuningEnds }) {
					continue // no setting of that Windows fills this path
				}
				s := &Snapshot{System: target.Family, Version: target.Version, Values: map[string]string{}}
				for _, setting := range p.Settings {
					s.Values[setting.Name] = setting.Value
				}
				judged++
				for _, f := range Judge(s, Path{RateBps: rate, RTT: rtt}) {
					if f.Grade == Limits {
						t.Errorf("%s, %.3g bit/s x %v: %s = %s limits to %.4g bit/s", name, rate, rtt, f.Parameter, f.Value, f.CapBps)
					}
				}
			}
		}
	}
	if judged < 250 {
		t.Errorf("only %d plans were judged", judged)
	}
}

// TestJudge_LimitCostsTenPercent checks the edge: a limit is what costs a tenth of the goodput.
func TestJudge_LimitCostsTenPercent(t *testing.T) {
	const window = 262140 // HighlyRestricted
	for cost, limits := range map[float64]bool{0.3: false, 5: false, 7: false, 11: true, 50: true} {
		rtt := 60 * time.Millisecond
		rate := window * 8 / rtt.Seconds() / (1 - cost/100) * 1500 / 1460
		s := windows("10.0.19045", map[string]string{"AutoTuningLevelLocal": "HighlyRestricted"})
		found := Judge(s, Path{RateBps: rate, RTT: rtt})
		if got := len(found) > 0 && found[0].Grade == Limits; got != limits {
			t.Errorf("%g %%: limits %v, want %v: %s", cost, got, limits, fmt.Sprint(found))
		}
		if limits && math.Abs(found[0].CostBps/(found[0].CapBps+found[0].CostBps)*100-cost) > 2 {
			t.Errorf("%g %%: costs %g of %g", cost, found[0].CostBps, found[0].CapBps)
		}
	}
}
