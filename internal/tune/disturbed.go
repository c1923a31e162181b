package tune

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Disturbed says what kept the measurement from telling about the path.
type Disturbed struct {
	// Near says whose data thread waited for a core: this host's or the far one's.
	Near bool
	// Starved is for which share of the time it did, in the middle of all runs; 0: it did not.
	Starved float64
	// Busy is the share of that host's processors that was busy; 0: not known.
	Busy    float64
	LateLab bool // the lab that carried the path was too late to be believed
}

// mostlyBusy is the share of a host's processors from which on other programs hold them.
const mostlyBusy = 0.9

// disturbed is what disturbed the measurement; nil where that was of no weight. A processor that the
// transfers themselves fill is what limits, no disturbance: they run then more than they wait.
func (l *loop) disturbed() *Disturbed {
	d := &Disturbed{LateLab: l.cfg.Late != nil && l.cfg.Late()}
	for _, near := range []bool{true, false} {
		var starved, ran, busy []float64
		for _, t := range l.of(func(t *Trial) bool { return t.result != nil }) {
			end := t.result.Near
			if !near {
				end = t.result.Far
			}
			if end == nil || end.CPU == nil || end.CPU.Wall <= 0 {
				continue
			}
			starved = append(starved, end.CPU.ThreadRunDelay)
			ran = append(ran, end.CPU.BusiestThread)
			if end.CPU.Host != nil {
				busy = append(busy, *end.CPU.Host)
			}
		}
		share := stats.Median(starved)
		if len(starved) == 0 || share < threshold.RunDelay || share < stats.Median(ran) || share < d.Starved {
			continue
		}
		d.Near = near
		d.Starved = share
		d.Busy = 0
		if len(busy) > 0 {
			d.Busy = stats.Median(busy)
		}
	}
	if !d.LateLab && d.Starved == 0 {
		return nil
	}
	return d
}

// excuses says that an answer tells of the disturbance rather than of the path: that nothing helps, or
// that it is open. What was shown in turn to help helped in spite of it, and a link that was seen to
// be full is full.
func (l *loop) excuses() bool {
	out := &l.out
	switch {
	case out.Disturbed == nil || out.Chosen != nil || l.swallows() || len(out.Trials) < fewestToJudge:
		return false
	case out.Verdict == search.NoChange && len(out.Remedies) == 0:
		return out.Before.Verdict.Limiter != verdict.Bottleneck
	}
	return true
}

// why is the disturbance in words, with what it takes to measure again.
func (d *Disturbed) why(direction transfer.Direction) string {
	if d.Starved == 0 {
		return "the lab was too late to be believed, so this tells little of the path: measure again when this host does " +
			"less besides"
	}
	host := "this host"
	if !d.Near {
		host = "the far host"
	}
	by := "something holds it off the processors there are: a limit of its share, or its priority"
	switch {
	case d.Busy >= mostlyBusy:
		by = fmt.Sprintf("other programs hold its processors, which were %.0f %% busy", 100*d.Busy)
	case d.Busy == 0:
		by = "other programs hold its processors, or its share of them is used up"
	}
	return fmt.Sprintf("%s, the %s, had no core for the data %.0f %% of the time (%s), so this tells little of the path: "+
		"measure again when %s is quiet", host, d.End(direction), 100*d.Starved, by, host)
}

// End is the end that was disturbed; both of a lab's.
func (d *Disturbed) End(direction transfer.Direction) remedy.End {
	switch {
	case d.Starved == 0:
		return remedy.Both
	case d.Near == (direction == transfer.Up):
		return remedy.Sender
	}
	return remedy.Receiver
}
