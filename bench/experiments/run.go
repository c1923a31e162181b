package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
)

// runner measures cells with a fullpipe program.
type runner struct {
	program  string
	repeats  int
	progress io.Writer
}

// busy is the goodput from which on transfers run one at a time: links of a few Mbit/s use so little of a machine
// that several run concurrently below it.
const busy = 20e6

// run measures all cells, round after round, so that drift affects all cells alike.
func (r runner) run(ctx context.Context, experiments []*experiment) error {
	var quick, slow []*cell
	for _, e := range experiments {
		for _, c := range e.cells {
			if expect := max(c.published, c.expected); expect < busy {
				slow = append(slow, c)
			} else {
				quick = append(quick, c)
			}
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	total := r.repeats * (len(quick) + len(slow))
	var done atomic.Int64
	one := func(c *cell) {
		if err := r.measure(ctx, c); err != nil {
			stop(err)
			return
		}
		fmt.Fprintf(r.progress, "\r%d of %d transfers", done.Add(1), total)
	}
	for range r.repeats {
		var both sync.WaitGroup
		both.Go(func() { sideBySide(ctx, 4, slow, one) })
		sideBySide(ctx, 1, quick, one)
		both.Wait()
	}
	fmt.Fprintln(r.progress)
	return context.Cause(ctx)
}

// sideBySide calls a function for each cell, at most a given number at a time, until the context ends.
func sideBySide(ctx context.Context, width int, cells []*cell, do func(*cell)) {
	work := make(chan *cell)
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for c := range work {
				do(c)
			}
		})
	}
	for _, c := range cells {
		if ctx.Err() != nil {
			break
		}
		work <- c
	}
	close(work)
	workers.Wait()
}

// measure runs one cell once, and again if the lab was late. It checks that before it looks at the figure. No other
// goroutine has the cell.
func (r runner) measure(ctx context.Context, c *cell) error {
	const attempts = 4
	for i := range attempts {
		counts, err := r.attempt(ctx, c, i == attempts-1)
		if err != nil || counts {
			return err
		}
		c.dropped++
	}
	return nil
}

// attempt reports whether the run counts. The last attempt always does, and its cell is marked.
func (r runner) attempt(ctx context.Context, c *cell, last bool) (counts bool, err error) {
	cmd := exec.CommandContext(ctx, r.program, append([]string{"measure", "lab:" + c.lab, "--json"}, c.args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.Output()
	var document struct {
		Error *struct{ Message string }
		Late  struct {
			P99        float64 `json:"p99_s"`
			Believable bool
		}
		// goodput counts from the first byte; steady leaves slow start out, as the long
		// transfers of the documents nearly did.
		Directions []struct {
			Goodput float64 `json:"goodput_bps"`
			Steady  float64 `json:"steady_goodput_bps"`
			Limiter string
		}
	}
	if decode := json.Unmarshal(out, &document); err == nil {
		err = decode
	}
	switch {
	case document.Error != nil:
		return false, fmt.Errorf("%s: %s", c.command(), document.Error.Message)
	case err != nil:
		return false, fmt.Errorf("%s: %w", c.command(), err)
	case len(document.Directions) == 0:
		return false, fmt.Errorf("%s: measured nothing", c.command())
	}
	if !document.Late.Believable && !last {
		return false, nil
	}
	d := document.Directions[0]
	c.measured, c.limiters = append(c.measured, cmp.Or(d.Steady, d.Goodput)), append(c.limiters, d.Limiter)
	c.late, c.p99 = c.late || !document.Late.Believable, max(c.p99, document.Late.P99)
	return true, nil
}
