package diagnose

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func analyzed(t *testing.T, names ...string) *capture.Analysis {
	t.Helper()
	var files []*capture.File
	for _, name := range names {
		f := must.Get(capture.Open("testdata/" + name + ".pcap.zst"))(t)
		defer f.Close()
		files = append(files, f)
	}
	return analysis(t, files)
}

func analysis(t *testing.T, files []*capture.File) *capture.Analysis {
	t.Helper()
	a, err := capture.Analyze(t.Context(), capture.Config{Workers: 1, Flow: flow.Config{Passes: Passes}}, files...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Where data was lost and where it waited, by captures at both ends, whichever of them is
// called near.
func TestTwoCaptures(t *testing.T) {
	for name, want := range map[string]struct {
		limiter     verdict.Name
		lost, queue bool // between the taps
	}{
		"bott-cubic-20m":   {verdict.Bottleneck, true, true}, // the queue overflows
		"loss-1pc-cubic":   {verdict.Congestion, true, false},
		"reader-5m":        {verdict.ReceiverApplication, false, false},
		"rwnd-64k-100m-40": {verdict.ReceiverWindow, false, false},
	} {
		for _, ends := range [][2]string{{".near", ".far"}, {".far", ".near"}} {
			d := New(analyzed(t, name+ends[0]), 1)
			d.Compare(analyzed(t, name+ends[1]))
			r := d.Record.Connections[0].Worst()
			b := r.Between
			if b == nil {
				t.Fatalf("%s: the other capture was not found: %v", name, d.Record.Connections[0].Notes)
			}
			if r.Limiter != want.limiter || b.JudgedAt == "far" != (ends[0] == ".far") {
				t.Errorf("%s%s: %s, judged at %s", name, ends[0], r.Limiter, b.JudgedAt)
			}
			if b.LostBetweenBytes > 0 != want.lost || b.LostBeforeBytes > 0 || b.LostAfterBytes > 3*1460 {
				t.Errorf("%s%s: lost %+v", name, ends[0], *b)
			}
			if b.RTTMinS <= 0 || b.QueueS > 0.5*b.RTTMinS != want.queue || b.QueuePastS > b.RTTMinS {
				t.Errorf("%s%s: waited %+v", name, ends[0], *b)
			}
			var out strings.Builder
			if text.Diagnose(&out, d.Record, 1, true); !strings.Contains(out.String(), "between the taps") {
				t.Error(out.String())
			}
		}
	}
}
