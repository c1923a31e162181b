package runner

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// world simulates far ends with set rates, and a history that forgets nothing.
type world struct {
	t        *testing.T
	rng      *rand.Rand
	takes    time.Duration // duration of a test
	rates    map[string]func(time.Time) float64
	kept     map[string][]recheck.Result
	reported map[string]int // number of reports
	visits   []recheck.Visit
	running  bool
	shy      []string // far ends without retests
	locked   func(peer string) bool
	fails    func(peer string, at time.Time) error
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, rng: rand.New(rand.NewPCG(seed, 16)), takes: 3 * time.Second,
		rates: map[string]func(time.Time) float64{}, kept: map[string][]recheck.Result{},
		reported: map[string]int{}}
}

func (w *world) test(_ context.Context, o Order) (*recheck.Result, error) {
	if w.running {
		w.t.Error("two tests at once")
	}
	w.running = true
	defer func() { w.running = false }()
	time.Sleep(w.takes)
	if w.fails != nil {
		if err := w.fails(o.Peer, o.At); err != nil {
			return nil, err
		}
	}
	bps := w.rates[o.Peer](o.At)
	r := recheck.Result{At: o.At, Retest: o.Retest, FarKernel: "Linux 6.1",
		Cost:       recheck.Cost{Bytes: int64(bps * w.takes.Seconds() / 8), Time: w.takes},
		Directions: []recheck.Direction{{Name: "up", GoodputBps: bps, Limiter: "bottleneck", MTU: "1500 bytes", RTTMin: 2e7}}}
	w.kept[o.Peer] = append(w.kept[o.Peer], r)
	return &r, nil
}

func (w *world) load(_ context.Context, peer string) (past Past, err error) {
	past.Path = &recheck.Detector{Public: slices.Contains(w.shy, peer)}
	for i, r := range w.kept[peer] {
		events := past.Path.Add(r)
		if i >= w.reported[peer] && len(events) > 0 {
			past.Unreported = append(past.Unreported, recheck.Visit{Peer: peer, At: r.At, Result: &r, Events: events})
		}
		if !r.Retest {
			past.Last = r.At
		}
	}
	return past, nil
}

func (w *world) spent(_ context.Context, since time.Time) (all recheck.Cost, err error) {
	for _, results := range w.kept {
		for _, r := range results {
			if !r.At.Before(since) {
				all = all.Plus(r.Cost)
			}
		}
	}
	return all, nil
}

func (w *world) config(peers ...string) Config {
	return Config{Peers: peers, Schedule: recheck.Schedule{Every: 6 * time.Hour}, Test: w.test, Load: w.load,
		Spent: w.spent,
		Lock: func(peer string) (func(), error) {
			if w.locked != nil && w.locked(peer) {
				return nil, nil
			}
			return func() {}, nil
		},
		Report: func(_ context.Context, v recheck.Visit) {
			w.visits = append(w.visits, v)
			if v.Result != nil {
				w.reported[v.Peer] = 1 + slices.IndexFunc(w.kept[v.Peer], func(r recheck.Result) bool {
					return r.At.Equal(v.Result.At)
				})
			}
		},
		Draw: w.rng.ExpFloat64}
}

// steady returns a rate with noise that drops to a share at a time.
func (w *world) steady(noise float64, falls time.Time, to float64) func(time.Time) float64 {
	return func(at time.Time) float64 {
		bps := 1e8 * math.Exp(noise*w.rng.NormFloat64())
		if !falls.IsZero() && !at.Before(falls) {
			bps *= to
		}
		return bps
	}
}

func (w *world) events(kind changepoint.Event) (all []record.RecheckEvent) {
	for _, v := range w.visits {
		for _, e := range v.Events {
			if e.Event == kind {
				all = append(all, e)
			}
		}
	}
	return all
}

