package record

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestSummarize_Limiter(t *testing.T) {
	for _, doc := range []Document{
		&Measure{Directions: []Direction{{Direction: transfer.Up, Verdict: verdict.Verdict{Limiter: verdict.Bottleneck}}}},
		&MeasureUDP{Directions: []Datagrams{{Direction: transfer.Up, Limiter: verdict.Bottleneck}}},
	} {
		if figures := Summarize(doc).Figures; len(figures) != 1 || figures[0].Limiter != string(verdict.Bottleneck) {
			t.Errorf("%T: %+v", doc, figures)
		}
	}
}
