package record

import (
	"math"

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
	out := &TuneApplied{Kept: a.Kept, Reason: a.Reason, Changes: a.Changes, Scope: NewApply(Header{}, nil, wholeHost,
		false).Scope}
	if len(a.Before.Goodputs) > 0 && len(a.After.Goodputs) > 0 {
		before, after := newTuneMeasured(&a.Before), newTuneMeasured(&a.After)
		out.Before, out.After = &before, &after
	}
	if !math.IsNaN(a.Gain.Mid) && a.Gain.Mid > 0 {
		out.Gain = &TuneGain{a.Gain.Mid, bounds(a.Gain)}
	}
	d.Applied = out
}
