//go:build linux

package live

import (
	"fmt"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestSlowLines_TuneFindsTheirRate checks that tune's rate of a modem and of an ISDN channel is the line's rate, to 2
// %, by either end's counters, and that the program's goodput is no more than that.
func TestSlowLines_TuneFindsTheirRate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile   string
		direction transfer.Direction
		bps       float64
	}{{"isdn-64k", transfer.Up, 64e3}, {"isdn-64k", transfer.Down, 64e3}, {"modem-28.8k", transfer.Up, 28.8e3},
		{"modem-28.8k", transfer.Down, 28.8e3}} {
		t.Run(c.profile+" "+string(c.direction), func(t *testing.T) {
			t.Parallel()
			stalltest.Undisturbed(t, func() error {
				doc := harness.NewTuneSite(t, c.profile).Tune(t, c.direction, "--budget", "24s")
				if len(doc.Directions) != 1 {
					return fmt.Errorf("%+v", doc)
				}
				d := &doc.Directions[0]
				line := c.bps * 1460 / 1500 // of payload
				if got := d.Path.Bottleneck / c.bps; got < 0.98 || got > 1.02 {
					return fmt.Errorf("it carries %.0f bit/s: %.3f of the line's", d.Path.Bottleneck, got)
				}
				if got := d.Before.Median / line; got < 0.9 || got > 1.02 {
					return fmt.Errorf("before: %.0f bit/s, %.3f of what the line carries", d.Before.Median, got)
				}
				return nil
			})
		})
	}
}
