package model

import (
	"math"
	"time"
)

// largestInitialWindow is in segments: shallow queues drop larger bursts.
const largestInitialWindow = 100

// LargerInitialWindow returns the best initial window, in segments, of a transfer: all its bytes, at most the BDP
// if known, at most 100 segments. It returns 0 when InitialWindow is enough.
func LargerInitialWindow(bytes int64, pathBps float64, rtt time.Duration, mss int) int {
	if mss <= 0 || bytes <= 0 {
		return 0
	}
	burst := float64(bytes)
	if pathBps > 0 && rtt > 0 {
		burst = math.Min(burst, pathBps/8*rtt.Seconds())
	}
	segments := int(math.Min(math.Ceil(burst/float64(mss)), largestInitialWindow))
	if segments <= InitialWindow {
		return 0
	}
	return segments
}
