package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// fewestIntervals is the number of intervals of a transfer that the interval of its rate needs.
const fewestIntervals = 6

// directionFacts adds the facts of a direction that its figures do not show: the shares of its
// time, the scatter of its rate, and how it was sent.
func directionFacts(all map[string]string, d *record.Direction) {
	name := func(fact string) string { return string(d.Direction) + ", " + fact }
	var parts []string
	for _, limiter := range slices.SortedFunc(maps.Keys(d.Shares), func(a, b verdict.Name) int {
		return cmp.Or(cmp.Compare(d.Shares[b], d.Shares[a]), cmp.Compare(a, b))
	}) {
		if share := 100 * d.Shares[limiter]; share >= 0.5 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", limiter, share))
		}
	}
	if len(parts) > 0 {
		all[name("time went to")] = strings.Join(parts, ", ")
	}
	var rates []float64
	for _, i := range d.Intervals {
		if d.Startup == nil || i.StartS >= d.Startup.DurationS {
			rates = append(rates, i.GoodputBps)
		}
	}
	if len(rates) >= fewestIntervals {
		i := stats.Estimate(rates, 0.95)
		all[name("95 % interval by its intervals")] = fmt.Sprintf("%s to %s", units.Rate(i.Low), units.Rate(i.High))
	}
	if n := len(d.Streams); n > 0 {
		all[name("connections")] = fmt.Sprint(n)
	}
	if d.RetransmittedSegment != nil {
		all[name("segments sent again")] = fmt.Sprint(*d.RetransmittedSegment)
	}
	if d.PathMTUBytes > 0 {
		all[name("path MTU")] = fmt.Sprintf("%d bytes", d.PathMTUBytes)
	}
}

// requestFacts adds the load of a measurement of requests.
func requestFacts(all map[string]string, m *record.MeasureRequests) {
	all["connections"] = "each for many requests"
	if m.Method == "crr" {
		all["connections"] = "each for one request"
	}
	all["requests"] = units.Size(m.RequestBytes).String()
	all["responses"] = units.Size(m.ResponseBytes).String()
	all["requests at a time"] = fmt.Sprint(m.Concurrency)
	if m.OfferedPerS != nil {
		all["requests asked for"] = fmt.Sprintf("%g/s", *m.OfferedPerS)
	}
}
