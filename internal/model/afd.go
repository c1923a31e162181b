package model

import (
	"math"
	"slices"
	"time"
)

// AFD is how the socket layer of Windows NT 4 to XP (afd.sys) buffers blocking writes,
// fitted to published throughput over write sizes: with a quota of B bytes
// (SO_SNDBUF, DefaultSendWindow; 8192 by default) about B bytes are outstanding (written
// and not yet acknowledged) for writes up to B, and about B + S for larger writes of S
// bytes.
type AFD struct {
	Quota int // bytes
}

// DefaultAFDQuota is AFD's DefaultSendWindow on hosts with more than 19 MB of memory.
const DefaultAFDQuota = 8192

// Outstanding is how many bytes writes of one size keep unacknowledged.
func (a AFD) Outstanding(write int) int {
	if write <= 0 {
		return 0
	}
	if write > a.Quota {
		return a.Quota + write
	}
	return a.Quota
}

// Goodput is what writes of one size give in bit/s over a round trip, under the bounds
// (bit/s) of what lies on the way: a link, a gateway.
func (a AFD) Goodput(write int, rtt time.Duration, bounds ...float64) float64 {
	return min(Rate(a.Outstanding(write), rtt), slices.Min(append(bounds, math.Inf(1))))
}

// AFDCell is one measured goodput (bit/s) of a sender with a quota and writes of one size.
type AFDCell struct {
	Quota, Write int
	Bps          float64
}

// FitRTT is the round trip that cells imply: the median of outstanding bytes over
// goodput. Cells within 15 % of full (bit/s) are left out: there something else
// limits. It is 0 where none remains.
func FitRTT(cells []AFDCell, full float64) time.Duration {
	var implied []time.Duration
	for _, c := range cells {
		if c.Bps > 0 && c.Bps < 0.85*full {
			implied = append(implied, RTT(AFD{c.Quota}.Outstanding(c.Write), c.Bps))
		}
	}
	if len(implied) == 0 {
		return 0
	}
	slices.Sort(implied)
	return (implied[(len(implied)-1)/2] + implied[len(implied)/2]) / 2
}
