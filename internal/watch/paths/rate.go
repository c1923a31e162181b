package paths

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// maxRates results are kept.
const maxRates = changepoint.Before + threshold.RateWindows

// rate follows the delivery rate where the program is not the limiter.
type rate struct {
	Results []result `json:"results,omitempty"` // the newest
	Days    []day    `json:"days,omitempty"`
	Half    float64  `json:"half,omitempty"` // half-way back from a reported fall; 0: none
}

func (l *rate) known() bool {
	return len(l.Results) >= maxRates && len(l.Days) >= threshold.LearntDays
}

func (l *rate) add(at time.Time, v float64) (s *Shift) {
	if !(v > 0) || math.IsInf(v, 0) {
		return nil
	}
	l.Results = newest(append(l.Results, newResult(at, v)), maxRates)
	if l.known() {
		s = l.judge()
	}
	l.Days = learn(l.Days, l.Results, threshold.RateWindows)
	return s
}

func (l *rate) judge() *Shift {
	n := len(l.Results)
	_, high, _ := extremes(l.Results, threshold.RateWindows)
	least, _ := span(l.Days)
	if l.Half == 0 {
		if high >= least/threshold.RateBeyond {
			return nil
		}
		was := l.Results[:n-threshold.RateWindows]
		is := l.Results[n-threshold.RateWindows:]
		s := &Shift{Before: stats.Median(values(was)), After: stats.Median(values(is)), Since: is[0].at()}
		l.Half = math.Sqrt(s.Before * s.After)
		return s
	}
	low, _, _ := extremes(l.Results, threshold.RateBack)
	if low < l.Half {
		return nil
	}
	s := &Shift{Before: l.Half, After: low, Since: l.Results[n-threshold.RateBack].at(), Back: true}
	l.Half = 0
	return s
}

func values(all []result) []float64 {
	out := make([]float64, len(all))
	for i, r := range all {
		out[i] = r.value()
	}
	return out
}
