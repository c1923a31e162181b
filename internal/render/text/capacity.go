package text

import (
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Capacity prints the search.
func Capacity(w io.Writer, c *record.Capacity) {
	t := newTable()
	t.row("peer", c.Peer)
	t.write(w, "")
	for _, d := range c.Directions {
		fmt.Fprintf(w, "\n%s, UDP\n", Heading(d.Direction))
		at := ""
		if d.AtLeast {
			at = "at least "
		}
		how := "RFC 9097: maximum of the seconds below"
		if d.Method == record.ByTrials {
			how = "RFC 9097's thresholds, a trial a second"
		}
		fmt.Fprintf(w, "  capacity  %s%s at the IP layer (%s)\n\n", at, units.Rate(d.CapacityBps), how)
		trials := newTable(0, 1, 2, 3)
		trials.row("offered", "received", "lost", "delay variation")
		for _, trial := range d.Trials {
			variation := "not reported"
			if trial.Variation > 0 {
				variation = trial.Variation.String()
			}
			if trial.VariationMean != nil {
				variation = trial.VariationMean.String()
			}
			trials.row(units.Rate(trial.OfferedBps).String(), units.Rate(trial.ReceivedBps).String(), fmt.Sprintf("%.2g %%",
				100*trial.LossRatio), variation)
		}
		trials.write(w, "  ")
	}
}
