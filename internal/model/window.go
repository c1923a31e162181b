// Package model is the arithmetic of TCP throughput: windows, RFC 6349's ideals, and transfer times.
//
// Rates are bits per second, windows bytes of payload, times durations. Path rates count IP packets unless a
// function says otherwise.
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

// BDP returns the bandwidth-delay product in bytes: the bytes in flight that fill a path of rateBps over rtt (RFC
// 6349 section 3.3.1).
func BDP(rateBps float64, rtt time.Duration) float64 { return rateBps / 8 * rtt.Seconds() }

// Window returns the smallest window of an even number of segments for the given bytes, so that a receiver
// acknowledging every second segment never waits. The result is at least two segments and at most MaxWindow.
func Window(bytes float64, mss int) int {
	pair := 2 * float64(max(mss, 1))
	pairs := math.Ceil(bytes/pair - 1e-9)
	pairs = math.Min(math.Max(pairs, 1), math.Floor(MaxWindow/pair))
	return int(math.Max(pairs, 1) * pair)
}

// LargestUnscaled returns the largest window of whole segments without window scale, an even number if more than
// one.
func LargestUnscaled(mss int) int { return max(MaxUnscaled/(2*mss)*2, 1) * mss }

// Scale returns the smallest window scale that can advertise a window; at most MaxScale.
func Scale(window int) int {
	for shift := range MaxScale {
		if window <= MaxUnscaled<<shift {
			return shift
		}
	}
	return MaxScale
}

// Rate returns the largest goodput of a window over rtt in bit/s: one window per RTT (RFC 6349 section 3.3.1).
func Rate(window int, rtt time.Duration) float64 {
	if rtt <= 0 {
		return math.Inf(1)
	}
	return float64(window) * 8 / rtt.Seconds()
}

// RTT returns the longest RTT at which a window allows rateBps.
func RTT(window int, rateBps float64) time.Duration {
	seconds := float64(window) * 8 / rateBps
	if !(seconds < math.MaxInt64/float64(time.Second)) {
		return math.MaxInt64
	}
	return time.Duration(seconds * float64(time.Second))
}
