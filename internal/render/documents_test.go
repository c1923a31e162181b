package render_test

import (
	"bytes"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// attack is the value of every text field of every document: each piece has an effect on a
// terminal, and the last begins a new line.
const attack = "x\x1b[2J\x1b]0;t\x07\u009b31m\r\u202e\u2028\x7f\nFORGED"

// fill sets every exported text of a value, and makes pointers, lists and maps to hold
// some.
func fill(v reflect.Value, depth int) {
	if depth > 12 || !v.CanSet() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(attack)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(2)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(2)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(0.5)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, depth+1)
		fill(value, depth+1)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1e9, 0)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), depth+1)
		}
	}
}

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
		fill(reflect.ValueOf(doc).Elem(), 0)
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
