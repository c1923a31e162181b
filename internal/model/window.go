// Package model is the arithmetic of TCP throughput: windows for a path, what a window
// tolerates, RFC 6349's ideals, and how long a transfer takes.
//
// Rates are bits per second, windows bytes of payload, times durations. The rate of a
// path is counted at the IP layer unless a function says otherwise.
package model

import (
	"math"
	"time"
)

// MaxUnscaled is the largest window without the window scale option (RFC 7323 section 2).
const MaxUnscaled = 65535

// MaxScale is the largest shift that the option carries (RFC 7323 section 2.3).
const MaxScale = 14

// MaxWindow is the largest window that TCP can advertise.
const MaxWindow = MaxUnscaled << MaxScale

// BDP is the bandwidth-delay product in bytes: what has to be in flight to keep a path
// of rateBps full over rtt (RFC 6349 section 3.3.1).
func BDP(rateBps float64, rtt time.Duration) float64 { return rateBps / 8 * rtt.Seconds() }

// Window is the smallest window of an even number of segments that holds the given
// bytes: a receiver that acknowledges every second segment never waits half-way. The
// result is at least two segments and at most MaxWindow.
func Window(bytes float64, mss int) int {
	pair := 2 * float64(max(mss, 1))
	pairs := math.Ceil(bytes/pair - 1e-9)
	pairs = math.Min(math.Max(pairs, 1), math.Floor(MaxWindow/pair))
	return int(math.Max(pairs, 1) * pair)
}

// LargestUnscaled is the largest window of whole segments, an even number of them where
// there is more than one, that needs no scaling.
func LargestUnscaled(mss int) int { return max(MaxUnscaled/(2*mss)*2, 1) * mss }

// Scale is the smallest shift with which a window can be advertised; MaxScale when
// none is large enough.
func Scale(window int) int {
	for shift := range MaxScale {
		if window <= MaxUnscaled<<shift {
			return shift
		}
	}
	return MaxScale
}

// Rate is the most that a window allows over rtt, in bit/s of payload: one window a
// round trip (RFC 6349 section 3.3.1).
func Rate(window int, rtt time.Duration) float64 {
	if rtt <= 0 {
		return math.Inf(1)
	}
	return float64(window) * 8 / rtt.Seconds()
}

// RTT is the longest round trip at which a window still allows rateBps.
func RTT(window int, rateBps float64) time.Duration {
	seconds := float64(window) * 8 / rateBps
	if !(seconds < math.MaxInt64/float64(time.Second)) {
		return math.MaxInt64
	}
	return time.Duration(seconds * float64(time.Second))
}
