package change

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Result is one measurement of a series, as Track takes them: in the order of their times.
type Result struct {
	At    time.Time
	Value float64 // positive
	// Retest says that it was measured because of a suspicion: it never becomes part of
	// what was, since it was looked for where something seemed wrong.
	Retest bool
}

// The suspicion and what follows it.
const (
	mostTests  = 8 // results of one suspicion, the first included
	leastTests = 4 // so many can tell
	// Spread is how many times the scatter of what was, as 1.4826 times the median absolute
	// deviation, which is the standard deviation of normal noise.
	Spread = 2
	// Apart is the least time between the visits that confirm a dip: what disturbs a path for
	// an hour or two is no change.
	Apart = 4 * time.Hour
	// Soon is how long after one test the next re-test of a suspicion begins, and Stale after
	// what time re-tests that were not made are given up.
	Soon  = 3 * time.Minute
	Stale = 30 * time.Minute
	// visits are how many scheduled results at least have to hold what a dip showed.
	visits = 3
	// rare is what share of the results that stand for what was may lie nearer to a dip's level
	// than to theirs for the dip to be told: what a path does more often is no news. With the 48
	// results of Before that are three of them: of normal noise, a dip 3.1 of its standard
	// deviations deep.
	rare = 1.0 / 16
	// sureOfVisits is p of the same test on results that are Apart alone: others tell less
	// than their number, since a path resembles itself over minutes and hours.
	sureOfVisits = 2.3e-3
)

// State is what a series is in.
type State string

// The closed list. A dip is told where it is rare on the path, and a change after it always.
const (
	Usual     State = "usual"
	Suspected State = "suspected"
	Dip       State = "dip" // or a rise: the level differs now; whether it stays is not known
)

// Event is what a result led to; "" is nothing.
type Event string

// The closed list.
const (
	Dipped  Event = "dip"     // re-tests show another level, one that is rare on the path
	Changed Event = "changed" // another level held at visits that are Apart
	Back    Event = "back"    // a dip that was told is over
)

// Track follows a series. Its zero value is one without results. The same results lead to
// the same state, so it can be rebuilt from what is stored.
type Track struct {
	State State
	// Shift is the newest dip or change: At is not set.
	Shift Change
	// Since is when the suspicion, the dip or the newest change began.
	Since time.Time
	// Unhurried says that nobody tests again because of a suspicion: the results that come
	// anyway stand for re-tests, whenever they come.
	Unhurried bool

	was       []float64 // what was: at most Before scheduled results
	lately    []float64 // the scheduled results after those: at most After
	tests     []float64 // results of the suspicion
	scheduled []float64 // those of them, and the visits after them, that were no re-tests
	apart     []float64 // those of them that are Apart, or the first
	last      time.Time // of the suspicion's newest result, or of the newest visit that counts
	told      bool      // of the dip, since it is rare
}

// Wants says whether a re-test is wanted, and when.
func (t *Track) Wants() (at time.Time, ok bool) {
	return t.last.Add(Soon), t.State == Suspected
}

// NotBefore is when the next scheduled result is of use: after a dip visits are Apart.
func (t *Track) NotBefore() time.Time {
	if t.State != Dip || len(t.apart) == 0 {
		return time.Time{}
	}
	return t.last.Add(Apart)
}

// Standing is the state as others are told of it: a dip of which nothing was told is usual.
func (t *Track) Standing() State {
	if t.State == "" || t.State == Dip && !t.told {
		return Usual
	}
	return t.State
}

// Known is how many results stand for what was.
func (t *Track) Known() int { return len(t.was) + len(t.lately) }

// Add takes the next result.
func (t *Track) Add(r Result) Event {
	if !(r.Value > 0) || math.IsInf(r.Value, 0) {
		return ""
	}
	if t.State == Suspected && !t.Unhurried && r.At.Sub(t.last) > Stale { // nobody tested again
		t.forget()
	}
	switch t.State {
	case Suspected:
		return t.test(r)
	case Dip:
		return t.visit(r)
	}
	t.State = Usual
	switch {
	case r.Retest:
	case t.odd(r.Value):
		t.State = Suspected
		t.Since = r.At
		t.last = r.At
		t.tests = []float64{r.Value}
		t.scheduled = []float64{r.Value}
		t.apart = []float64{r.Value}
	default:
		t.keep(r.Value)
		return t.drifted(r.At)
	}
	return ""
}

// drifted looks for a shift that no single result shows, where the path scatters widely: in
// the newest results against those before them.
func (t *Track) drifted(at time.Time) Event {
	if len(t.lately) < After {
		return ""
	}
	c, ok := t.shifted(t.lately)
	if !ok {
		return ""
	}
	t.Since = at
	t.tests = nil
	t.apart = nil
	t.scheduled = t.lately
	t.lately = nil
	return t.dip(c)
}

