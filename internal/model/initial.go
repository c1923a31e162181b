package model

import (
	"math"
	"time"
)

// largestInitialWindow in segments: more at once is a burst that shallow queues drop.
const largestInitialWindow = 100

// LargerInitialWindow is with how many segments a transfer of so many bytes would best begin:
// all of it, or as much as the path holds where its rate and round trip are known, and no more
// than 100. It is 0 where that is no more than InitialWindow.
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
