package runner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// public makes two far ends of a world public and stores their turns as a file does.
func (w *world) public(cfg Config, peers ...string) Config {
	var until time.Time
	cfg.Public = func(peer string) bool {
		for _, p := range peers {
			if p == peer {
				return true
			}
		}
		return false
	}
	cfg.Turn = func(now, next time.Time) (time.Time, error) {
		if until.After(now) {
			return until, nil
		}
		until = next
		return time.Time{}, nil
	}
	return cfg
}

// gaps returns the shortest, mean and longest interval between tests of far ends, and the number of tests of each.
func (w *world) gaps(peers ...string) (least, mean, most time.Duration, each map[string]int) {
	least, each = 1<<62, map[string]int{}
	var first, last time.Time
	n := 0
	for _, v := range w.visits {
		of := false
		for _, p := range peers {
			of = of || v.Peer == p
		}
		if !of || v.Skip != "" {
			continue
		}
		if each[v.Peer]++; last.IsZero() {
			first = v.At
		} else {
			least, most, n = min(least, v.At.Sub(last)), max(most, v.At.Sub(last)), n+1
		}
		last = v.At
	}
	return least, last.Sub(first) / time.Duration(max(n, 1)), most, each
}

// TestRun_PublicServersKeepTheirInterval tests two public far ends six hours apart in the mean, both together,
// without retests. A private far end keeps its own schedule. Events of public far ends are still reported.
func TestRun_PublicServersKeepTheirInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 11)
		falls := time.Now().AddDate(0, 0, 15)
		w.rates["p"], w.rates["q"] = w.steady(0.02, falls, 0.5), w.steady(0.02, time.Time{}, 0)
		w.rates["own"] = w.steady(0.02, time.Time{}, 0)
		cfg := w.public(w.config("p", "q", "own"), "p", "q")
		cfg.Schedule.Every = 3 * time.Hour
		w.shy = []string{"p", "q"}
		during(t, cfg, 30*24*time.Hour)
		least, mean, most, each := w.gaps("p", "q")
		if least < 36*time.Minute || most > 15*time.Hour+time.Minute || mean < 5*time.Hour || mean > 7*time.Hour ||
			each["p"]-each["q"] > 1 || each["q"]-each["p"] > 1 {
			t.Errorf("%v, %v and %v apart, %v", least, mean, most, each)
		}
		if _, mean, _, _ := w.gaps("own"); mean > 210*time.Minute {
			t.Errorf("the user's own is tested every %v", mean)
		}
		var reported []changepoint.Event
		for _, v := range w.visits {
			if v.Retest && v.Peer != "own" {
				t.Fatalf("tested again at once: %+v", v)
			}
			for _, e := range v.Events {
				reported = append(reported, e.Event)
				if v.Peer != "p" || e.Metric != recheck.Goodput || v.At.Before(falls) {
					t.Errorf("%s: %+v", v.Peer, e)
				}
			}
		}
		if len(reported) != 2 || reported[0] != changepoint.Dipped || reported[1] != changepoint.Changed {
			t.Errorf("%v was reported", reported)
		}
	})
}

// TestRun_RestartsDoNotHurryPublicServers starts processes every 20 minutes, which together keep the turns of one
// process.
func TestRun_RestartsDoNotHurryPublicServers(t *testing.T) {
	for name, once := range map[string]bool{"a timer": true, "started again": false} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 12)
			w.rates["p"], w.rates["q"] = w.steady(0.02, time.Time{}, 0), w.steady(0.02, time.Time{}, 0)
			cfg := w.public(w.config("p", "q"), "p", "q")
			cfg.Once = once
			for range 3 * 24 * 15 {
				if once {
					must.Do(t, Run(t.Context(), cfg))
					time.Sleep(20 * time.Minute)
				} else {
					during(t, cfg, 20*time.Minute)
				}
			}
			least, mean, most, each := w.gaps("p", "q")
			if least < 36*time.Minute || mean < 5*time.Hour || mean > 7*time.Hour ||
				most > 15*time.Hour+30*time.Minute || each["p"] < 20 || each["q"] < 20 {
				t.Errorf("%s: %v, %v and %v apart, %v", name, least, mean, most, each)
			}
			for _, v := range w.visits {
				if v.Skip != "" && (v.Skip != recheck.Policy || !v.Next.After(v.At)) {
					t.Fatalf("%s: %+v", name, v)
				}
			}
		})
	}
}
