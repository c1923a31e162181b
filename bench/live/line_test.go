//go:build linux

package live

import (
	"fmt"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
)

// TestLinesAreFull compares links with their configuration, by the links' own counters.
func TestLinesAreFull(t *testing.T) {
	const span = 2 * time.Second
	full := func(t *testing.T, c harness.LineCase) (late lab.Lateness, wrong error) {
		share, late := harness.MeasureFullLine(t, c, span)
		return late, harness.ErrorUnless(share >= 0.995, "carried %.2f %% of its rate", 100*share)
	}
	steady := func(t *testing.T, c harness.LineCase) (late lab.Lateness, wrong error) {
		up, late := harness.MeasurePacedLine(t, c, span)
		return late, harness.ErrorUnless(up.DroppedQueue == 0, "dropped %d", up.DroppedQueue)
	}
	exchanges := func(t *testing.T, c harness.LineCase) (late lab.Lateness, wrong error) {
		share, late := harness.MeasureExchanges(t, c)
		return late, harness.ErrorUnless(share >= 0.98, "%.2f %% of the exchanges that are possible", 100*share)
	}
	for _, c := range []struct {
		name    string
		cell    harness.LineCase
		measure func(*testing.T, harness.LineCase) (lab.Lateness, error)
	}{
		// Their queues last longer than a busy machine keeps a program waiting.
		{"full", harness.LineCase{RateBps: 20e6, RTT: 40 * time.Millisecond}, full},
		{"full", harness.LineCase{RateBps: 50e6, RTT: 40 * time.Millisecond, IPv6: true}, full},
		{"steady", harness.LineCase{RateBps: 20e6, RTT: 11 * time.Millisecond}, steady},
		{"steady", harness.LineCase{RateBps: 50e6, RTT: 40 * time.Millisecond, IPv6: true}, steady},
		{"exchanges", harness.LineCase{RateBps: 20e6, RTT: 40 * time.Millisecond}, exchanges},
	} {
		t.Run(c.name+" "+c.cell.String(), func(t *testing.T) {
			stalltest.Undisturbed(t, func() error {
				late, wrong := c.measure(t, c.cell)
				// A machine may stall once for longer than a queue lasts; a faulty lab stalls each time.
				for range 2 {
					if wrong == nil || late.Worse().Max < harness.PacedQueue {
						break
					}
					late, wrong = c.measure(t, c.cell)
				}
				if wrong != nil {
					wrong = fmt.Errorf("%w, and the lab says that it was late by %+v at most", wrong, late.Worse())
				}
				return wrong
			})
		})
	}
}
