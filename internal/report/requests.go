package report

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Requests adds the result of a load of requests to its document.
func Requests(doc *record.MeasureRequests, r *transfer.Result) {
	asked := r.Spec.Requests
	doc.Method = "rr"
	doc.RequestBytes = int64(asked.RequestBytes)
	doc.ResponseBytes = int64(asked.ResponseBytes)
	doc.Concurrency = int64(max(r.Spec.Streams, 1))
	if asked.PerSecond > 0 {
		doc.OfferedPerS = &asked.PerSecond
	}
	doc.Near = Host(r.Near)
	doc.Far = Host(r.Far)
	doc.Warnings = append(doc.Warnings, r.Warnings...)
	doc.Interrupted = !r.Complete
	l := r.Load
	doc.DurationS = l.Elapsed.Seconds()
	doc.Connections = l.Connections
	doc.Failed = l.Failed
	doc.NotStarted = l.NotStarted
	for _, status := range slices.Sorted(maps.Keys(l.Statuses)) {
		doc.Statuses = append(doc.Statuses, record.StatusCount{Status: status, Count: l.Statuses[status]})
	}
	if l.Elapsed > 0 {
		doc.RequestsPerS = float64(l.Profile.Count) / l.Elapsed.Seconds()
	}
	if asked.NewConnections {
		doc.Method = "crr"
		if l.Elapsed > 0 {
			doc.ConnectionsPerS = new(float64(l.Connections) / l.Elapsed.Seconds())
		}
	}
	if l.RoundTrip > 0 {
		doc.RTTMinS = new(l.RoundTrip.Seconds())
	}
	if l.Profile.Count == 0 {
		return
	}
	doc.Requests = record.RequestsOf(&l.Profile)
	for i := range doc.Turns.Slowest {
		stream := l.Profile.Longest[i].Connection
		if r.Near != nil && stream < len(r.Near.Streams) && !asked.NewConnections {
			doc.Turns.Slowest[i].Client = r.Near.Streams[stream].Local.String()
		}
	}
	if !l.FarKnown {
		doc.Warnings = append(doc.Warnings, "the far end did not report its retransmissions, so waits for them are of "+
			"unknown cause")
	}
	if n := l.SlowLeftOut; n > 0 {
		doc.Warnings = append(doc.Warnings, fmt.Sprintf("no stall was looked for in %d more slow requests", n))
	}
}
