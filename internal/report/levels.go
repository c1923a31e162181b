package report

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Levels sums up the runs of one series, the oldest first, before and since a time.
// Retests and failed runs do not count.
func Levels(runs []record.HistoryRun, at time.Time) []record.DifferenceLevels {
	type sum struct {
		values   []float64
		limiters map[string]int
	}
	var order []string
	sums := map[string]*[2]sum{}
	for i := range runs {
		r := &runs[i]
		if r.Outcome != record.Done || r.Origin == record.Retest {
			continue
		}
		side := 0
		if !r.StartedAt.Before(at) {
			side = 1
		}
		for _, f := range r.Directions {
			if f.GoodputBps == nil {
				continue
			}
			if sums[f.Direction] == nil {
				order = append(order, f.Direction)
				sums[f.Direction] = &[2]sum{{limiters: map[string]int{}}, {limiters: map[string]int{}}}
			}
			s := &sums[f.Direction][side]
			s.values = append(s.values, *f.GoodputBps)
			s.limiters[f.Limiter]++
		}
	}
	level := func(s *sum) *record.DifferenceLevel {
		if len(s.values) == 0 {
			return nil
		}
		l := &record.DifferenceLevel{Runs: len(s.values), MedianBps: stats.Median(s.values), Limiters: s.limiters}
		if i := stats.Estimate(s.values, 0.95); len(s.values) >= 2 {
			l.LowBps = &i.Low
			l.HighBps = &i.High
		}
		return l
	}
	var all []record.DifferenceLevels
	for _, direction := range order {
		s := sums[direction]
		all = append(all, record.DifferenceLevels{Direction: direction, Before: level(&s[0]), Since: level(&s[1])})
	}
	return all
}
