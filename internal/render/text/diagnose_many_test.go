package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestDiagnose_SaysFirstWhatItLeavesOut prints a capture with more connections than are followed.
func TestDiagnose_SaysFirstWhatItLeavesOut(t *testing.T) {
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
