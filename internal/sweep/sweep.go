// Package sweep measures a grid: every combination of send buffers, receive buffers,
// write sizes, directions and congestion controls, in random order, each as often as its
// interval needs. What is measured is kept in a journal at once, so a sweep that is cut
// off goes on where it was. Cells that the model is sure of are measured last, or not at
// all, and are marked as predicted.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Config says what to measure.
type Config struct {
	Peer    transfer.Peer
	Rules   Rules
	Journal *Journal // of this sweep; its Identity has the grid and a run's length
	// Progress is called from Run's goroutine before each run; nil: not at all.
	Progress func(Progress)
}

// Progress is what a sweep does now.
type Progress struct {
	Cell    Cell
	Done    int     // cells that need no further run
	Cells   int     // of the grid
	Share   float64 // of the work or the budget, 0 to 1
	BestBps float64 // so far; 0: nothing yet
}

// Result is what is known of the grid.
type Result struct {
	Identity Identity
	Rules    Rules
	Ends     Ends
	Paths    []record.SweepPath
	Cells    []Measured // in the order of Axes.Cells
	Elapsed  time.Duration
	Bytes    int64
	Complete bool // every cell was measured as the Rules say, or cannot be
}

// Measured is one cell and what is known of it.
type Measured struct {
	Cell
	Runs      []Trial // the good ones
	Problems  []string
	Interval  stats.Interval // of the runs' goodputs, 95 %
	Tight     bool           // as tight as was asked for
	Limiter   verdict.Name
	Subtype   string
	Refused   string      // why it cannot be had; ""
	Predicted *Prediction // nil: measured, or not known
}

// failuresInARow end a sweep: its far end is gone.
const failuresInARow = 3

// Run measures until the schedule has nothing left, its budget ends or ctx does. With an
// error the Result holds all that was measured, in earlier processes too.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	id := cfg.Journal.Identity
	s := NewSchedule(id.Axes, cfg.Rules)
	for i, c := range s.cells {
		var refused *transfer.Unsupported
		if err := cfg.Peer.Check(transfer.TCP(c.Spec(id.Time))); errors.As(err, &refused) {
			s.Refuse(i, refused.Error())
		} else if err != nil {
			return nil, err
		}
	}
	for _, r := range cfg.Journal.Runs {
		s.Observe(r)
	}
	l := loop{cfg: cfg, id: id, schedule: s}
	err := l.run(ctx)
	return l.result(), err
}

type loop struct {
	cfg      Config
	id       Identity
	schedule *Schedule
	met      bool
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
		if err := l.cfg.Journal.Add(r); err != nil {
			return err
		}
		l.schedule.Observe(r)
		if r.Problem == "" {
			failed = 0
			continue
		}
		failed++
		if failed == failuresInARow {
			return fmt.Errorf("%d runs in a row failed, the last one: %s: %s", failed, l.schedule.cells[i], r.Problem)
		}
	}
}

// measure carries out one run. An error ends the sweep; a run that failed by itself is
// one with a Problem.
func (l *loop) measure(ctx context.Context, i int) (Trial, error) {
	c := l.schedule.cells[i]
	start := time.Now()
	result, err := transfer.Run(ctx, l.cfg.Peer, c.Spec(l.id.Time), nil)
	elapsed := time.Since(start)
	if ctx.Err() != nil {
		return Trial{}, context.Cause(ctx)
	}
	if err == nil && result == nil {
		err = errors.New("the far end answered nothing")
	}
	if err != nil {
		return Trial{Cell: i, At: start.UTC().Round(time.Millisecond), Elapsed: elapsed, Problem: err.Error()}, nil
	}
	if !l.met {
		if err := l.cfg.Journal.Meet(Ends{newHost(result.Near), newHost(result.Far)}); err != nil {
			return Trial{}, err
		}
		l.met = true
	}
	return newTrial(i, c, start, elapsed, result), nil
}

func newHost(e *transfer.End) *Host {
	if e == nil || len(e.Streams) == 0 {
		return nil
	}
	return &Host{e.Streams[0].Local.Addr().String(), e.Kernel}
}

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

func (l *loop) result() *Result {
	s := l.schedule
	r := &Result{Identity: l.id, Rules: s.rules, Paths: s.Paths(), Elapsed: s.elapsed, Complete: true}
	if ends := l.cfg.Journal.Ends; ends != nil {
		r.Ends = *ends
	}
	sure := s.Sure()
	for i, c := range s.cells {
		m := Measured{Cell: c, Refused: s.refused[i], Interval: s.Interval(i)}
		m.Limiter, m.Subtype = s.Limiter(i)
		if len(s.logs[i]) == 0 {
			m.Limiter = ""
		}
		if p, known := sure[i]; known {
			m.Predicted = &p
			m.Limiter = p.Limiter
		}
		m.Tight = len(s.logs[i]) >= s.rules.Fewest && (s.rules.Precision == 0 || m.Interval.Within(s.rules.Precision))
		r.Complete = r.Complete && s.Done(i)
		r.Cells = append(r.Cells, m)
	}
	for _, run := range s.runs {
		r.Bytes += run.Bytes
		m := &r.Cells[run.Cell]
		if run.Problem != "" {
			m.Problems = append(m.Problems, run.Problem)
		} else {
			m.Runs = append(m.Runs, run)
		}
	}
	return r
}
