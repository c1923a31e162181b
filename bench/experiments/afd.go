package main

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
)

// afdGoodput returns the goodput in bit/s of writes of one size over a round trip, within the bounds (bit/s) of the
// path: a link, a gateway.
func afdGoodput(a model.AFD, write int, rtt time.Duration, bounds ...float64) float64 {
	return min(model.Rate(a.Outstanding(write), rtt), slices.Min(append(bounds, math.Inf(1))))
}

// afdCell is one measured goodput (bit/s) of a sender with a quota and writes of one size.
type afdCell struct {
	quota, write int
	bps          float64
}

// fitRTT returns the round trip that cells imply: the median of outstanding bytes over goodput. It leaves out cells
// within 15 % of full (bit/s), because something else limits them. It returns 0 if none remains.
func fitRTT(cells []afdCell, full float64) time.Duration {
	var implied []time.Duration
	for _, c := range cells {
		if c.bps > 0 && c.bps < 0.85*full {
			implied = append(implied, model.RTT(model.AFD{Quota: c.quota}.Outstanding(c.write), c.bps))
		}
	}
	if len(implied) == 0 {
		return 0
	}
	slices.Sort(implied)
	return (implied[(len(implied)-1)/2] + implied[len(implied)/2]) / 2
}
