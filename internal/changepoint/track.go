package changepoint

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Result is one measurement of a series. Track takes them in order of time.
type Result struct {
	At    time.Time
	Value float64 // positive
	// Retest marks a result measured because of a suspicion. It never joins the old level, since it is biased.
	Retest bool
}

// Limits of a suspicion and of the tests that follow it.
const (
	maxTests = 8 // results of one suspicion, the first included
	minTests = 4 // results needed for a decision
	// Spread is the least deviation in units of Scatter.
	Spread = 2
	// Apart is the least time between the visits that confirm a dip: a disturbance of 1 to 2 h is no change.
	Apart = 4 * time.Hour
	// Soon is the time from a test to the next retest of a suspicion. After Stale without retests the suspicion ends.
	Soon  = 3 * time.Minute
	Stale = 30 * time.Minute
	// minVisits is how many scheduled results must confirm a dip.
	minVisits = 3
	// rare is the largest share of old results that may be closer to the dip's level than to their own for the dip to
	// be reported. Of the 48 results of Before that is 3: with normal noise, a dip of 3.1 standard deviations.
	rare = 1.0 / 16
	// sureOfVisits is p of the same test on results that are Apart: other results correlate over minutes and hours.
	sureOfVisits = 2.3e-3
)

// State is the state of a series.
type State string

// The closed list. A dip is reported when it is rare on the path, a change after a dip always.
const (
	Usual     State = "usual"
	Suspected State = "suspected"
	Dip       State = "dip" // or a rise: the level differs now and may return
)

// Event is the effect of a result; "" is none.
type Event string

// The closed list.
const (
	Dipped  Event = "dip"     // retests show another level that is rare on the path
	Changed Event = "changed" // visits at least Apart confirm another level
	Back    Event = "back"    // a reported dip is over
)

// Track follows a series. Its zero value has no results. The same results lead to the same state, so stored results
// can rebuild it.
type Track struct {
	State State
	// Shift is the newest dip or change, without At.
	Shift Change
	// Since is when the suspicion, the dip or the newest change began.
	Since time.Time
	// Unhurried means that nobody retests because of a suspicion: scheduled results count as retests, at any time.
	Unhurried bool

	old       []float64 // old level: at most Before scheduled results
	recent    []float64 // later scheduled results: at most After
	tests     []float64 // results of the suspicion
	scheduled []float64 // results of tests and later visits without retests
	apart     []float64 // those at least Apart, and the first
	last      time.Time // time of the suspicion's newest result, or of the newest visit that counts
	reported  bool      // dip reported, because it is rare
}

// Wants reports whether and when a retest is due.
func (t *Track) Wants() (at time.Time, ok bool) {
	return t.last.Add(Soon), t.State == Suspected
}

// NotBefore returns the earliest useful time of the next scheduled result: visits after a dip are Apart.
func (t *Track) NotBefore() time.Time {
	if t.State != Dip || len(t.apart) == 0 {
		return time.Time{}
	}
	return t.last.Add(Apart)
}

// Standing returns the state to report: an unreported dip is usual.
func (t *Track) Standing() State {
	if t.State == "" || t.State == Dip && !t.reported {
		return Usual
	}
	return t.State
}

// Known returns the number of results of the old level.
func (t *Track) Known() int { return len(t.old) + len(t.recent) }

// Add adds the next result and returns its effect.
func (t *Track) Add(r Result) Event {
	if !(r.Value > 0) || math.IsInf(r.Value, 0) {
		return ""
	}
	if t.State == Suspected && !t.Unhurried && r.At.Sub(t.last) > Stale { // nobody retested
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

// drifted compares the newest results with earlier ones: on noisy paths no single result shows a shift.
func (t *Track) drifted(at time.Time) Event {
	if len(t.recent) < After {
		return ""
	}
	c, ok := t.shifted(t.recent)
	if !ok {
		return ""
	}
	t.Since = at
	t.tests = nil
	t.apart = nil
	t.scheduled = t.recent
	t.recent = nil
	return t.dip(c)
}

// dip starts a dip and reports it when it is rare on the path.
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
	t.reported = float64(like) <= rare*float64(len(known))
	if t.reported {
		return Dipped
	}
	return ""
}

// odd reports whether a value is outside of the usual range, by Least and by Scatter.
func (t *Track) odd(v float64) bool {
	known := t.known()
	if len(known) < minConfidentBefore {
		return false
	}
	return pastOf(known).Beyond(v) != 0
}

// Scatter returns 1.4826 times the median absolute deviation: for normal noise, the standard deviation.
func Scatter(values []float64) float64 {
	level := stats.Median(values)
	off := make([]float64, len(values))
	for i, v := range values {
		off[i] = math.Abs(v - level)
	}
	return 1.4826 * stats.Median(off)
}

// known returns the newest results of the old level.
func (t *Track) known() []float64 {
	all := slices.Concat(t.old, t.recent)
	return all[max(len(all)-Before, 0):]
}

// test adds a result of a suspicion.
func (t *Track) test(r Result) Event {
	t.tests = append(t.tests, r.Value)
	t.last = r.At
	if !r.Retest {
		t.scheduled = append(t.scheduled, r.Value)
	}
	if len(t.tests) >= minTests {
		if c, ok := t.shifted(t.tests); ok {
			return t.dip(c)
		}
	}
	if len(t.tests) >= maxTests || t.usual(t.tests) > maxTests-minTests {
		t.forget()
	}
	return ""
}

// shifted compares results with the old level.
func (t *Track) shifted(values []float64) (Change, bool) {
	was := t.old
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

// usual counts the values within Least of the old level.
func (t *Track) usual(values []float64) (n int) {
	level := stats.Median(t.known())
	for _, v := range values {
		if math.Abs(v/level-1) < Least {
			n++
		}
	}
	return n
}

// visit adds a result after a dip. A visit confirms the dip when it differs from the old level by Least, in the
// same direction.
func (t *Track) visit(r Result) Event {
	off := r.Value/t.Shift.Before - 1
	confirms := math.Abs(off) >= Least && (off < 0) == (t.Shift.After < t.Shift.Before)
	switch {
	case r.Retest:
		return ""
	case !confirms:
		t.forget()
		if !t.odd(r.Value) {
			t.keep(r.Value)
		}
		if t.reported {
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
	least := minVisits + 1
	if len(known) < Before || Spread*Scatter(known) > Least*stats.Median(known) {
		least++ // low confidence, or random changes
	}
	if len(t.apart) < least {
		return ""
	}
	all := slices.Concat(known, t.apart)
	c, ok := test(all, 0, len(known), len(all), sureOfVisits, len(known) < Before)
	if !ok || !t.odd(c.After) { // the noise of a path with large scatter
		return "" // more visits are needed
	}
	t.Shift = c
	t.old = t.scheduled
	t.recent = nil
	t.tests = nil
	t.scheduled = nil
	t.apart = nil
	t.State = Usual
	return Changed
}

// forget ends a suspicion or a dip. Its scheduled results join the old level, so frequent values become usual.
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
	t.recent = append(t.recent, v)
	for len(t.recent) > After || len(t.recent) > 0 && len(t.old) < minConfidentBefore {
		t.old = append(t.old, t.recent[0])
		t.recent = t.recent[1:]
	}
	t.old = t.old[max(len(t.old)-Before, 0):]
}

// Usual returns the usual range of the old level. ok is false with too few results for a suspicion.
func (t *Track) Usual() (u Past, ok bool) {
	known := t.known()
	if len(known) < minConfidentBefore {
		return u, false
	}
	return pastOf(known), true
}
