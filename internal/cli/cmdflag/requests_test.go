package cmdflag

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// TestRequestLimits_Load judges 1,000 requests of a load: a percentile that may belong to a request without a response
// is not known, nor is the absence of a kind of stall where stalls have unknown causes.
func TestRequestLimits_Load(t *testing.T) {
	known := record.Requests{Turns: &record.Turns{Count: 1000, P50S: 0.006, P90S: new(0.007), P99S: new(0.04), MaxS: 0.3},
		Stalls: []record.Stall{{Cause: "timeout", From: "server", Count: 3, TimeS: 0.6}}}
	few := record.Requests{Turns: &record.Turns{Count: 19, P50S: 0.006, MaxS: 0.3}}
	for _, c := range []struct {
		on       string
		requests record.Requests
		missing  int64
		unsure   bool // of the causes of stalls
		passed   bool
		unknown  string
	}{
		{"p99>50ms", known, 0, false, true, ""},
		{"p99>30ms", known, 0, false, false, ""},
		{"p99>50ms", known, 9, false, true, ""},
		{"p99>50ms", known, 11, false, false, record.NoResponse},
		{"p90>50ms", known, 11, false, true, ""},
		{"p50>50ms", known, 999, false, true, ""},
		{"p50>50ms", known, 1001, false, false, record.NoResponse},
		{"max>1s", known, 0, false, true, ""},
		{"max>1s", known, 1, false, false, record.NoResponse},
		{"p90>1s", few, 0, false, false, record.TooFewRequests},
		{"p50>1s", record.Requests{}, 0, false, false, record.TooFewRequests},
		{"p50>1s", record.Requests{}, 1, false, false, record.NoResponse},
		{"timeout", known, 0, false, false, ""},
		{"timeout", known, 0, true, false, ""},
		{"lost-syn", known, 0, false, true, ""},
		{"lost-syn", known, 0, true, false, record.UnknownCauses},
		{"lost-syn", record.Requests{}, 1, false, false, record.UnknownCauses},
	} {
		limits, err := ParseRequestLimits([]string{c.on}, turns.ExchangeStalls())
		if err != nil {
			t.Fatal(c.on, err)
		}
		got := limits.JudgeLoad(&c.requests, c.missing, !c.unsure)[0]
		if got.Passed != c.passed || got.Unknown != c.unknown || (got.MeasuredS == nil) != (c.unknown != "") {
			t.Errorf("%s, %d missing: %+v, want passed %v, unknown %q", c.on, c.missing, got, c.passed, c.unknown)
		}
	}
}

func TestRequestLimits_RejectUnknownWords(t *testing.T) {
	for _, on := range []string{"p98>1s", "p99>50", "p99>-1s", "p99", "congestion", "nagle"} {
		if _, err := ParseRequestLimits([]string{on}, turns.ExchangeStalls()); err == nil {
			t.Errorf("%q is accepted", on)
		}
	}
	if _, err := ParseRequestLimits([]string{"nagle"}, turns.StallNames()); err != nil {
		t.Error(err)
	}
}
