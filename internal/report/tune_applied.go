package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// TuneApplied is what `tune --apply` did to this host for one direction, and what it gave
// with and without the change in turn.
type TuneApplied struct {
	Kept    bool          `json:"kept"`
	Reason  string        `json:"reason"`
	Scope   string        `json:"scope"`
	Changes []host.Did    `json:"changes"`
	Before  *TuneMeasured `json:"before,omitempty"`
	After   *TuneMeasured `json:"after,omitempty"`
	Gain    *TuneGain     `json:"gain,omitempty"`
}

// Apply enters what applying a direction's settings gave.
func (d *TuneDirection) Apply(a *tune.Applied, wholeHost bool) {
	out := &TuneApplied{Kept: a.Kept, Reason: a.Reason, Changes: a.Changes, Scope: NewApply(Header{}, nil, wholeHost, false).Scope}
	if len(a.Before.Goodputs) > 0 && len(a.After.Goodputs) > 0 {
		before, after := newTuneMeasured(&a.Before), newTuneMeasured(&a.After)
		out.Before, out.After = &before, &after
	}
	if !math.IsNaN(a.Gain.Mid) && a.Gain.Mid > 0 {
		out.Gain = &TuneGain{a.Gain.Mid, bounds(a.Gain)}
	}
	d.Applied = out
}

func (a *TuneApplied) writeText(w io.Writer) {
	fmt.Fprintf(w, "\n  applied to %s\n", a.Scope)
	writeDids(w, a.Changes)
	t := newTable()
	if a.Before != nil {
		t.row("as it was", a.Before.text())
		t.row("changed", a.After.text())
		t.row("limited by", a.After.VerdictText())
	}
	if a.Gain != nil {
		text := "× " + factor(a.Gain.Factor)
		if a.Gain.CI95 != nil {
			text += fmt.Sprintf("   (× %s to × %s with 95 %% confidence, measured in turn)", factor(a.Gain.CI95[0]), factor(a.Gain.CI95[1]))
		}
		t.row("gain", text)
	}
	if a.Kept {
		t.row("kept", a.Reason)
	} else {
		t.row("taken back", a.Reason)
	}
	t.write(w, "  ")
}

func (d *Tune) inLab() bool { return strings.HasPrefix(d.Peer, "lab:") }

// changed says what the report's last line says of the hosts.
func (d *Tune) changed() string {
	touched, kept := false, false
	for _, direction := range d.Directions {
		if direction.Applied != nil {
			touched, kept = true, kept || direction.Applied.Kept
		}
	}
	switch {
	case kept && d.inLab():
		return "the lab's host was changed, and ended with the lab"
	case kept:
		return "this host was changed: fullpipe undo takes it back"
	case touched:
		return "this host is as it was"
	}
	return "nothing was changed on either host"
}
