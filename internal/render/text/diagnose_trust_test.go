package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

func TestTrustLine(t *testing.T) {
	reason := func(code trust.Code, name string, value float64) trust.Reason {
		return trust.Reason{Code: code, Values: verdict.Values{name: value}}
	}
	for want, line := range map[string]trust.Trust{
		"losses yes, timing yes": {Loss: true, Timing: true},
		"losses yes, timing no (merged receive, 3 % not captured)": {Loss: true, Reasons: []trust.Reason{
			{Code: trust.MergedReceive}, reason(trust.NotCaptured, "missing_ratio", 0.03)}},
		"losses yes, timing yes (merged transmit, 50 % captured twice)": {Loss: true, Timing: true, Reasons: []trust.Reason{
			{Code: trust.MergedTransmit}, reason(trust.Duplicates, "duplicate_ratio", 0.5)}},
		"losses no, timing no (one direction only)": {Reasons: []trust.Reason{{Code: trust.OneDirection}}},
		"losses no, timing yes (SACK cut off in 40 % of the segments)": {Timing: true,
			Reasons: []trust.Reason{reason(trust.OptionsCut, "cut_ratio", 0.4)}},
		"losses no, timing no (12 % cut before the TCP header)": {
			Reasons: []trust.Reason{reason(trust.HeadersCut, "cut_ratio", 0.12)}},
		"losses yes, timing no (clock set 2 times, clock in steps of 10 ms)": {Loss: true, Reasons: []trust.Reason{
			reason(trust.ClockSteps, "steps", 2), reason(trust.CoarseClock, "grain_s", 0.01)}},
		"losses yes, timing no (stamped in batches, up to 30 ms late)": {Loss: true,
			Reasons: []trust.Reason{reason(trust.Batched, "grain_s", 0.03)}},
	} {
		if got := TrustLine(&line); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestDiagnose_TrustIsTheFirstLine(t *testing.T) {
	var out strings.Builder
	d := record.CapturedDirection{From: "192.0.2.1:1", To: "192.0.2.2:2", Bytes: 100_000}
	Diagnose(&out, &record.Diagnose{Seen: 5, Trust: &trust.Trust{Loss: true},
		Connections: []record.CapturedConnection{{Directions: []record.CapturedDirection{d}}}}, 20, false)
	if !strings.HasPrefix(out.String(), "reliable: losses yes, timing no\n") {
		t.Error(out.String())
	}
}
