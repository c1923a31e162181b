package rfc6349

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// tester is a running test.
type tester struct {
	cfg       Config
	out       *Result
	began     time.Time
	simulated time.Duration // transfer time on simulated paths, which the clock does not show
	remote    remote
	plan      plan
	best      float64
	rough     map[transfer.Direction]float64 // first transfer's rate at the IP layer
	mostFPS   float64                        // highest frames/s that these hosts carried
}

func newTester(cfg Config) *tester {
	cfg.Tolerance = cmp.Or(cfg.Tolerance, DefaultTolerance)
	cfg.Time = cmp.Or(cfg.Time, DefaultTime)
	cfg.Frames = cfg.Frames.withDefaults()
	t := &tester{cfg: cfg, out: &Result{TrialTime: cfg.Frames.Time}, began: time.Now(),
		rough: map[transfer.Direction]float64{}}
	for _, d := range cfg.Directions {
		t.out.Directions = append(t.out.Directions, Direction{Direction: d, CommittedBps: cfg.Committed[d], Tests: []Test{}})
	}
	return t
}

func (t *tester) run(ctx context.Context) error {
	for i := range t.out.Directions {
		if err := t.meet(ctx, &t.out.Directions[i]); err != nil {
			return err
		}
	}
	if err := t.idle(ctx); err != nil {
		return err
	}
	for i := range t.out.Directions {
		if err := t.bottleneck(ctx, &t.out.Directions[i]); err != nil {
			return err
		}
	}
	t.maxWithReverseAcks()
	t.plan = t.makePlan()
	t.out.RunTime = t.plan.length
	for i := range t.out.Directions {
		d := &t.out.Directions[i]
		if err := t.ladder(ctx, d); err != nil {
			return err
		}
		if err := t.full(ctx, d); err != nil {
			return err
		}
	}
	if err := t.both(ctx); err != nil {
		return err
	}
	if err := t.decide(ctx); err != nil {
		return err
	}
	for i := range t.out.Directions {
		if err := t.frames(ctx, &t.out.Directions[i], len(t.out.Directions)-1-i); err != nil {
			return err
		}
	}
	return nil
}

func (t *tester) elapsed() time.Duration { return time.Since(t.began) + t.simulated }

// rtt is the idle round trip.
func (t *tester) rtt() time.Duration { return time.Duration(t.out.Path.RTT) }

// budgetSpent reports whether the budget is spent.
func (t *tester) budgetSpent() bool { return t.cfg.Budget > 0 && t.elapsed() >= t.cfg.Budget }

// transfer runs one TCP transfer.
func (t *tester) transfer(ctx context.Context, spec transfer.Spec) (*transfer.Result, []transfer.Interval, error) {
	var intervals []transfer.Interval
	start := time.Now()
	r, err := transfer.Run(ctx, t.cfg.Peer, spec, func(i transfer.Interval) { intervals = append(intervals, i) })
	if r == nil {
		return nil, nil, err
	}
	return r, intervals, errors.Join(err, t.account(r, time.Since(start)))
}

// account records the ends of a transfer and its cost.
func (t *tester) account(r *transfer.Result, took time.Duration) error {
	if r.Near != nil || r.Far != nil {
		t.out.Near = r.Near
		t.out.Far = r.Far
	}
	received, ok := r.Received()
	if !ok || received.Bytes == 0 {
		return fmt.Errorf("%s: nothing arrived in %v", r.Spec.Direction, took.Round(time.Millisecond))
	}
	t.out.Bytes += received.Bytes
	t.simulated += max(received.Last-took, 0)
	t.best = max(t.best, received.Bps())
	return nil
}

// report passes the step that begins to Progress; d is nil for both directions.
func (t *tester) report(d *Direction, step Statement) {
	if t.cfg.Progress == nil {
		return
	}
	p := Progress{Doing: step, BestBps: t.best, Done: min(float64(t.elapsed())/float64(max(t.expected(), 1)), 1)}
	if d != nil {
		p.Direction = d.Direction
	}
	t.cfg.Progress(p)
}

// turn returns the values that number run i of the repeated ones.
func (t *tester) turn(i int) verdict.Values {
	return verdict.Values{"run": float64(i + 1), "runs": float64(t.plan.repeats)}
}

func (t *tester) warn(s Statement) { t.out.Warnings = append(t.out.Warnings, s) }

// tcpOf is the goodput that a rate at the IP layer carries.
func (t *tester) tcpOf(bps float64) float64 {
	return model.Goodput(bps, t.out.Path.MSS, t.out.Path.Headers)
}

// ipOf is the rate at the IP layer that a goodput needs.
func (t *tester) ipOf(goodput float64) float64 {
	return model.LinkRate(goodput, t.out.Path.MSS, t.out.Path.Headers)
}

// committedIP is the committed rate at the IP layer for full packets.
func (t *tester) committedIP(d *Direction) float64 {
	packet := float64(t.out.Path.MSS + t.out.Path.Headers)
	return d.CommittedBps * packet / (packet + float64(t.cfg.Overhead))
}