// dip begins one, and tells of it where the path does not do that all the time.
func (t *Track) dip(c Change) Event {
	t.State = Dip
	t.Shift = c
	t.last = time.Time{}
	half := math.Sqrt(c.Before * c.After)
	like := 0
	known := t.known()
	for _, v := range known {
		if (v < half) == (c.After < half) {
			like++
		}
	}
	t.told = float64(like) <= rare*float64(len(known))
	if t.told {
		return Dipped
	}
	return ""
}

// odd says whether one value is beyond what is usual: by Least, and by the scatter.
func (t *Track) odd(v float64) bool {
	known := t.known()
	if len(known) < fewBefore {
		return false
	}
	return pastOf(known).Beyond(v) != 0
}

// Scatter is 1.4826 times the median absolute deviation: of normal noise its standard
// deviation.
func Scatter(values []float64) float64 {
	level := stats.Median(values)
	off := make([]float64, len(values))
	for i, v := range values {
		off[i] = math.Abs(v - level)
	}
	return 1.4826 * stats.Median(off)
}

// known are the newest results that stand for what was.
func (t *Track) known() []float64 {
	all := slices.Concat(t.was, t.lately)
	return all[max(len(all)-Before, 0):]
}

// test takes a result of a suspicion.
func (t *Track) test(r Result) Event {
	t.tests = append(t.tests, r.Value)
	t.last = r.At
	if !r.Retest {
		t.scheduled = append(t.scheduled, r.Value)
	}
	if len(t.tests) >= leastTests {
		if c, ok := t.shifted(t.tests); ok {
			return t.dip(c)
		}
	}
	if len(t.tests) >= mostTests || t.usual(t.tests) > mostTests-leastTests {
		t.forget()
	}
	return ""
}

// shifted tests results against what was.
func (t *Track) shifted(values []float64) (Change, bool) {
	was := t.was
	if t.State == Suspected {
		was = t.known()
	}
	all := slices.Concat(was, values)
	low := len(was) < Before
	sure := Sure
	if low {
		sure = sureOfFew
	}
	return test(all, 0, len(was), len(all), sure, low)
}

// usual counts the values that are nearer to what was than by Least.
func (t *Track) usual(values []float64) (n int) {
	level := stats.Median(t.known())
	for _, v := range values {
		if math.Abs(v/level-1) < Least {
			n++
		}
	}
	return n
}

// visit takes a result after a dip. A visit holds it where it is off what was by Least, to
// the same side.
func (t *Track) visit(r Result) Event {
	off := r.Value/t.Shift.Before - 1
	holds := math.Abs(off) >= Least && (off < 0) == (t.Shift.After < t.Shift.Before)
	switch {
	case r.Retest:
		return ""
	case !holds:
		t.forget()
		if !t.odd(r.Value) {
			t.keep(r.Value)
		}
		if t.told {
			return Back
		}
		return ""
	}
	t.scheduled = append(t.scheduled, r.Value)
	if r.At.Sub(t.last) < Apart {
		return ""
	}
	t.last = r.At
	t.apart = append(t.apart, r.Value)
	known := t.known()
	least := visits + 1
	if len(known) < Before || Spread*Scatter(known) > Least*stats.Median(known) {
		least++ // of low confidence, or where chance does more
	}
	if len(t.apart) < least {
		return ""
	}
	all := slices.Concat(known, t.apart)
	c, ok := test(all, 0, len(known), len(all), sureOfVisits, len(known) < Before)
	if !ok || !t.odd(c.After) { // the noise of a path that scatters widely
		return "" // more visits tell
	}
	t.Shift = c
	t.was = t.scheduled
	t.lately = nil
	t.tests = nil
	t.scheduled = nil
	t.apart = nil
	t.State = Usual
	return Changed
}

// forget ends a suspicion or a dip. Its scheduled results were on the path as all others:
// they become part of what was, so that what is odd often is odd no longer.
func (t *Track) forget() {
	for _, v := range t.scheduled {
		t.keep(v)
	}
	t.tests = nil
	t.scheduled = nil
	t.apart = nil
	t.State = Usual
}

func (t *Track) keep(v float64) {
	t.lately = append(t.lately, v)
	for len(t.lately) > After || len(t.lately) > 0 && len(t.was) < fewBefore {
		t.was = append(t.was, t.lately[0])
		t.lately = t.lately[1:]
	}
	t.was = t.was[max(len(t.was)-Before, 0):]
}

// Usual is the median of the results that stand for what was; 0 where they are too few to
// suspect anything by.
func (t *Track) Usual() float64 {
	known := t.known()
	if len(known) < fewBefore {
		return 0
	}
	return stats.Median(known)
}
