package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestDiagnose_OmittedConnectionsFirst prints a capture with more connections than are followed.
func TestDiagnose_OmittedConnectionsFirst(t *testing.T) {
	const first = "1,000,000 connections were seen: those with the most bytes were followed (40,000) and judged (1)\n"
	for _, tt := range []struct {
		seen, followed int64
		says           bool
	}{{1_000_000, 40_000, true}, {0, 0, false}} {
		var out strings.Builder
		d := record.CapturedDirection{From: "192.0.2.1:1", To: "192.0.2.2:2", Bytes: 1000}
		Diagnose(&out, &record.Diagnose{Seen: tt.seen, Followed: tt.followed, Tiny: true,
			Connections: []record.CapturedConnection{{Directions: []record.CapturedDirection{d}}}}, 20, false)
		if strings.HasPrefix(out.String(), first) != tt.says || strings.Contains(out.String(), "were seen") != tt.says {
			t.Errorf("%d seen:\n%s", tt.seen, out.String())
		}
	}
}

// TestDiagnose_DataAtOneInstantHasNoTime prints a direction whose data and acknowledgement have the same time.
func TestDiagnose_DataAtOneInstantHasNoTime(t *testing.T) {
	var out strings.Builder
	d := record.CapturedDirection{From: "192.0.2.1:1", To: "192.0.2.2:2", Bytes: 419_242}
	Diagnose(&out, &record.Diagnose{Connections: []record.CapturedConnection{{
		Directions: []record.CapturedDirection{d}}}}, 20, false)
	if !strings.Contains(out.String(), "419,242 bytes at one instant") || strings.Contains(out.String(), "in 0 ns") {
		t.Error(out.String())
	}
}

// TestDiagnose_SaysTheTimeOfLostSYNs prints a connection that lost more time than its data took.
func TestDiagnose_SaysTheTimeOfLostSYNs(t *testing.T) {
	for _, tt := range []struct {
		wait float64
		want string
	}{{3, "172 ms + 3 s SYN wait"}, {0.505, "172 ms + 505 ms SYN wait"}, {0, "172 ms"}} {
		var out strings.Builder
		d := record.CapturedDirection{From: "192.0.2.1:1", To: "192.0.2.2:2", Bytes: 150_000, DurationS: 0.172,
			SYNWaitS: tt.wait, LostS: 0.17 + tt.wait}
		Diagnose(&out, &record.Diagnose{
			Connections: []record.CapturedConnection{{Directions: []record.CapturedDirection{d}}}}, 20, false)
		for _, from := range []string{" in " + tt.want + ".", "  " + tt.want + "  ", " in " + tt.want + ","} {
			if strings.Count(out.String(), from) != 1 {
				t.Errorf("no %q:\n%s", from, out.String())
			}
		}
	}
}
