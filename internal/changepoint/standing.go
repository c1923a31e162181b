package changepoint

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// minPast is how many earlier results define the usual range of a path.
const minPast = 5

// Past contains the median of earlier results and the usual distance from it.
type Past struct {
	Level, Within float64
}

// PastOf summarizes the newest results of a series, at most Before. ok is false for fewer than five.
func PastOf(before []float64) (u Past, ok bool) {
	if len(before) < minPast {
		return u, false
	}
	u = pastOf(before[max(len(before)-Before, 0):])
	return u, u.Level > 0
}

// pastOf summarizes the results of the old level.
func pastOf(known []float64) Past {
	level := stats.Median(known)
	return Past{level, max(Least*level, Spread*Scatter(known))}
}

// Beyond returns -1 for a value below the usual range, 1 for one above it, else 0.
func (u Past) Beyond(v float64) int {
	switch {
	case math.Abs(v-u.Level) <= u.Within:
		return 0
	case v < u.Level:
		return -1
	}
	return 1
}
