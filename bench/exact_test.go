//go:build linux

package bench

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/lab/stalltest"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// exact decides which runs of a bank's row count: those whose lab was exact enough, on a
// machine that let the programs run. Another one is dropped by that alone, before anything
// looks at what it measured, and is carried out again, but not for ever. Its zero value
// wants one run.
type exact struct {
	want int // runs that count; 0 is 1
	// open reports whether the runs so far leave the row undecided. The same number of runs is then added, up to
	// mostTurns times want in all. Nil: never.
	open             func() bool
	turns            int  // of want runs, beyond the first
	crowded          bool // the machine is busy on purpose: only the lab's own lateness decides
	counted, dropped int
	worst            printed.LinkLate // of the runs that count
	began            stalltest.Time
}

// more reports whether another run is needed and allowed: until enough runs count, with few dropped ones among them.
func (e *exact) more() bool {
	e.began = stalltest.Now()
	if e.open != nil && e.enough() && e.turns+1 < mostTurns && e.open() {
		e.turns++
	}
	return !e.enough() && e.counted+e.dropped < 3*e.wanted()+4
}

// mostTurns is the largest number of turns for an undecided row.
const mostTurns = 4

// wanted returns the number of counting runs that the turns so far need.
func (e *exact) wanted() int { return max(1, e.want) * (e.turns + 1) }

// enough reports whether the counting runs suffice for a verdict.
func (e *exact) enough() bool {
	return e.counted >= e.wanted() && float64(e.dropped) <= mostDropped*float64(e.counted+e.dropped)
}

// keep reports whether the last run counts, and counts it.
func (e *exact) keep(l *printed.Late) bool {
	if l == nil || !l.Believable || !e.crowded && stalltest.Now().Since(e.began).Disturbs() {
		e.dropped++
		return false
	}
	e.counted++
	e.late(l.LinkLate)
	return true
}

// late keeps the worst of what counted.
func (e *exact) late(l printed.LinkLate) {
	w := &e.worst
	w.P99S, w.MaxS, w.StalledS = max(w.P99S, l.P99S), max(w.MaxS, l.MaxS), max(w.StalledS, l.StalledS)
}

// onTime is the lateness of a run without a lab.
var onTime = &printed.Late{Believable: true}

// keepLab is keep for a lab in this process.
func (e *exact) keepLab(l *lab.Lab) (bool, error) {
	a, err := l.Lateness()
	return err == nil && e.keep(lateness(a)), err
}

// lateness is what accounts say, the worst of them, as documents have it and as far as exact
// reads it.
func lateness(accounts ...lab.Lateness) *printed.Late {
	var w lab.Late
	believable := true
	for _, a := range accounts {
		w = w.Worse(a.Worse())
		believable = believable && a.Believable()
	}
	return &printed.Late{LinkLate: printed.LinkLate{P50S: w.P50.Seconds(), P99S: w.P99.Seconds(), MaxS: w.Max.Seconds(),
		Stalls: w.Stalls, StalledS: w.Stalled.Seconds(), WatchedS: w.Watched.Seconds()}, Believable: believable}
}

// mostDropped is the largest share of dropped runs with which a row still has a verdict.
const mostDropped = 0.2

// into writes the lab's lateness into a row. It withdraws the verdict if too many runs were dropped.
func (e *exact) into(row bankRow) bankRow {
	row.Late = fmt.Sprintf("p99 %.2f ms, at most %.1f ms, stalled %.1f ms", 1e3*e.worst.P99S, 1e3*e.worst.MaxS,
		1e3*e.worst.StalledS)
	if e.counted == 0 {
		row.Late = "too late in every run"
	}
	if e.dropped > 0 {
		row.Late += fmt.Sprintf("; %d of %d runs dropped", e.dropped, e.counted+e.dropped)
	}
	if !e.enough() {
		row.Verdict = "inconclusive"
	}
	return row
}