// during runs visits for a given time.
func during(t *testing.T, cfg Config, length time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	if err := Run(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
}

// TestRun_DropIsReportedAsDipThenChange halves one far end's rate. The dip is reported within half an hour of the
// first low result, the change once it lasted over visits more than 2 hours apart. The other far end has no events.
func TestRun_DropIsReportedAsDipThenChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		falls := time.Now().AddDate(0, 0, 20)
		w.rates["a"], w.rates["b"] = w.steady(0.02, falls, 0.5), w.steady(0.02, time.Time{}, 0)
		during(t, w.config("a", "b"), 30*24*time.Hour)
		dips, changes := w.events(changepoint.Dipped), w.events(changepoint.Changed)
		if len(dips) != 1 || len(changes) != 1 {
			t.Fatalf("dips %v, changes %v", dips, changes)
		}
		first := falls.AddDate(1, 0, 0)
		var confirmed []time.Time
		for _, v := range w.visits {
			if v.Peer == "b" && len(v.Events) > 0 {
				t.Errorf("b: %v", v.Events)
			}
			if v.Peer != "a" || v.At.Before(falls) {
				continue
			}
			if v.At.Before(first) {
				first = v.At
			}
			if !v.Retest && v.At.After(dips[0].At) && !v.At.After(changes[0].At) {
				confirmed = append(confirmed, v.At)
			}
		}
		if took := dips[0].At.Sub(first); took > 30*time.Minute || !dips[0].Since.Equal(first) {
			t.Errorf("the dip is reported %v after the first low result", took)
		}
		if len(confirmed) < 2 || confirmed[len(confirmed)-1].Sub(confirmed[0]) < 2*time.Hour {
			t.Errorf("the change lasted at %v", confirmed)
		}
	})
}

// TestRun_KeepsQuietHoursAndBudgets runs two weeks with a change to summer time and many suspicions. No test runs
// in quiet hours or above the day's budget.
func TestRun_KeepsQuietHoursAndBudgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		berlin := must.Get(time.LoadLocation("Europe/Berlin"))(t)
		quiet := must.Get(recheck.ParseHours("08:00-18:00", berlin))(t)
		time.Sleep(time.Until(time.Date(2026, 3, 20, 0, 0, 0, 0, berlin)))
		w := newWorld(t, 2)
		for _, peer := range []string{"a", "b"} {
			w.rates[peer] = func(at time.Time) float64 {
				if w.rng.IntN(5) == 0 {
					return 3e7
				}
				return w.steady(0.02, time.Time{}, 0)(at)
			}
		}
		cfg := w.config("a", "b")
		cfg.Schedule = recheck.Schedule{Every: time.Hour, Quiet: quiet}
		cfg.Budget = recheck.Budget{Bytes: 500e6, Time: 100 * time.Second}
		during(t, cfg, 14*24*time.Hour)
		days, tests, skipped, retests := map[time.Time]recheck.Cost{}, 0, map[recheck.Skip]int{}, 0
		for _, v := range w.visits {
			if v.Skip != "" {
				skipped[v.Skip]++
				continue
			}
			tests++
			if v.Retest {
				retests++
			}
			if quiet.Quiet(v.At) {
				t.Errorf("a test at %v", v.At.In(berlin))
			}
			day := quiet.Day(v.At)
			days[day] = days[day].Plus(v.Result.Cost)
		}
		for day, cost := range days {
			if cost.Bytes > cfg.Budget.Bytes || cost.Time > cfg.Budget.Time {
				t.Errorf("on %v: %+v", day, cost)
			}
		}
		if len(days) < 14 || tests < 70 || retests == 0 || skipped[recheck.BytesBudget] == 0 {
			t.Errorf("%d tests, %d of them re-tests, on %d days; not made %v", tests, retests, len(days), skipped)
		}
	})
}

func TestRun_OnceVisitsAndRetestsEachFarEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 3)
		w.rates["a"], w.rates["b"] = w.steady(0.02, time.Time{}, 0), w.steady(0.02, time.Time{}, 0)
		cfg := w.config("a", "b")
		cfg.Once = true
		for range 60 {
			must.Do(t, Run(t.Context(), cfg))
			time.Sleep(6 * time.Hour)
		}
		if len(w.visits) != 120 {
			t.Fatalf("%d visits", len(w.visits))
		}
		w.visits = nil
		w.rates["b"] = w.steady(0.02, time.Unix(0, 0), 0.5)
		begin := time.Now()
		must.Do(t, Run(t.Context(), cfg))
		dips := w.events(changepoint.Dipped)
		if len(dips) != 1 || dips[0].At.Sub(begin) > 30*time.Minute || len(w.visits) < 5 {
			t.Errorf("dips %v after %d visits", dips, len(w.visits))
		}
	})
}

