package paths

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/change"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// maxTrips results are kept, for a Track to be rebuilt from.
const maxTrips = change.Before + 2*change.After

// result is a figure and when it was had, in seconds since 1970. It is stored, so it is
// short.
type result [2]float64

func newResult(at time.Time, v float64) result {
	return result{float64(at.Unix()), rounded(v)}
}

// rounded has five digits.
func rounded(v float64) float64 {
	digits := math.Pow(10, 5-math.Ceil(math.Log10(v)))
	return math.Round(v*digits) / digits
}

// untied is the result for a Track. Round trips are counted in microseconds and some hardly
// vary: results that are the same would make its rank test an approximation, which needs more
// of them. So they differ by a millionth, by their time and in no order.
func (r result) untied() change.Result {
	const golden = 0.6180339887
	_, part := math.Modf(r[0] / 60 * golden)
	return change.Result{At: r.at(), Value: r.value() * (1 + 1e-6*part)}
}

// possible says whether it can have been: what is stored may be damaged, and what cannot be would
// spoil every figure that is made with it.
func (r result) possible() bool {
	return within(r[0], latestSecond) && r[1] > 0 && within(r[1], largest)
}

// No time and no figure that is stored is beyond these: the year 9999, and more than any line's rate in bit/s.
const (
	latestSecond = 253402300799
	largest      = 1e15
)

func within(v, most float64) bool { return v >= 0 && v <= most }

func (r result) at() time.Time  { return time.Unix(int64(r[0]), 0).UTC() }
func (r result) value() float64 { return r[1] }

// trip follows the least round trip of new connections, which hardly scatters, by a Track.
// Beside that it remembers the extremes of the last days, so that what a path does each
// evening is told once.
type trip struct {
	Results  []result `json:"results,omitempty"` // the newest
	Days     []day    `json:"days,omitempty"`
	Reported bool     `json:"told,omitempty"` // the present dip

	track change.Track
}

func (l *trip) restore() {
	l.Results = possibleOnes(l.Results)
	l.track = change.Track{}
	for _, r := range l.Results {
		l.track.Add(r.untied())
	}
}

func (l *trip) known() bool { return l.track.Known() >= change.Before }

// leans says whether it is suspected of the same shift, or told.
func (l *trip) leans(s *Shift) bool {
	if s.Back || l.track.State == change.Usual || len(l.Results) == 0 {
		return false
	}
	least, most := span(l.Days)
	last := l.Results[len(l.Results)-1].value()
	return l.Reported || last > most && s.rises() || last < least && !s.rises()
}

func (l *trip) add(at time.Time, v float64) *Shift {
	if !(v > 0) || math.IsInf(v, 0) {
		return nil
	}
	r := newResult(at, v)
	event := l.track.Add(r.untied())
	l.Results = newest(append(l.Results, r), maxTrips)
	shift := l.judge(event)
	if l.track.State != change.Suspected { // what is suspected is no part of what is usual yet
		l.Days = learn(l.Days, l.Results, threshold.TripWindows)
	}
	return shift
}

func (l *trip) judge(event change.Event) *Shift {
	s := l.track.Shift
	switch event {
	case change.Back:
		if l.Reported {
			l.Reported = false
			last := l.Results[len(l.Results)-1]
			return &Shift{Before: rounded(s.After), After: last.value(), Since: last.at(), Back: true}
		}
	case change.Changed: // it is the usual one now
		l.Reported = false
	}
	if l.track.State != change.Dip || l.Reported || !l.known() || !l.grave() {
		return nil
	}
	l.Reported = true
	return &Shift{Before: rounded(s.Before), After: rounded(s.After), Since: l.track.Since}
}

// grave says whether the dip is one that is told.
func (l *trip) grave() bool {
	low, high, ok := extremes(l.Results, threshold.TripWindows)
	if !ok || len(l.Days) == 0 {
		return false
	}
	least, most := span(l.Days)
	was := l.track.Shift.Before
	is := l.track.Shift.After
	if math.Abs(is-was) < threshold.TripScatter*change.Scatter(values(l.Results[:len(l.Results)-threshold.TripWindows])) {
		return false
	}
	if is > was {
		return low > threshold.TripBeyond*most && low-was >= threshold.TripShift.Seconds()
	}
	return high < least/threshold.TripBeyond && was-high >= threshold.TripShift.Seconds()
}

// possibleOnes are those of what was stored that can have been.
func possibleOnes[T interface{ possible() bool }](stored []T) []T {
	return slices.DeleteFunc(stored, func(v T) bool { return !v.possible() })
}

// newest cuts a list to so many.
func newest[T any](all []T, most int) []T {
	if n := len(all) - most; n > 0 {
		return slices.Clone(all[n:])
	}
	return all
}

// extremes are what all of the newest windows exceeded or reached, and what all stayed below.
func extremes(all []result, span int) (low, high float64, ok bool) {
	if len(all) < span {
		return 0, 0, false
	}
	low = math.Inf(1)
	for _, r := range all[len(all)-span:] {
		low = min(low, r.value())
		high = max(high, r.value())
	}
	return low, high, true
}

// remembered is how many days' extremes are kept: a path's usual week.
const remembered = 7

// day holds the extremes of spans of windows: what all windows of one exceeded at most, and
// what all stayed below at least.
type day struct {
	Day  int64   `json:"day"` // since 1970
	High float64 `json:"high"`
	Low  float64 `json:"low"`
}

// learn makes the newest windows part of what the path is known to do.
func learn(days []day, all []result, span int) []day {
	low, high, ok := extremes(all, span)
	if !ok {
		return days
	}
	return remember(days, all[len(all)-1].at(), low, high)
}

func remember(days []day, at time.Time, low, high float64) []day {
	today := at.Unix() / 86400
	if n := len(days); n > 0 && days[n-1].Day == today {
		days[n-1].High = max(days[n-1].High, low)
		days[n-1].Low = min(days[n-1].Low, high)
		return days
	}
	days = append(days, day{today, low, high})
	for days[0].Day <= today-remembered {
		days = days[1:]
	}
	return days
}

// span is what the days together knew: the least of what all windows of one stayed below,
// and the most of what they exceeded.
func span(days []day) (least, most float64) {
	least = math.Inf(1)
	for _, d := range days {
		least = min(least, d.Low)
		most = max(most, d.High)
	}
	return least, most
}
