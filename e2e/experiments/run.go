package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
)

// runner measures cells with a fullpipe program.
type runner struct {
	program  string
	repeats  int
	progress io.Writer
}

// busy is the goodput from which on a transfer is given the machine for itself: links of
// some Mbit/s need so little of it that several run side by side.
const busy = 20e6

// run measures all cells, rounds of them one after the other so that what drifts meets
// every cell alike.
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
	total := r.repeats * (len(quick) + len(slow))
	done := 0
	for range r.repeats {
		for _, group := range []struct {
			cells []*cell
			width int
		}{{slow, 4}, {quick, 1}} {
			if err := r.sideBySide(ctx, group.cells, group.width, func() {
				done++
				fmt.Fprintf(r.progress, "\r%d of %d transfers", done, total)
			}); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(r.progress)
	return nil
}

func (r runner) sideBySide(ctx context.Context, cells []*cell, width int, finished func()) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	work := make(chan *cell)
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range width {
		workers.Go(func() {
			for c := range work {
				rate, limiter, err := r.measure(ctx, c)
				mu.Lock()
				if err != nil {
					stop(err)
				} else {
					c.measured, c.limiters = append(c.measured, rate), append(c.limiters, limiter)
					finished()
				}
				mu.Unlock()
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
	return context.Cause(ctx)
}

// measure runs one cell once.
func (r runner) measure(ctx context.Context, c *cell) (bps float64, limiter string, err error) {
	cmd := exec.CommandContext(ctx, r.program, append([]string{"measure", "lab:" + c.lab, "--json"}, c.args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.Output()
	var document struct {
		Error *struct{ Message string }
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
		return 0, "", fmt.Errorf("%s: %s", c.command(), document.Error.Message)
	case err != nil:
		return 0, "", fmt.Errorf("%s: %w", c.command(), err)
	case len(document.Directions) == 0:
		return 0, "", fmt.Errorf("%s: measured nothing", c.command())
	}
	d := document.Directions[0]
	if d.Steady > 0 {
		return d.Steady, d.Limiter, nil
	}
	return d.Goodput, d.Limiter, nil
}