func TestRun_RestartKeepsTheSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 4)
		w.rates["a"] = w.steady(0.02, time.Time{}, 0)
		cfg := w.config("a")
		for range 50 {
			during(t, cfg, 5*time.Minute)
		}
		if n := len(w.kept["a"]); n == 0 || n > 4 {
			t.Errorf("%d tests in 250 minutes of a process that is started every 5", n)
		}
	})
}

func TestRun_BusyOrUnreachableFarEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 5)
		w.rates["a"] = w.steady(0.02, time.Time{}, 0)
		w.locked = func(string) bool { return true }
		cfg := w.config("a")
		cfg.Once = true
		if err := Run(t.Context(), cfg); err != nil || len(w.visits) != maxDelays || w.visits[0].Skip != recheck.Busy {
			t.Errorf("%v, %+v", err, w.visits)
		}
		w.locked, w.visits = nil, nil
		gone := errors.New("gone")
		w.fails = func(string, time.Time) error { return gone }
		if err := Run(t.Context(), cfg); err != nil || len(w.visits) != 1 || w.visits[0].Err != gone {
			t.Errorf("%v, %+v", err, w.visits)
		}
		// unreachable while a change is suspected: retests do not repeat without end
		w.fails, w.visits, cfg.Once = nil, nil, false
		during(t, cfg, 20*24*time.Hour)
		n := len(w.visits)
		w.rates["a"] = w.steady(0.02, time.Unix(0, 0), 0.5)
		w.fails = func(string, time.Time) error {
			if len(w.visits) > n {
				return gone
			}
			return nil
		}
		during(t, cfg, 24*time.Hour)
		failed := len(slices.DeleteFunc(slices.Clone(w.visits[n:]), func(v recheck.Visit) bool { return v.Err == nil }))
		if failed == 0 || failed > 30 {
			t.Errorf("%d tests fail on the day when the far end is gone", failed)
		}
	})
}

// TestRun_ReportsPendingEventsOnce ends a process after it stored each result and before it reports. The next
// process reports the dip before it tests, and no later one does.
func TestRun_ReportsPendingEventsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 7)
		w.rates["a"] = w.steady(0.02, time.Time{}, 0)
		during(t, w.config("a"), 20*24*time.Hour)
		w.rates["a"], w.visits = w.steady(0.02, time.Unix(0, 0), 0.5), nil
		begin := time.Now()
		killed := w.config("a")
		killed.Once = true
		for range 5 { // the first low result, then retests three minutes apart
			ctx, kill := context.WithCancel(t.Context())
			killed.Test = func(ctx context.Context, o Order) (*recheck.Result, error) {
				_, err := w.test(ctx, o)
				kill()
				return nil, err
			}
			if err := Run(ctx, killed); !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			time.Sleep(changepoint.Soon)
		}
		for _, v := range w.visits[:max(len(w.visits)-1, 0)] {
			if len(v.Events) > 0 {
				t.Errorf("reported by the killed process: %+v", v)
			}
		}
		during(t, w.config("a"), time.Minute)
		during(t, w.config("a"), time.Minute)
		dips := w.events(changepoint.Dipped)
		if len(dips) != 1 || dips[0].At.Sub(begin) > 30*time.Minute || !w.visits[0].Late {
			t.Errorf("%d dips, %+v", len(dips), w.visits)
		}
	})
}

// TestRun_InterruptedVisitIsNotReported expects no report of a failure when the process is stopped.
func TestRun_InterruptedVisitIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 6)
		ctx, cancel := context.WithCancel(t.Context())
		cfg := w.config("a")
		cfg.Test = func(ctx context.Context, _ Order) (*recheck.Result, error) {
			cancel()
			return nil, ctx.Err()
		}
		if err := Run(ctx, cfg); !errors.Is(err, context.Canceled) || len(w.visits) != 0 {
			t.Errorf("%v, %+v", err, w.visits)
		}
	})
}
