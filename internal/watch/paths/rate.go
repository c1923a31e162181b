package paths

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/change"
)

const (
	// A rate is what others leave, and resembles itself for hours: all windows of rateSpan, an
	// hour, have to be below two thirds of what such an hour had in the last days. Higher is no
	// trouble.
	rateSpan   = 12
	rateBeyond = 1.5
	// learntDays is how many days have to be known of what varies with the hour, the present
	// one included.
	learntDays = 2
	// rateBack windows in a row above half-way end it.
	rateBack  = 4
	mostRates = change.Before + rateSpan
)

// rate follows what is delivered where the program is not the limit.
type rate struct {
	Results []result `json:"results,omitempty"` // the newest
	Days    []day    `json:"days,omitempty"`
	Half    float64  `json:"half,omitempty"` // half-way back from a fall that was told; 0: none
}

func (l *rate) known() bool { return len(l.Results) >= mostRates && len(l.Days) >= learntDays }

func (l *rate) add(at time.Time, v float64) (s *Shift) {
	if !(v > 0) || math.IsInf(v, 0) {
		return nil
	}
	l.Results = newest(append(l.Results, newResult(at, v)), mostRates)
	if l.known() {
		s = l.judge()
	}
	l.Days = learn(l.Days, l.Results, rateSpan)
	return s
}

func (l *rate) judge() *Shift {
	n := len(l.Results)
	_, high, _ := extremes(l.Results, rateSpan)
	least, _ := span(l.Days)
	if l.Half == 0 {
		if high >= least/rateBeyond {
			return nil
		}
		was := l.Results[:n-rateSpan]
		is := l.Results[n-rateSpan:]
		s := &Shift{Before: middle(was), After: middle(is), Since: is[0].at()}
		l.Half = math.Sqrt(s.Before * s.After)
		return s
	}
	low, _, _ := extremes(l.Results, rateBack)
	if low < l.Half {
		return nil
	}
	s := &Shift{Before: l.Half, After: low, Since: l.Results[n-rateBack].at(), Back: true}
	l.Half = 0
	return s
}

func middle(all []result) float64 {
	values := make([]float64, len(all))
	for i, r := range all {
		values[i] = r.value()
	}
	slices.Sort(values)
	return values[len(values)/2]
}
