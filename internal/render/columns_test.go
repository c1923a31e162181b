package render_test

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// terminal is a buffer with a width in columns.
type terminal struct {
	bytes.Buffer
	wide int
}

func (t *terminal) Columns() int { return t.wide }

func (*terminal) Terminal() bool { return true }

// TestText_FitsEightyColumns checks every stored document but recheck's log, which has a line for each event.
func TestText_FitsEightyColumns(t *testing.T) {
	const columns = 80
	for file, archive := range stored(t) {
		doc := must.Get(record.Decode(part(archive, "record.json"), part(archive, "samples.json")))(t)
		if _, log := doc.(*record.Recheck); log {
			continue
		}
		w := &terminal{wide: columns}
		must.Do(t, text.Write(w, doc))
		for line := range strings.Lines(w.String()) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%s: %d columns: %s", file, n, line)
			}
		}
	}
}

// colourTerminal is a terminal that shows colours.
type colourTerminal struct{ terminal }

func (*colourTerminal) Colours() bool { return true }

// TestText_Colours checks that colours mark the verdict and the remedy and change no text, and that foreign text has
// none.
func TestText_Colours(t *testing.T) {
	for file, archive := range stored(t) {
		doc := must.Get(record.Decode(part(archive, "record.json"), part(archive, "samples.json")))(t)
		coloured := &colourTerminal{terminal{wide: 80}}
		plain := &terminal{wide: 80}
		must.Do(t, errors.Join(text.Write(render.NewWriter(coloured), doc), text.Write(plain, doc)))
		without := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(coloured.String(), "")
		if without != plain.String() {
			t.Errorf("%s: colours change the text:\n%s", file, coloured.String())
		}
		if _, ok := doc.(*record.Measure); ok && !strings.Contains(coloured.String(), "\x1b[1m18.") {
			t.Errorf("%s: no headline in colour:\n%q", file, coloured.String())
		}
	}
	foreign := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1"}, Peer: "host\x1b[31m",
		Directions: []record.Direction{{Direction: transfer.Up, Verdict: verdict.Verdict{Limiter: "\x1b[5m"}}}}
	w := &colourTerminal{terminal{wide: 80}}
	if err := text.Write(w, foreign); err != nil || strings.Contains(w.String(), "\x1b[31m") ||
		strings.Contains(w.String(), "\x1b[5m") {
		t.Errorf("%v: %q", err, w.String())
	}
}

// TestTextIsAsWideAsItsTerminal checks that text fills its terminal, between 44 and 160 columns, through every
// writer in front of it. Other outputs have 100 columns.
func TestTextIsAsWideAsItsTerminal(t *testing.T) {
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1"}, Peer: "host",
		Directions: []record.Direction{{Direction: transfer.Up, Verdict: verdict.Verdict{Limiter: verdict.Unknown,
			Evidence: []verdict.Evidence{{Code: "from-elsewhere", Text: strings.Repeat("word ", 100)}}}}}}
	for asked, want := range map[int]int{0: 100, 40: 44, 60: 60, 80: 80, 132: 132, 400: 160} {
		w := &terminal{wide: asked}
		must.Do(t, text.Write(io.Writer(render.NewWriter(w)), doc))
		widest := 0
		for line := range strings.Lines(w.String()) {
			widest = max(widest, utf8.RuneCountInString(strings.TrimRight(line, "\n")))
		}
		if widest > want || widest < want-8 {
			t.Errorf("a terminal of %d columns: the widest line has %d, want at most %d", asked, widest, want)
		}
	}
}
