package render_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// terminal is a buffer with a width in columns.
type terminal struct {
	bytes.Buffer
	wide int
}

func (t *terminal) Columns() int { return t.wide }

// TestTextIsAsWideAsItsTerminal checks that text fills its terminal, between 44 and 160 columns, through every
// writer in front of it. Other outputs have 100 columns.
func TestTextIsAsWideAsItsTerminal(t *testing.T) {
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1"}, Peer: "host",
		Directions: []record.Direction{{Direction: transfer.Up, Verdict: verdict.Verdict{Limiter: verdict.Unknown,
			Evidence: []verdict.Evidence{{Code: "from-elsewhere", Text: strings.Repeat("word ", 100)}}}}}}
	for asked, want := range map[int]int{0: 100, 40: 44, 60: 60, 80: 80, 132: 132, 400: 160} {
		w := &terminal{wide: asked}
		if err := text.Write(io.Writer(render.NewWriter(w)), doc); err != nil {
			t.Fatal(err)
		}
		widest := 0
		for line := range strings.Lines(w.String()) {
			widest = max(widest, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
		}
		if widest > want || widest < want-8 {
			t.Errorf("a terminal of %d columns: the widest line has %d, want at most %d", asked, widest, want)
		}
	}
}
