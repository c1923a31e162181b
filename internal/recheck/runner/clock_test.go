package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// TestRun_ClockSetBackDelaysNoVisit sets a clock back that was a year ahead, while a path is normal, suspected or
// in a dip. The next scheduled visit stays within the schedule's longest gap.
func TestRun_ClockSetBackDelaysNoVisit(t *testing.T) {
	const ahead = 365 * 24 * time.Hour
	for name, falls := range map[string]bool{"usual": false, "fallen": true} {
		for _, after := range []time.Duration{10*24*time.Hour + time.Hour, 10*24*time.Hour + 7*time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 3)
				set := time.Now().Add(after)
				fall := time.Time{}
				if falls {
					fall = set.Add(ahead - 6*time.Hour)
				}
				w.rates["a"] = w.steady(0.02, fall, 0.5)
				cfg := w.config("a")
				cfg.Now = func() time.Time {
					if now := time.Now(); now.Before(set) {
						return now.Add(ahead)
					}
					return time.Now()
				}
				var visits []time.Time // by an unchanged clock
				report := cfg.Report
				cfg.Report = func(ctx context.Context, v recheck.Visit) {
					report(ctx, v)
					if !v.Retest {
						visits = append(visits, time.Now())
					}
				}
				cfg.Schedule = recheck.Schedule{Every: 4 * time.Hour}
				during(t, cfg, after+5*24*time.Hour)
				later := 0
				for i, at := range visits[1:] {
					if gap := at.Sub(visits[i]); gap > max(10*time.Hour, changepoint.Apart)+time.Hour {
						t.Errorf("%s, set after %v: %v without a visit", name, after, gap)
					}
					if at.After(set) {
						later++
					}
				}
				if later < 10 {
					t.Errorf("%s, set after %v: %d visits since", name, after, later)
				}
			})
		}
	}
}
