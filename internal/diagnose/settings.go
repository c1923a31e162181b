package diagnose

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// Evidence of the system that sent a SYN: the TTL that it starts with, by its highest bits, and its options.
const (
	unixTTL    = 64
	windowsTTL = 128
	// macOSScale and less is the window scale that macOS offers (6, or 5); Linux offers 7 and more.
	macOSScale = 6
)

// targets returns the systems that settings are planned for: those that a handshake gives evidence of, none without
// a handshake or where TTL and options disagree. Windows asks for no timestamps, Linux does.
func targets(o flow.Offer) []string {
	switch {
	case !o.Seen || o.OptionsCut || o.TTL == 0:
		return nil
	case o.TTL <= unixTTL && o.Timestamps && o.SACK && o.Scale > macOSScale:
		return []string{"linux"}
	case isWindows(o) && o.Scale >= 0:
		return []string{"windows-11", "server-2012"}
	}
	return nil
}

// isWindows reports whether a SYN begins with Windows' TTL and asks for no timestamps.
func isWindows(o flow.Offer) bool {
	return o.Seen && !o.OptionsCut && o.TTL > unixTTL && o.TTL <= windowsTTL && !o.Timestamps
}

// programWindow returns the known program whose own window or buffer limits a direction, or nil.
func programWindow(c *flow.Connection, d *flow.Direction, g *timeline.Diagnosis) *record.ProgramWindow {
	p := record.NewProgramWindow(g.Verdict, d.From.Port, d.To.Port)
	end := d.To
	if g.Limiter == verdict.Sender {
		end = d.From
	}
	// Of the systems that offer a scale, Windows alone asks for no timestamps.
	if o := c.OfferOf(end); p == nil && o.Seen && !o.OptionsCut && !o.Timestamps && o.Scale >= 0 {
		p = record.NewWindowsProgramWindow(g.Verdict)
	}
	return p
}

// settings plans the windows of a path for the end that limited a direction. It returns nil where the verdict is of
// another kind, the rate of the path or the system of that end is not known, or a system's settings do not help: a
// program or a box on the way decides about a fixed window, one without scaling, and one in another unit. A stated
// system replaces the ones that the handshake gives evidence of.
func settings(c *flow.Connection, d *flow.Direction, g *timeline.Diagnosis, system string,
) (all []record.CapturedSettings) {
	role := plan.Role("")
	end := d.From
	switch {
	case slices.Contains([]string{verdict.ScaleMismatch, verdict.NoUpdates, verdict.Fixed, verdict.Unscaled,
		verdict.ScaleZero}, g.Subtype):
		return nil
	case g.Limiter == verdict.ReceiverWindow:
		role = plan.Receiver
		end = d.To
	case g.Limiter == verdict.Sender && slices.Contains(g.Candidates[:min(1, len(g.Candidates))], verdict.SendBuffer):
		role = plan.Sender
	default:
		return nil
	}
	if g.PathBps < 1.2*g.GoodputBps || g.RTT <= 0 {
		return nil
	}
	path := plan.Path{RateBps: g.PathBps, RTT: g.RTT, MSS: d.MSS}
	systems := targets(c.OfferOf(end))
	if system != "" {
		systems = []string{system}
	}
	for _, name := range systems {
		target, err := plan.ParseTarget(name)
		if err != nil {
			continue
		}
		if s := plan.For(path, target, role); len(s) > 0 {
			all = append(all, record.CapturedSettings{Target: name, At: end.AddrPort().String(), Settings: s})
		}
	}
	return all
}

// SetTarget plans the settings of each end that limits for a system by name, without regard to its handshake. It comes
// before Compare.
func (d *Diagnosis) SetTarget(system string) {
	d.target = system
	for i := range d.from {
		j := &d.from[i]
		for k, of := range j.directions {
			r := &d.Record.Connections[i].Directions[k]
			r.Settings = settings(j.connection, of.flow, &of.diagnosis, system)
			r.Fix = fixes(r, &of.diagnosis, j.connection, of.flow, system)
		}
	}
}

// fixes lists the remedies of the verdict, each in the words of the system that its end's handshake gives evidence of,
// or of the stated one; "": not stated. Settings that are one system's need such evidence. The first remedy has the
// predicted gain.
func fixes(d *record.CapturedDirection, g *timeline.Diagnosis, c *flow.Connection, f *flow.Direction, target string,
) []advice.Fix {
	facts := advice.Facts{GoodputBps: g.GoodputBps, Bytes: d.Bytes, DurationS: d.DurationS,
		RTTS: g.RTT.Seconds(), MSSBytes: f.MSS, PassingMSS: passingMSS(f)}
	sender := []string{target}
	receiver := sender // steps for both ends are in the words of the one that is known
	if target == "" {
		sender = targets(c.OfferOf(f.From))
		receiver = targets(c.OfferOf(f.To))
	}
	facts.Sender = systemOf(sender)
	facts.Receiver = systemOf(receiver)
	if len(d.Settings) > 0 {
		facts.Windows = d.Settings[0].Settings
	}
	all := advice.Fixes(g.Verdict, facts)
	for i := range all {
		unknown := len(sender) == 0 && all[i].End != advice.Receiver || len(receiver) == 0 && all[i].End != advice.Sender
		if unknown && all[i].Action.Specific() {
			all[i].Settings = []plan.Setting{}
		}
	}
	if p := g.Prediction; p != nil && p.Limiter == g.Limiter && !all[0].Action.OnlyObserves() {
		all[0].Expected = &advice.Expected{LowBps: p.LowBps, HighBps: p.HighBps, AtLeast: p.AtLeast}
	}
	return all
}

// systemOf returns the system that names the steps of remedies on the first of the targets.
func systemOf(names []string) advice.System {
	if len(names) == 0 {
		return advice.Linux
	}
	target, err := plan.ParseTarget(names[0])
	if err != nil {
		return advice.Linux
	}
	return advice.SystemOf(target.Family + " " + target.Version)
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
