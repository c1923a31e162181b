// Package sweep measures a grid: every combination of send buffers, receive buffers, write sizes, directions and
// congestion controls, in random order, each until its confidence interval is narrow enough.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Config is the configuration of a sweep.
type Config struct {
	Peer  transfer.Peer
	Name  string // of the peer, as the user gave it
	Axes  Axes
	Time  time.Duration // of one run
	Rules Rules
	// Progress is called from Run's goroutine before each run; nil: not at all.
	Progress func(Progress)
}

// Progress is what a sweep does now.
type Progress struct {
	Cell    record.SweepSetup
	Done    int     // cells that need no further run
	Cells   int     // of the grid
	Share   float64 // of the work or the budget, 0 to 1
	BestBps float64 // so far; 0: nothing yet
}

// failuresInARow is the number of consecutive failures that ends a sweep.
const failuresInARow = 3

// Run measures until the schedule is complete, its budget is spent or ctx ends. With an error the document has all runs
// so far; it is nil if no run was made.
func Run(ctx context.Context, cfg Config) (*record.Sweep, error) {
	s := NewSchedule(cfg.Axes, cfg.Rules)
	for i, c := range s.cells {
		var refused *transfer.Unsupported
		if err := cfg.Peer.Check(transfer.TCP(spec(c, cfg.Time))); errors.As(err, &refused) {
			s.Refuse(i, refused.Error())
		} else if err != nil {
			return nil, err
		}
	}
	l := loop{cfg: cfg, schedule: s}
	err := l.run(ctx)
	if len(s.runs) == 0 {
		return nil, err
	}
	return l.document(), err
}

type loop struct {
	cfg       Config
	schedule  *Schedule
	near, far *record.Host // nil: not known
}

func (l *loop) run(ctx context.Context) error {
	for failed := 0; ; {
		i, more := l.schedule.Next()
		if !more {
			return nil
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		l.progress(i)
		r, err := l.measure(ctx, i)
		if err != nil {
			return err
		}
		l.schedule.Observe(r)
		if r.Problem == "" {
			failed = 0
			continue
		}
		failed++
		if failed == failuresInARow {
			return fmt.Errorf("%d runs in a row failed, the last one: %s: %s", failed, cellText(l.schedule.cells[i]), r.Problem)
		}
	}
}

// measure carries out one run. An error ends the sweep; a failed run is a Trial with a Problem.
func (l *loop) measure(ctx context.Context, i int) (Trial, error) {
	c := l.schedule.cells[i]
	start := time.Now()
	result, err := transfer.Run(ctx, l.cfg.Peer, spec(c, l.cfg.Time), nil)
	elapsed := time.Since(start)
	if ctx.Err() != nil {
		return Trial{}, context.Cause(ctx)
	}
	if err == nil && result == nil {
		err = errors.New("the far end answered nothing")
	}
	if err != nil {
		return Trial{Cell: i, Elapsed: elapsed, Problem: err.Error()}, nil
	}
	if l.near == nil {
		l.near = newHost(result.Near)
		l.far = newHost(result.Far)
	}
	return newTrial(i, c, elapsed, result), nil
}

func newHost(e *transfer.End) *record.Host {
	if e == nil || len(e.Streams) == 0 {
		return nil
	}
	return &record.Host{Address: e.Streams[0].Local.Addr().String(), Kernel: e.Kernel}
}

func cellText(c record.SweepSetup) string { return string(c.Direction) + ", " + c.Buffers() }

func (l *loop) progress(cell int) {
	if l.cfg.Progress == nil {
		return
	}
	p := Progress{Cell: l.schedule.cells[cell], Cells: len(l.schedule.cells)}
	p.Done, p.Share = l.schedule.Progress()
	for _, path := range l.schedule.Paths() {
		p.BestBps = max(p.BestBps, path.CapacityBps)
	}
	l.cfg.Progress(p)
}
