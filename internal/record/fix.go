package record

import (
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Fix is one thing to do about a limiter, or, where the verdict is open, what tells its
// candidates apart.
type Fix struct {
	Limiter verdict.Name  `json:"limiter"`
	Action  remedy.Action `json:"action"`
	Text    string        `json:"text,omitempty"` // the same in the imperative; filled in where documents are printed
	// Scope is program, route, host or network; absent where nothing is changed.
	Scope    remedy.Scope   `json:"scope,omitempty"`
	End      remedy.End     `json:"end"`
	Settings []plan.Setting `json:"settings"`
	Expected *Expected      `json:"expected,omitempty"` // absent: not known
	Source   string         `json:"source"`
}

// Expected is the goodput that a fix would give.
type Expected struct {
	LowBps  float64 `json:"low_bps"`
	HighBps float64 `json:"high_bps,omitempty"`
	AtLeast bool    `json:"at_least"` // what limits next is not known
}

// NewFixes lists what to do about a verdict, in order. Of a limiter that is named, the first
// step gives a tenth more at the least, by the word's definition; windows are those that
// were planned, if any were.
func NewFixes(v verdict.Verdict, goodputBps float64, windows []plan.Setting) []Fix {
	steps := remedy.For(v.Limiter, v.Subtype)
	if remedy.Open(v.Limiter) {
		steps = remedy.Tell(v.Candidates)
	}
	fixes := []Fix{}
	for i, s := range steps {
		f := Fix{Limiter: v.Limiter, Action: s.Action, Scope: s.Scope, End: s.End, Settings: settingsOf(s, windows),
			Source: s.Source}
		if i == 0 && s.Scope != remedy.Nowhere && goodputBps > 0 {
			f.Expected = &Expected{LowBps: threshold.CauseFactor * goodputBps, AtLeast: true}
		}
		fixes = append(fixes, f)
	}
	return fixes
}

// settingsOf are a step's settings where their values do not hang on the path.
func settingsOf(s remedy.Step, windows []plan.Setting) []plan.Setting {
	one := func(name, where, value string) []plan.Setting {
		role := plan.Sender
		if s.End == remedy.Receiver {
			role = plan.Receiver
		}
		return []plan.Setting{{Role: role, Name: name, Where: where, Value: value, Source: s.Source}}
	}
	const sysctl, inProgram = "sysctl, every new connection of the host", "in the program, before connect() or listen()"
	switch s.Action {
	case remedy.LargerWindows:
		if windows != nil {
			return windows
		}
	case remedy.OtherControl:
		return one("TCP_CONGESTION", inProgram, "bbr")
	case remedy.NoDelay:
		return one("TCP_NODELAY", inProgram, "1")
	case remedy.WindowScaling:
		return one("net.ipv4.tcp_window_scaling", sysctl, "1")
	case remedy.ProbeMTU:
		return one("net.ipv4.tcp_mtu_probing", sysctl, "1")
	case remedy.NoIdleRestart:
		return one("net.ipv4.tcp_slow_start_after_idle", sysctl, "0")
	case remedy.ForgetMetrics:
		return one("net.ipv4.tcp_no_metrics_save", sysctl, "1")
	}
	return []plan.Setting{}
}
