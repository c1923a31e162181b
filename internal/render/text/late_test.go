package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// A lab without stalls whose packets were late does not report a stall.
func TestLate_NamesStallsOnlyIfThereWere(t *testing.T) {
	for stalls, want := range map[int64]bool{0: false, 3: true} {
		doc := &record.Measure{}
		doc.Late = &record.Late{LinkLate: record.LinkLate{P99S: 0.0003, MaxS: 0.0017, Stalls: stalls, StalledS: 0.01}}
		said := Late(doc)
		if strings.Contains(said, "stalled") != want || !strings.Contains(said, "300 µs late") {
			t.Errorf("%d stalls: %s", stalls, said)
		}
	}
}
