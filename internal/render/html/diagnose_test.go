package html

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestDiagnose_OmittedConnectionsFirst writes the page of a capture with more connections than are followed.
func TestDiagnose_OmittedConnectionsFirst(t *testing.T) {
	const first = "1,000,000 connections were seen: those with the most bytes were followed (40,000) and judged (0)"
	for _, seen := range []int64{0, 1_000_000} {
		var out strings.Builder
		if err := Write(&out, &record.Diagnose{Seen: seen, Followed: 40_000}); err != nil {
			t.Fatal(err)
		}
		header, _, _ := strings.Cut(out.String(), "<table")
		if strings.Contains(header, first) != (seen > 0) {
			t.Errorf("%d seen: %s", seen, header[max(len(header)-1000, 0):])
		}
	}
}
