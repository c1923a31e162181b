package predict

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const (
	limits = 1.10 // the gain from which what was taken away had been a limiter
	unsure = 0.04 // how far from that a gain is too close to call
)

// limit names the limiter: of all that can be taken away, what gains most, if that is a
// tenth or more. Where only two together gain, it is mixed.
func (r *room) limit(a *Answer, now result) {
	best := without{}
	second := 1.0
	for _, w := range r.takeAway() {
		w.result = w.room.sketch()
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
		a.Next = best.room.next()
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

func (r *room) next() *Next {
	then := r.predict()
	return &Next{Range: then.goodput(), Limiter: r.largest(then)}
}

// withoutAll is the room with several things taken away.
func (r *room) withoutAll(names []verdict.Name) *room {
	for _, name := range names {
		all := r.takeAway()
		if i := slices.IndexFunc(all, func(w without) bool { return w.name == name }); i >= 0 {
			r = all[i].room
		}
	}
	return r
}

// near lists the limiters whose bounds lie next to the least, as candidates: taking one
// away gains little while the other stands.
func near(caps []Cap) (names []verdict.Name) {
	const together = 1.25
	for _, c := range caps {
		if c.Bps <= together*caps[0].Bps && !slices.Contains(names, c.Limiter) {
			names = append(names, c.Limiter)
		}
	}
	return names
}

// largest is the limiter of what remains, "" where nothing known gains a tenth.
func (r *room) largest(now result) (name verdict.Name) {
	most := limits
	for _, w := range r.takeAway() {
		if gain := w.room.sketch().typical / now.typical; gain >= most {
			name = w.name
			most = gain
		}
	}
	return name
}

// without is the room with one thing taken away.
type without struct {
	name   verdict.Name
	room   *room
	result result
	gain   float64
}

// takeAway lists all that can be taken away.
func (r *room) takeAway() (all []without) {
	add := func(name verdict.Name, change func(*room)) {
		w := *r
		change(&w)
		all = append(all, without{name: name, room: &w})
	}
	if !math.IsInf(r.window, 1) {
		add(verdict.ReceiverWindow, func(w *room) { w.window = math.Inf(1) })
	}
	if !math.IsInf(r.send, 1) {
		add(verdict.SendBuffer, func(w *room) {
			w.send = math.Inf(1)
			w.overruns = false
		})
	}
	if r.loss > 0 || r.queue < 2*r.bdp() && !math.IsInf(r.bdp(), 1) {
		add(verdict.Congestion, func(w *room) {
			w.queue = math.Max(w.queue, 2*w.bdp())
			w.loss = 0
		})
	}
	if r.segment > 0 {
		add(r.narrowest(), func(w *room) { // twice as fast, its queue as long in time
			w.rate *= 2
			w.rtt -= w.segment / 2
			w.segment /= 2
			w.queue *= 2
		})
	}
	if !r.ready {
		add(verdict.SlowStart, func(w *room) { w.ready = true })
	}
	return all
}

// narrowest names the path's rate as a limiter.
func (r *room) narrowest() verdict.Name {
	if r.policed {
		return verdict.Congestion
	}
	return verdict.Bottleneck
}

func (r *room) subtype(name verdict.Name) string {
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
