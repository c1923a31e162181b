package change

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// fewest is how many earlier results say what is usual on a path.
const fewest = 5

// Past is what a series' earlier results say of the next: their median, and how far from
// it is still usual.
type Past struct {
	Level, Within float64
}

// PastOf the newest results of a series, at most Before; ok is false for fewer than five.
func PastOf(before []float64) (u Past, ok bool) {
	if len(before) < fewest {
		return u, false
	}
	u = pastOf(before[max(len(before)-Before, 0):])
	return u, u.Level > 0
}

// pastOf results that stand for what was.
func pastOf(known []float64) Past {
	level := stats.Median(known)
	return Past{level, max(Least*level, Spread*Scatter(known))}
}

// Beyond is -1 for a value that is lower than usual, 1 for one that is higher, else 0.
func (u Past) Beyond(v float64) int {
	switch {
	case math.Abs(v-u.Level) <= u.Within:
		return 0
	case v < u.Level:
		return -1
	}
	return 1
}
