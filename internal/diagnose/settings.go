package diagnose

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// settings plans the windows of a path for the end that held a direction back; nothing
// where the verdict is of another kind, or how fast the path is was not seen.
func settings(d *record.CapturedDirection, g *timeline.Diagnosis, mss int) (all []record.CapturedSettings) {
	role := plan.Role("")
	at := ""
	switch {
	case g.Subtype == verdict.ScaleMismatch: // larger buffers do not help
		return nil
	case g.Limiter == verdict.ReceiverWindow:
		role = plan.Receiver
		at = d.To
	case g.Limiter == verdict.Sender && slices.Contains(g.Candidates[:min(1, len(g.Candidates))], verdict.SendBuffer):
		role = plan.Sender
		at = d.From
	default:
		return nil
	}
	if g.PathBps < 1.2*g.GoodputBps || g.RTT <= 0 {
		return nil
	}
	path := plan.Path{RateBps: g.PathBps, RTT: g.RTT, MSS: mss}
	for _, name := range []string{"linux", "windows-11", "server-2012"} {
		target, err := plan.ParseTarget(name)
		if err != nil {
			continue
		}
		if s := plan.For(path, target, role); len(s) > 0 {
			all = append(all, record.CapturedSettings{Target: name, At: at, Settings: s})
		}
	}
	return all
}

// fixes lists what to do about the verdict. What the first one gives is what was predicted
// of it.
func fixes(d *record.CapturedDirection, g *timeline.Diagnosis, f *flow.Direction) []remedy.Fix {
	facts := remedy.Facts{GoodputBps: g.GoodputBps, Bytes: d.Bytes, DurationS: d.DurationS,
		RTTS: g.RTT.Seconds(), MSSBytes: f.MSS, PassingMSS: passingMSS(f)}
	if len(d.Settings) > 0 {
		facts.Windows = d.Settings[0].Settings
	}
	all := remedy.Fixes(g.Verdict, facts)
	if p := g.Prediction; p != nil && p.Limiter == g.Limiter && !all[0].Action.Tells() {
		all[0].Expected = &remedy.Expected{LowBps: p.LowBps, HighBps: p.HighBps, AtLeast: p.AtLeast}
	}
	return all
}

// passingMSS returns the largest MSS whose segments get through, from a router's message, else the
// longest segment that was acknowledged. It returns 0 where no segment below the MSS was seen to pass.
func passingMSS(d *flow.Direction) int {
	passed := int(d.MaxPassed)
	if d.RouterMTU > 0 {
		passed = d.RouterMTU - model.HeadersTo(d.To.AddrPort().Addr())
	}
	if passed >= d.MSS {
		return 0
	}
	return passed
}
