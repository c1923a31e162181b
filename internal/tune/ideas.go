package tune

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// rivals are the setups worth trying beside a base, in order of preference.
func (l *loop) rivals(base Setup) (rivals []Setup) {
	for _, add := range l.ideas(base) {
		if s := base.plus(add); s != base && l.can(s) && !l.lost(s) {
			rivals = append(rivals, s)
		}
	}
	return rivals
}

// lost says that a setup was in an earlier contest and did not help there.
func (l *loop) lost(s Setup) bool {
	return slices.ContainsFunc(l.out.Remedies, func(r Remedy) bool { return r.Setup == s })
}

// ideas are what a setup may change besides a base, by what limits today.
func (l *loop) ideas(base Setup) (ideas []Setup) {
	p := &l.out.Path
	if l.cfg.Goal == Latency {
		return l.latencyIdeas()
	}
	if l.answer.Verdict == search.Change && l.answer.Clipped { // larger windows help and cannot be had
		return []Setup{{Streams: min(4*max(base.Streams, 1), mostStreams)}}
	}
	for _, step := range remedy.For(l.today.Limiter, l.today.Subtype) {
		switch step.Action {
		case remedy.OtherControl:
			ideas = append(ideas, l.controlsBeside(base)...)
		case remedy.WindowOfBDP:
			if w := p.Window; base.Window == 0 && w > 0 && !p.AtLeast && l.reaches(w) {
				ideas = append(ideas, Setup{Window: w})
			}
		case remedy.PaceBelow:
			if base.PacingBps == 0 && base.Streams < 2 {
				ideas = append(ideas, Setup{PacingBps: belowTheLine * l.paceable()})
			}
		case remedy.SmallerSegment:
			if sizes := l.sizes(); base.MSS == 0 && len(sizes) > 0 {
				ideas = append(ideas, Setup{MSS: sizes[0]})
			}
		case remedy.ParallelFlows:
			if base.PacingBps == 0 && base.Streams < mostStreams && base.besides() == "" {
				ideas = append(ideas, Setup{Streams: 4})
			}
		}
	}
	return ideas
}

// reaches says that what there is has about as much in flight as a window holds: where loss keeps it
// well below, holding it down cannot help.
func (l *loop) reaches(window int) bool {
	return slices.ContainsFunc(l.out.Trials, func(t Trial) bool {
		return t.Automatic && (t.Effective == 0 || tenth*float64(t.Effective) >= float64(window))
	})
}

// roomy is how many of the path's windows are out of the way of a congestion control that
// keeps up to two in flight, as BBR does.
const roomy = 3

// paceable is the rate at the IP layer that pacing is to stay below: the path's, or what a
// policer was seen to let through after its first burst, if that is less.
func (l *loop) paceable() float64 {
	p := &l.out.Path
	if steady := policedBps(&l.today); steady > 0 && p.CapacityBps > 0 {
		return min(p.BottleneckBps, steady*p.BottleneckBps/p.CapacityBps)
	}
	return p.BottleneckBps
}

// policedBps is the payload that a policer was seen to let through in the long run; 0 where none was.
func policedBps(v *verdict.Verdict) float64 {
	for _, e := range v.Evidence {
		if steady := e.Values["steady_bps"]; e.Code == verdict.PolicedRate && v.Subtype == verdict.Policer && steady > 0 {
			return steady
		}
	}
	return 0
}

// controlsBeside are the controls to try on top of a base. What loss left of another control's
// window may be too little for this one.
func (l *loop) controlsBeside(base Setup) (ideas []Setup) {
	if base.Congestion != "" {
		return nil
	}
	ideas = l.controls()
	for i := range ideas {
		if base.Window > 0 {
			ideas[i].Window = max(base.Window, roomy*l.out.Path.Window)
		}
	}
	return ideas
}

// controls are the congestion controls, other than the one in use, that the sender may
// have; the peer's Check knows what a far sender has.
func (l *loop) controls() (ideas []Setup) {
	if l.control == "" {
		return nil
	}
	offered := []string{"bbr", "cubic", "reno"}
	if l.sendsNear() {
		offered = socket.CongestionControls()
	}
	names := []string{"bbr", "cubic"}
	if l.today.Limiter == verdict.AckPath { // reno's slow start goes on where acknowledgements wait
		names = []string{"reno", "bbr", "cubic"}
	}
	for _, name := range names {
		if name != l.control && slices.Contains(offered, name) {
			ideas = append(ideas, Setup{Congestion: name})
		}
	}
	return ideas
}
