// Package render writes all text for terminals and pages. Far ends, files, kernels and
// programs choose some characters of a document and could use them to move the cursor,
// to rewrite earlier lines, to set the clipboard or to reverse a line. So render escapes
// every control character of a document: the terminal shows the escape.
package render

import (
	"bytes"
	"io"
	"reflect"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/foreign"
)

// Line is text from elsewhere as one line: line breaks are escaped too.
func Line(s string) string { return foreign.Line(s) }

// LineBreak is the escape of a line feed in Line.
const LineBreak = `\u000a`

// Document returns a copy of a document in which every string is a Line, so that no
// foreign text begins a new line. Parts without escapes are shared with the original.
func Document[T any](doc T) T {
	v, changed := lines(reflect.ValueOf(&doc).Elem())
	if !changed {
		return doc
	}
	return v.Interface().(T)
}

// Columns returns the maximum width of text for w: its terminal's, between 44 and 160, or
// 100 if it is no terminal.
func Columns(w io.Writer) int {
	const usual, least, most = 100, 44, 160
	if c, ok := w.(interface{ Columns() int }); ok {
		if n := c.Columns(); n > 0 {
			return min(max(n, least), most)
		}
	}
	return usual
}

// page buffers text with the width of its destination, and its colours if the destination shows any.
type page struct {
	bytes.Buffer
	columns  int
	terminal bool
	colours  bool
	marks    []mark // in order
}

func (p *page) Columns() int { return p.columns }

func (p *page) Terminal() bool { return p.terminal }

// IsTerminal reports whether w is a terminal. Elsewhere each row of a table stays on one line, for grep.
func IsTerminal(w io.Writer) bool {
	t, ok := w.(interface{ Terminal() bool })
	return ok && t.Terminal()
}

// Written escapes the output of write, passes it to w in one piece and returns the first
// error.
func Written(w io.Writer, write func(io.Writer) error) error {
	b := page{columns: Columns(w), terminal: IsTerminal(w), colours: showsColours(w)}
	if err := write(&b); err != nil {
		return err
	}
	return b.writeTo(w)
}

// Writer escapes every control character except line feeds and tabs and passes the text
// to another writer. The escapes are those of JSON, so a JSON object keeps its meaning.
type Writer struct {
	w    io.Writer
	tail []byte // the begin of a character whose end has not been written yet
}

// NewWriter begins a harmless way to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Unwrap is the writer behind it, for control sequences of our own and for programs
// that are started.
func (w *Writer) Unwrap() io.Writer { return w.w }

// Columns returns the columns of the wrapped writer; 0 if they are not known.
func (w *Writer) Columns() int {
	if c, ok := w.w.(interface{ Columns() int }); ok {
		return c.Columns()
	}
	return 0
}

// Terminal reports whether the wrapped writer is a terminal.
func (w *Writer) Terminal() bool { return IsTerminal(w.w) }

// Colours reports whether the wrapped writer shows colours.
func (w *Writer) Colours() bool { return showsColours(w.w) }

func (w *Writer) Write(p []byte) (int, error) {
	text := p
	if len(w.tail) > 0 {
		text = append(w.tail, p...)
		w.tail = nil
	}
	if cut := incomplete(text); cut > 0 {
		w.tail = bytes.Clone(text[len(text)-cut:])
		text = text[:len(text)-cut]
	}
	if !harmless(text) {
		text = foreign.Escape(nil, text, func(r rune) bool { return r != '\n' && r != '\t' && foreign.IsObeyed(r) })
	}
	if _, err := w.w.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// harmless is a quick look: nothing but printable ASCII, line feeds and tabs.
func harmless(text []byte) bool {
	for _, c := range text {
		if c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// incomplete returns the number of bytes at the end of text that begin an incomplete character.
func incomplete(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}

// lines is a value with each string in it made a Line; false when it needed no copy.
func lines(v reflect.Value) (reflect.Value, bool) {
	switch v.Kind() {
	case reflect.String:
		if s := Line(v.String()); s != v.String() {
			out := reflect.New(v.Type()).Elem()
			out.SetString(s)
			return out, true
		}
	case reflect.Pointer, reflect.Interface:
		return linesBehind(v)
	case reflect.Struct:
		return linesOfStruct(v)
	case reflect.Slice, reflect.Array:
		return linesOfList(v)
	case reflect.Map:
		return linesOfMap(v)
	}
	return v, false
}

func linesBehind(v reflect.Value) (reflect.Value, bool) {
	if v.IsNil() {
		return v, false
	}
	inner, changed := lines(v.Elem())
	if !changed {
		return v, false
	}
	out := reflect.New(v.Type()).Elem()
	if v.Kind() == reflect.Interface {
		out.Set(inner)
		return out, true
	}
	to := reflect.New(v.Type().Elem())
	to.Elem().Set(inner)
	out.Set(to)
	return out, true
}

func linesOfStruct(v reflect.Value) (reflect.Value, bool) {
	out := v
	changed := false
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() {
			continue // unexported fields are derived from exported ones
		}
		field, differs := lines(v.Field(i))
		if differs && !changed {
			out = reflect.New(v.Type()).Elem()
			changed = true
			out.Set(v)
		}
		if differs {
			out.Field(i).Set(field)
		}
	}
	return out, changed
}

func linesOfList(v reflect.Value) (reflect.Value, bool) {
	if scalar(v.Type().Elem().Kind()) {
		return v, false
	}
	out := v
	changed := false
	for i := range v.Len() {
		item, differs := lines(v.Index(i))
		if differs && !changed {
			changed = true
			out = reflect.New(v.Type()).Elem()
			if v.Kind() == reflect.Slice {
				out.Set(reflect.MakeSlice(v.Type(), v.Len(), v.Len()))
			}
			reflect.Copy(out, v)
		}
		if differs {
			out.Index(i).Set(item)
		}
	}
	return out, changed
}

// scalar kinds hold no text: series of numbers are not looked through.
func scalar(k reflect.Kind) bool { return k >= reflect.Bool && k <= reflect.Complex128 }

func linesOfMap(v reflect.Value) (reflect.Value, bool) {
	out := reflect.MakeMapWithSize(v.Type(), v.Len())
	changed := false
	for entries := v.MapRange(); entries.Next(); {
		key, keyDiffers := lines(entries.Key())
		value, differs := lines(entries.Value())
		changed = changed || keyDiffers || differs
		out.SetMapIndex(key, value)
	}
	if !changed {
		return v, false
	}
	return out, true
}
