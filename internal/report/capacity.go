package report

import (
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Capacity is the object that `measure --udp --capacity --json` prints.
type Capacity struct {
	Header
	Peer       string              `json:"peer"`
	Directions []CapacityDirection `json:"directions"`
	Error      *Failure            `json:"error,omitempty"`
}

// CapacityDirection is the largest rate that UDP got through one way, at the IP layer.
type CapacityDirection struct {
	Direction   transfer.Direction `json:"direction"`
	Protocol    string             `json:"protocol"` // "udp"
	CapacityBps float64            `json:"ip_capacity_bps"`
	AtLeast     bool               `json:"at_least"` // the sender, not the path, set the end
	Trials      []CapacityTrial    `json:"trials"`
}

// CapacityTrial is one rate that was tried, at the IP layer.
type CapacityTrial struct {
	OfferedBps  float64  `json:"offered_bps"`
	ReceivedBps float64  `json:"received_bps"`
	LossRatio   float64  `json:"loss_ratio"`
	VariationS  *float64 `json:"delay_variation_p95_s,omitempty"`
}

// WriteText prints the search for a person.
func (c *Capacity) WriteText(w io.Writer) {
	t := newTable()
	t.row("peer", c.Peer)
	t.write(w, "")
	for _, d := range c.Directions {
		fmt.Fprintf(w, "\n%s, UDP\n", Heading(d.Direction))
		at := ""
		if d.AtLeast {
			at = "at least "
		}
		fmt.Fprintf(w, "  capacity  %s%s at the IP layer (RFC 9097's rules, a trial a second)\n\n", at, units.Rate(d.CapacityBps))
		trials := newTable(0, 1, 2, 3)
		trials.row("offered", "received", "lost", "delay variation")
		for _, trial := range d.Trials {
			variation := "not told"
			if trial.VariationS != nil {
				variation = secondsText(*trial.VariationS)
			}
			trials.row(units.Rate(trial.OfferedBps).String(), units.Rate(trial.ReceivedBps).String(), fmt.Sprintf("%.2g %%", 100*trial.LossRatio), variation)
		}
		trials.write(w, "  ")
	}
}
