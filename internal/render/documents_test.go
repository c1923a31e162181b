package render_test

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/testenv/hostile"
)

// attack is the value of every text field of every document: each piece has an effect on a
// terminal, and the last begins a new line.
const attack = "x\x1b[2J\x1b]0;t\x07\u009b31m\r\u202e\u2028\x7f\nFORGED"

// TestNoTextOfADocumentReachesATerminalAsItIs drives every text of every document
// through its text, its page and its table.
func TestNoTextOfADocumentReachesATerminalAsItIs(t *testing.T) {
	for _, doc := range []record.Document{
		&record.Measure{}, &record.MeasureUDP{}, &record.Capacity{}, &record.Compare{}, &record.Tune{}, &record.Sweep{},
		&record.RFC6349{},
		&record.Plan{}, &record.Predict{}, &record.Diagnose{}, &record.Audit{}, &record.Apply{}, &record.Undo{},
		&record.Status{}, &record.Exec{},
		&record.Watch{}, &record.WatchKept{}, &record.Recheck{},
	} {
		name := reflect.TypeOf(doc).Elem().Name()
		hostile.Fill(doc, attack)
		for form, write := range map[string]func(io.Writer) error{
			"text":  func(w io.Writer) error { return text.Write(w, doc) },
			"page":  func(w io.Writer) error { return html.Write(w, doc) },
			"table": func(w io.Writer) error { return text.CSV(w, doc) },
			"details": func(w io.Writer) error {
				if captured, ok := doc.(*record.Diagnose); ok {
					return text.Connections(w, captured, 20, true)
				}
				return text.Write(w, doc)
			},
		} {
			var out bytes.Buffer
			if err := write(&out); err != nil {
				if !strings.Contains(err.Error(), "there is no") {
					t.Errorf("%s as %s: %v", name, form, err)
				}
				continue
			}
			checkShown(t, name+" as "+form, out.String())
		}
	}
}

// checkShown checks that a rendered document has only characters that a terminal may show.
func checkShown(t *testing.T, name, shown string) {
	t.Helper()
	if !strings.Contains(shown, "FORGED") {
		t.Errorf("%s: none of its text is shown", name)
	}
	around := func(at int) string { return shown[max(0, at-60):min(len(shown), at+20)] }
	if at := strings.IndexFunc(shown, func(r rune) bool {
		return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
	}); at >= 0 {
		t.Errorf("%s: a control passes: %q", name, around(at))
	}
	if at := strings.Index(shown, "\nFORGED"); at >= 0 {
		t.Errorf("%s: a line is forged: %q", name, around(at))
	}
}
