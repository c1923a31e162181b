package predict

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const (
	limits = 1.10 // smallest gain of a removed limiter
	unsure = 0.04 // a gain this close to it is not sure
)

// limit names the limiter: the one whose removal gains most, if that is a tenth or more. It is mixed if only two
// removals together gain.
func (r *scenario) limit(a *Answer, now result) {
	best := without{}
	second := 1.0
	for _, w := range r.removals() {
		w.result = w.scenario.estimate()
		w.gain = w.result.typical / now.typical
		if w.gain > best.gain {
			second = math.Max(best.gain, 1)
			best = w
		} else {
			second = math.Max(second, w.gain)
		}
	}
	a.Gain = best.gain
	switch {
	case best.gain >= limits:
		a.Limiter = best.name
		a.Sure = len(r.warnings) == 0 && best.gain >= limits+unsure && (second < limits+unsure || best.gain > 1.5*second)
		a.Next = best.scenario.next()
	default:
		a.Limiter = verdict.Mixed
	}
	if !a.Sure {
		a.Candidates = near(a.Caps)
	}
	if a.Limiter == verdict.Mixed && len(a.Candidates) > 1 {
		a.Next = r.withoutAll(a.Candidates).next()
	}
	a.Subtype = r.subtype(a.Limiter)
}

func (r *scenario) next() *Next {
	then := r.predict()
	return &Next{Range: then.goodput(), Limiter: r.largest(then)}
}

// withoutAll returns the scenario without several limiters.
func (r *scenario) withoutAll(names []verdict.Name) *scenario {
	for _, name := range names {
		all := r.removals()
		if i := slices.IndexFunc(all, func(w without) bool { return w.name == name }); i >= 0 {
			r = all[i].scenario
		}
	}
	return r
}

// near returns the limiters whose bounds are close to the smallest, as candidates: the removal of one gains little
// while the other remains.
func near(caps []Cap) (names []verdict.Name) {
	const together = 1.25
	for _, c := range caps {
		if c.Bps <= together*caps[0].Bps && !slices.Contains(names, c.Limiter) {
			names = append(names, c.Limiter)
		}
	}
	return names
}

// largest returns the limiter of a scenario, "" if no removal gains a tenth.
func (r *scenario) largest(now result) (name verdict.Name) {
	most := limits
	for _, w := range r.removals() {
		if gain := w.scenario.estimate().typical / now.typical; gain >= most {
			name = w.name
			most = gain
		}
	}
	return name
}

// without is a scenario without one limiter.
type without struct {
	name     verdict.Name
	scenario *scenario
	result   result
	gain     float64
}

// removals returns the scenarios without one limiter each.
func (r *scenario) removals() (all []without) {
	add := func(name verdict.Name, change func(*scenario)) {
		w := *r
		change(&w)
		all = append(all, without{name: name, scenario: &w})
	}
	if !math.IsInf(r.window, 1) {
		add(verdict.ReceiverWindow, (*scenario).removeWindow)
	}
	if !math.IsInf(r.send, 1) {
		add(verdict.SendBuffer, func(w *scenario) {
			w.send = math.Inf(1)
			w.overruns = false
		})
	}
	if r.loss > 0 || r.queue < 2*r.bdp() && !math.IsInf(r.bdp(), 1) {
		add(verdict.Congestion, func(w *scenario) {
			w.queue = math.Max(w.queue, 2*w.bdp())
			w.loss = 0
		})
	}
	if r.segment > 0 {
		add(r.narrowest(), func(w *scenario) { // twice as fast, its queue as long in time
			w.rate *= 2
			w.rtt -= w.segment / 2
			w.segment /= 2
			w.queue *= 2
		})
	}
	if !r.ready {
		add(verdict.SlowStart, func(w *scenario) { w.ready = true })
	}
	return all
}

// removeWindow takes the receive window away, with the round trip and the smaller segments that it caused.
func (w *scenario) removeWindow() {
	w.window = math.Inf(1)
	if w.uncut == nil {
		return
	}
	w.segment = w.uncut.segment * w.uncut.rate / w.rate // without the bottleneck it is faster
	w.mss = w.uncut.mss
	w.rtt = w.uncut.rtt
	w.trailing = w.uncut.trailing
	w.uncut = nil
}

// narrowest returns the limiter's name for the path's rate.
func (r *scenario) narrowest() verdict.Name {
	if r.policed {
		return verdict.Congestion
	}
	return verdict.Bottleneck
}

func (r *scenario) subtype(name verdict.Name) string {
	switch {
	case name == verdict.Congestion && r.policed:
		return verdict.Policer
	case name != verdict.ReceiverWindow:
		return ""
	case r.unscaled:
		return verdict.Unscaled
	case r.factorZero:
		return verdict.ScaleZero
	case r.fixed:
		return verdict.Fixed
	}
	return ""
}
