package html

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestDiagnose_OmittedConnectionsFirst writes the page of a capture with more connections than are followed.
func TestDiagnose_OmittedConnectionsFirst(t *testing.T) {
	const first = "1,000,000 connections were seen: those with the most bytes were followed (40,000) and judged (0)"
	for _, seen := range []int64{0, 1_000_000} {
		var out strings.Builder
		must.Do(t, Write(&out, &record.Diagnose{Seen: seen, Followed: 40_000}))
		header, _, _ := strings.Cut(out.String(), "<table")
		if strings.Contains(header, first) != (seen > 0) {
			t.Errorf("%d seen: %s", seen, header[max(len(header)-1000, 0):])
		}
	}
}

// TestDiagnose_Requests draws the distribution and the slowest requests, also of a document with hostile names.
func TestDiagnose_Requests(t *testing.T) {
	slow := record.SlowestTurn{Client: "192.0.2.1:1234", StartS: 1, DurationS: 0.25, Cause: "timeout", CauseS: 0.2,
		FirstPacket: 70, LastPacket: 73, Parts: []record.TurnPart{{Stage: "request", Cause: "propagation", TimeS: 0.05},
			{Stage: "response", Cause: "timeout", TimeS: 0.2}, {Stage: "<b>", Cause: `"><script>`, TimeS: 1e300}}}
	requests := record.Requests{Turns: &record.Turns{Count: 41, P50S: 0.01, MaxS: 0.25,
		Slowest:      []record.SlowestTurn{slow},
		Distribution: []record.TurnsBin{{BelowS: 0.0126, Count: 40}, {BelowS: 0.2512, Count: 1}, {BelowS: -1, Count: 3}}}}
	doc := &record.Diagnose{Servers: []record.CapturedServer{{Server: "192.0.2.2:80", Connections: 4, Requests: requests}}}
	var out strings.Builder
	must.Do(t, Write(&out, doc))
	for _, want := range []string{"Requests to 192.0.2.2:80", "median 10 ms of 41 requests",
		"40 requests of 10 ms to 12.6 ms", "request: the path", "a retransmission timer (RTO)",
		"frame.number in {70..73} &amp;&amp; tcp.port == 1234"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(out.String(), `"><script>`) || strings.Contains(out.String(), "<b>") {
		t.Error("a name is not escaped")
	}
}
