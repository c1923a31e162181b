package paths

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// maxTrips is the number of results that are kept to rebuild a Track.
const maxTrips = changepoint.Before + 2*changepoint.After

// result is a time in seconds since 1970 and a value. It is stored, so it is short.
type result [2]float64

func newResult(at time.Time, v float64) result {
	return result{float64(at.Unix()), rounded(v)}
}

// rounded has five digits.
func rounded(v float64) float64 {
	digits := math.Pow(10, 5-math.Ceil(math.Log10(v)))
	return math.Round(v*digits) / digits
}

// ofTrack is the result for a Track.
func (r result) ofTrack() changepoint.Result {
	return changepoint.Result{At: r.at(), Value: r.value()}
}

// possible reports whether the values are possible. The file may be damaged, and an impossible value would spoil all
// later results.
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

// trip follows the least round trip of new connections, which hardly varies, by a Track. It also keeps the extremes of
// the last days, so that a change that comes each evening is reported once.
type trip struct {
	Results  []result `json:"results,omitempty"` // the newest
	Days     []day    `json:"days,omitempty"`
	Reported bool     `json:"told,omitempty"` // the present dip

	track changepoint.Track
}

func (l *trip) restore() {
	l.Results = possibleOnes(l.Results)
	l.track = changepoint.Track{}
	for _, r := range l.Results {
		l.track.Add(r.ofTrack())
	}
}

func (l *trip) known() bool { return l.track.Known() >= changepoint.Before }

// leans reports whether the same shift is suspected or reported.
func (l *trip) leans(s *Shift) bool {
	if s.Back || l.track.State == changepoint.Usual || len(l.Results) == 0 {
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
	event := l.track.Add(r.ofTrack())
	l.Results = newest(append(l.Results, r), maxTrips)
	shift := l.judge(event)
	if l.track.State != changepoint.Suspected { // a suspected change is not usual yet
		l.Days = learn(l.Days, l.Results, threshold.TripWindows)
	}
	return shift
}

func (l *trip) judge(event changepoint.Event) *Shift {
	s := l.track.Shift
	switch event {
	case changepoint.Back:
		if l.Reported {
			l.Reported = false
			last := l.Results[len(l.Results)-1]
			return &Shift{Before: rounded(s.After), After: last.value(), Since: last.at(), Back: true}
		}
	case changepoint.Changed: // it is the usual one now
		l.Reported = false
	}
	if l.track.State != changepoint.Dip || l.Reported || !l.known() || !l.grave() {
		return nil
	}
	l.Reported = true
	return &Shift{Before: rounded(s.Before), After: rounded(s.After), Since: l.track.Since}
}

// grave reports whether the dip is large enough to report.
func (l *trip) grave() bool {
	low, high, ok := extremes(l.Results, threshold.TripWindows)
	if !ok || len(l.Days) == 0 {
		return false
	}
	least, most := span(l.Days)
	was := l.track.Shift.Before
	is := l.track.Shift.After
	before := values(l.Results[:len(l.Results)-threshold.TripWindows])
	if math.Abs(is-was) < threshold.TripScatter*changepoint.Scatter(before) {
		return false
	}
	if is > was {
		return low > threshold.TripBeyond*most && low-was >= threshold.TripShift.Seconds()
	}
	return high < least/threshold.TripBeyond && was-high >= threshold.TripShift.Seconds()
}

// possibleOnes returns the possible ones of stored values.
func possibleOnes[T interface{ possible() bool }](stored []T) []T {
	return slices.DeleteFunc(stored, func(v T) bool { return !v.possible() })
}

// newest returns the last items of a list.
func newest[T any](all []T, most int) []T {
	if n := len(all) - most; n > 0 {
		return slices.Clone(all[n:])
	}
	return all
}

// extremes returns the least and the greatest of the newest windows.
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

// day has the extremes over spans of windows: the greatest of their minima and the least of their maxima.
type day struct {
	Day  int64   `json:"day"` // since 1970
	High float64 `json:"high"`
	Low  float64 `json:"low"`
}

// learn adds the newest windows to the days.
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
	for days[0].Day <= today-threshold.RememberedDays {
		days = days[1:]
	}
	return days
}

// span returns the extremes over all days.
func span(days []day) (least, most float64) {
	least = math.Inf(1)
	for _, d := range days {
		least = min(least, d.Low)
		most = max(most, d.High)
	}
	return least, most
}
