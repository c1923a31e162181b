package text

import (
	"fmt"
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// fewestBefore is the number of earlier results that a path's usual level needs.
const fewestBefore = 5

// Against compares a result with the last 30 days of its path; "" if there are too few
// results.
func Against(now record.Figure, past []record.Figure) string {
	if now.GoodputBps == nil || len(past) < fewestBefore {
		return ""
	}
	var values []float64
	limiters := map[string]int{}
	for _, f := range past {
		values = append(values, *f.GoodputBps)
		limiters[f.Limiter]++
	}
	median := stats.Median(slices.Clone(values))
	if !(median > 0) {
		return ""
	}
	low := slices.Min(values)
	high := slices.Max(values)
	share := 100 * (*now.GoodputBps/median - 1)
	line := fmt.Sprintf("%s: %.0f %% %s the last 30 days' median of this path", now.Direction, math.Abs(share),
		aboveBelow(share))
	if *now.GoodputBps < low || *now.GoodputBps > high {
		line += ", outside all of their spread"
	} else {
		line += ", within their spread"
	}
	most := ""
	for name, n := range limiters {
		if n > limiters[most] || n == limiters[most] && name < most {
			most = name
		}
	}
	if most != "" && most != now.Limiter {
		line += "; then limited by " + most
	}
	return line
}

func aboveBelow(share float64) string {
	if share < 0 {
		return "below"
	}
	return "above"
}
