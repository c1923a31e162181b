package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/foreign"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// hostile has texts that mislead a terminal, a browser or a reader.
var hostile = []string{
	"\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;Y3A=\x1b\\", "\x1bP+q\x1b\\", "\x9b31m", "\u009b31m", "\u0090q\u009c", "\r",
	"\b\b\b", "\x7f", "\x00",
	"\u202e", "\u2066", "\u200f", "\u061c", "\u2028", "\u2029", "\u200b", "\ufeff", "\U000e0041", "\u0085", "\xff\xfe",
	"\v", "\f",
}

func TestLineIsOneHarmlessLine(t *testing.T) {
	for _, s := range append(hostile, "\n", "\t") {
		got := Line("before" + s + "after")
		if !strings.HasPrefix(got, "before") || !strings.HasSuffix(got, "after") || len(got) <= len("beforeafter") {
			t.Errorf("%q became %q", s, got)
		}
		checkHarmless(t, got)
		if strings.ContainsAny(got, "\n\t") {
			t.Errorf("%q became %q", s, got)
		}
	}
	for _, s := range []string{"", "cubic", "100 Mbit/s × 40 ms → 500 kB", "eth0 · Köln · 東京 · …"} {
		if got := Line(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	if got := Line("a\nb"); got != "a"+LineBreak+"b" {
		t.Errorf("%q", got)
	}
}

// checkHarmless checks that text has only characters that a terminal may show.
func checkHarmless(t *testing.T, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("no UTF-8: %q", text)
	}
	for i, r := range text {
		if r != '\n' && r != '\t' && foreign.IsObeyed(r) {
			t.Fatalf("%U reaches the terminal: %q", r, text[max(0, i-40):min(len(text), i+40)])
		}
	}
}

func TestWriter_EscapesSplitCharacters(t *testing.T) {
	whole := "é\u009b31m × \U000e0041 \u202e ok\n\t" + strings.Join(hostile, "") + "\n"
	want := Written
	for size := 1; size < 9; size++ {
		var out bytes.Buffer
		w := NewWriter(&out)
		for i := 0; i < len(whole); i += size {
			must.Get(io.WriteString(w, whole[i:min(len(whole), i+size)]))(t)
		}
		var at bytes.Buffer
		if err := want(&at, func(w io.Writer) error { _, err := io.WriteString(w, whole); return err }); err != nil {
			t.Fatal(err)
		}
		if out.String() != at.String() {
			t.Errorf("in pieces of %d:\n%q\n%q", size, out.String(), at.String())
		}
		checkHarmless(t, out.String())
	}
}

func TestObjectsKeepTheirMeaning(t *testing.T) {
	in := map[string]string{"text": "é \u009b \u202e \U000e0041 \x1b \n \u2028 \x7f"}
	text := must.Get(json.Marshal(in))(t)
	var out bytes.Buffer
	must.Get(NewWriter(&out).Write(text))(t)
	checkHarmless(t, out.String())
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || !reflect.DeepEqual(in, back) {
		t.Errorf("%v: %q became %q", err, in, back)
	}
}

func TestDocumentsAreCopiedNotChanged(t *testing.T) {
	type leaf struct{ Text string }
	type doc struct {
		Leaf    leaf
		Pointer *leaf
		List    []leaf
		Fixed   [2]string
		Any     any
		Map     map[string]leaf
		Numbers []float64
		private string
	}
	make := func() doc {
		return doc{leaf{"a\nb"}, &leaf{"a\nb"}, []leaf{{"ok"}, {"a\nb"}}, [2]string{"ok", "a\nb"}, leaf{"a\nb"},
			map[string]leaf{"k\nk": {"a\nb"}}, []float64{1}, "kept"}
	}
	in := make()
	out := Document(in)
	if !reflect.DeepEqual(in, make()) {
		t.Errorf("the document itself changed: %+v", in)
	}
	text := fmt.Sprintf("%+v %+v", out, *out.Pointer)
	if strings.Contains(text, "\n") || strings.Count(text, LineBreak) != 7 || out.private != "kept" {
		t.Errorf("%s", text)
	}
	if same := Document(&in.Leaf); same != &in.Leaf && in.Leaf.Text == "ok" {
		t.Error("copied without need")
	}
}

func FuzzLine(f *testing.F) {
	for _, s := range hostile {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Line(s)
		checkHarmless(t, got)
		if strings.ContainsAny(got, "\n\t\r") || Line(got) != got {
			t.Fatalf("%q became %q", s, got)
		}
		var out bytes.Buffer
		w := NewWriter(&out)
		for _, c := range []byte(s) {
			w.Write([]byte{c})
		}
		checkHarmless(t, out.String())
	})
}
