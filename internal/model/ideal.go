package model

import (
	"math"
	"time"
)

// IPHeaders are the IPv4 and TCP headers of a segment without options.
const IPHeaders = 40

// TimestampBytes is what the timestamps option takes from each segment (RFC 7323
// section 3.2, padded).
const TimestampBytes = 12

// InitialWindow is the window in segments with which a sender starts (RFC 6928).
const InitialWindow = 10

// Goodput is the most payload that a link of rateBps carries: segments of mss bytes,
// each with headers bytes more on the link (IPHeaders, TimestampBytes, and framing
// where the rate counts it: 38 for Ethernet, RFC 6349 section 4.1.1).
func Goodput(rateBps float64, mss, headers int) float64 {
	return rateBps * float64(mss) / float64(mss+headers)
}

// LinkRate is Goodput the other way: the rate that a link needs for a goodput.
func LinkRate(goodputBps float64, mss, headers int) float64 {
	return goodputBps * float64(mss+headers) / float64(mss)
}

// TransferTime is how long bytes take from the first segment to the last
// acknowledgement on a path that carries goodputBps in steady state: a window that
// doubles every round trip from InitialWindow until it fills the path, then goodputBps.
// No loss is assumed.
func TransferTime(bytes float64, goodputBps float64, rtt time.Duration, mss int) time.Duration {
	if bytes <= 0 || goodputBps <= 0 {
		return 0
	}
	full := goodputBps / 8 * rtt.Seconds() // bytes a round trip in steady state
	window := float64(InitialWindow * max(mss, 1))
	rounds := 0.0
	for window < full && bytes > window {
		bytes -= window
		window *= 2
		rounds++
	}
	seconds := (rounds+1)*rtt.Seconds() + bytes*8/goodputBps
	if window < full { // the last round sends less than a full path holds
		seconds = (rounds + 1) * rtt.Seconds()
	}
	return time.Duration(math.Min(seconds, math.MaxInt64/2e9) * float64(time.Second))
}
