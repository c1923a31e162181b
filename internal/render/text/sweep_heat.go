package text

import (
	"math"
	"slices"
)

// Position returns the position of a size on an axis, in steps from its first value, logarithmic
// between values; ok is false outside the axis.
func (a SweepAxis) Position(size float64) (at float64, ok bool) {
	fixed := a.Values
	if n := len(fixed); n > 0 && fixed[n-1] == 0 {
		fixed = fixed[:n-1]
	}
	if len(fixed) < 2 || size <= 0 {
		return 0, false
	}
	i := slices.IndexFunc(fixed, func(v int) bool { return float64(v) > size })
	if i < 0 { // beyond the last by at most half a step
		i = len(fixed) - 1
	}
	i = max(i, 1)
	low := math.Log(float64(fixed[i-1]))
	high := math.Log(float64(fixed[i]))
	at = float64(i-1) + (math.Log(size)-low)/(high-low)
	return at, at > -0.5 && at < float64(len(fixed))-0.5
}
