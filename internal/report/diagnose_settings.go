package report

import (
	"fmt"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// CapturedSettings are what to set at one end if it runs the target system: a capture
// does not say which.
type CapturedSettings struct {
	Target   string         `json:"target"`
	At       string         `json:"at"` // the end's address and port
	Settings []plan.Setting `json:"settings"`
}

// settings plans the windows of a path for the end that held a direction back; nothing
// where the verdict is of another kind, or how fast the path is was not seen.
func (d *CapturedDirection) settings() (all []CapturedSettings) {
	g := &d.diagnosis
	role, at := plan.Role(""), ""
	switch {
	case g.Limiter == limiter.ReceiverWindow:
		role, at = plan.Receiver, d.To()
	case g.Limiter == limiter.Sender && slices.Contains(g.Candidates[:min(1, len(g.Candidates))], limiter.SendBuffer):
		role, at = plan.Sender, d.From
	default:
		return nil
	}
	if g.PathBps < 1.2*g.GoodputBps || g.RTT <= 0 {
		return nil
	}
	path := plan.Path{RateBps: g.PathBps, RTT: g.RTT, MSS: d.flow.MSS}
	for _, name := range []string{"linux", "windows-11", "server-2012"} {
		target, err := plan.ParseTarget(name)
		if err != nil {
			continue
		}
		if s := plan.For(path, target, role); len(s) > 0 {
			all = append(all, CapturedSettings{name, at, s})
		}
	}
	return all
}

// text is the settings of one target in a line for each.
func (s *CapturedSettings) text() (lines []string) {
	for _, one := range s.Settings {
		lines = append(lines, fmt.Sprintf("%s at %s: %s = %s", s.Target, s.At, one.Name, one.Value))
	}
	return lines
}
