package model

import (
	"math"
	"time"
)

// Mathis is the goodput of Reno in bit/s where a share p of the segments is lost at
// random: MSS/RTT × √(3/2)/√p (Mathis, Semke, Mahdavi, Ott 1997), for a receiver whose
// every segment opens the window, as Linux counts bytes (RFC 3465). With no loss there
// is no bound.
func Mathis(mss int, rtt time.Duration, p float64) float64 {
	if p <= 0 || rtt <= 0 {
		return math.Inf(1)
	}
	return perRoundTrip(math.Sqrt(1.5/p), mss, rtt)
}

// PFTK is Reno's goodput in bit/s with its timeouts (Padhye, Firoiu, Towsley, Kurose
// 1998, equation 32, with b = 1): most is the window's bound in bytes, rto the first
// retransmission timeout.
func PFTK(mss int, rtt, rto time.Duration, p float64, most int) float64 {
	bound := Rate(most, rtt)
	if p <= 0 || rtt <= 0 {
		return bound
	}
	fast := rtt.Seconds() * math.Sqrt(2*p/3)
	slow := rto.Seconds() * min(1, 3*math.Sqrt(3*p/8)) * p * (1 + 32*p*p)
	return min(bound, float64(8*mss)/(fast+slow))
}

// CUBIC's constants (RFC 9438 sections 4.1.1 and 4.6).
const (
	CubicC    = 0.4 // segments/s³
	CubicBeta = 0.7
)

// Cubic is CUBIC's goodput in bit/s where a share p of the segments is lost at random:
// the larger of its own mean window (RFC 9438 section 5.1, equation 5) and of Reno's,
// which it never falls below (section 4.3).
func Cubic(mss int, rtt time.Duration, p float64) float64 {
	if p <= 0 || rtt <= 0 {
		return math.Inf(1)
	}
	window := math.Pow(CubicC*(3+CubicBeta)/(4*(1-CubicBeta)), 0.25) * math.Pow(rtt.Seconds()/p, 0.75)
	return max(perRoundTrip(window, mss, rtt), Mathis(mss, rtt, p))
}

// CubicWindow is CUBIC's window in segments t after a reduction from most segments to
// CubicBeta × most (RFC 9438 section 4.2, figures 1 and 2).
func CubicWindow(most float64, t time.Duration) float64 {
	k := math.Cbrt(most * (1 - CubicBeta) / CubicC)
	return CubicC*math.Pow(t.Seconds()-k, 3) + most
}

// bbrTolerates is the share of loss up to which BBR keeps its rate: probing at 1.25
// times its estimate still delivers that estimate (Cardwell et al. 2016, pacing gain 5/4).
const bbrTolerates = 0.2

// BBR is the goodput in bit/s of BBR version 1 on a path that carries capacityBps where
// a share p of the segments is lost: it sends on, and what is lost is lost. Beyond 20 %
// each probe finds less than the one before: no rate is kept.
func BBR(capacityBps, p float64) float64 {
	if p >= bbrTolerates {
		return 0
	}
	return capacityBps * (1 - p)
}

func perRoundTrip(segments float64, mss int, rtt time.Duration) float64 {
	return segments * float64(8*mss) / rtt.Seconds()
}
