package render_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/testenv/hostile"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// show renders a foreign file in every form; it returns an error if the file is no
// document.
func show(record_, samples []byte) error {
	doc, err := record.Decode(record_, samples)
	if err != nil {
		return err
	}
	if err := text.Write(io.Discard, doc); err != nil {
		return err
	}
	if captured, ok := doc.(*record.Diagnose); ok {
		if err := text.Connections(io.Discard, captured, 20, true); err != nil {
			return err
		}
	}
	if err := html.Write(io.Discard, doc); err != nil {
		return err
	}
	_ = text.CSV(io.Discard, doc) // not every kind is a table
	_, err = record.Encode(doc)
	return err
}

func FuzzShow(f *testing.F) {
	for _, archive := range stored(f) {
		f.Add(part(archive, "record.json"), part(archive, "samples.json"))
	}
	f.Fuzz(func(t *testing.T, record_, samples []byte) {
		_ = show(record_, samples) // neither panics nor hangs
	})
}

// anything returns a random value of a wrong type, as a hostile file may have; a new one each
// time, since callers modify it.
func anything(rng *rand.Rand) any {
	return []any{nil, "", "x", true, []any{}, map[string]any{}, []any{map[string]any{}}, number(rng)}[rng.IntN(8)]
}

func number(rng *rand.Rand) any {
	return []any{-1.0, 0.0, 1e300, 1e17, -1e17, 4e17, 1e-300}[rng.IntN(7)]
}

// TestHostileDocuments removes keys of stored documents, replaces values, empties and repeats
// lists, and checks that nothing panics.
func TestHostileDocuments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	shown := 0
	for file, archive := range stored(t) {
		var samples any
		if s := part(archive, "samples.json"); len(s) > 0 {
			must.Do(t, json.Unmarshal(s, &samples))
		}
		for range 25 {
			var doc any
			must.Do(t, json.Unmarshal(part(archive, "record.json"), &doc))
			schema := doc.(map[string]any)["schema"]
			for range 1 + rng.IntN(4) {
				doc = mutated(rng, doc, 0)
			}
			if object, ok := doc.(map[string]any); ok {
				object["schema"] = schema
			}
			encoded := must.Get(json.Marshal(doc))(t)
			encodedSamples := must.Get(json.Marshal(samples))(t)
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s: %v\n%s\n%s", file, p, debug.Stack(), encoded)
					}
				}()
				if show(encoded, encodedSamples) == nil {
					shown++
				}
			}()
			if t.Failed() {
				return
			}
		}
	}
	if shown < 150 {
		t.Errorf("only %d of the mutated documents could be shown: too few were near enough to real ones", shown)
	}
}

// mutated changes one place of a document.
func mutated(rng *rand.Rand, v any, depth int) any {
	stop := depth > 0 && rng.IntN(4) == 0
	switch v := v.(type) {
	case map[string]any:
		if stop || len(v) == 0 {
			break
		}
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		k := keys[rng.IntN(len(keys))]
		if rng.IntN(4) == 0 {
			delete(v, k)
		} else {
			v[k] = mutated(rng, v[k], depth+1)
		}
		return v
	case []any:
		if stop || len(v) == 0 {
			break
		}
		i := rng.IntN(len(v))
		switch rng.IntN(5) {
		case 0:
			return append(v[:i:i], v[i+1:]...)
		case 1:
			return append(v[:i+1:i+1], v[i:]...)
		}
		v[i] = mutated(rng, v[i], depth+1)
		return v
	case float64:
		return number(rng)
	}
	return anything(rng)
}

// TestHugeDocumentsAreRefused checks that a document that would take gigabytes of memory is not decoded.
func TestHugeDocumentsAreRefused(t *testing.T) {
	many := func(open, one, end string, n int) []byte {
		return []byte(open + strings.Repeat(one+",", n) + one + end)
	}
	for name, file := range map[string][]byte{
		"objects": many(`{"schema":"fullpipe/diagnose/v1","connections":[{"directions":[`, "{}", `]}]}`, 1_000_000),
		"cells":   many(`{"schema":"fullpipe/sweep/v1","cells":[`, `{"write_bytes":1}`, `]}`, 20_000),
		"bytes":   append([]byte(`{"schema":"fullpipe/measure/v1","peer":"`), bytes.Repeat([]byte("x"), record.MostBytes)...),
		"depth":   append([]byte(`{"schema":"fullpipe/measure/v1","peer":`), bytes.Repeat([]byte("["), 1_000_000)...),
		"no grid": grid(150),
	} {
		if _, err := record.Decode(file, nil); err == nil {
			t.Errorf("%s: read", name)
		}
	}
}

// grid has few cells, each alone in its row and column.
func grid(n int) []byte {
	doc := record.Sweep{Header: record.Header{Schema: "fullpipe/sweep/v1"}}
	for i := range n {
		size := i + 1
		doc.Cells = append(doc.Cells, record.SweepCell{SweepSetup: record.SweepSetup{Direction: "up", Send: size,
			Receive: size, Write: size}})
	}
	out, err := record.Encode(&doc)
	if err != nil {
		panic(err)
	}
	return out
}

// TestNoTextOfADocumentBecomesMarkup checks that a page shows all strings of a stored document as
// text.
func TestNoTextOfADocumentBecomesMarkup(t *testing.T) {
	const markup = `"><script>x</script>`
	for kind, doc := range record.Kinds() {
		hostile.Fill(doc, attack)
		encoded := must.Get(record.Encode(doc))(t)
		samples := must.Get(record.EncodeSamples(doc))(t)
		quoted := must.Get(json.Marshal(markup))(t)
		text, err := json.Marshal(attack)
		if err != nil {
			t.Fatal(err)
		}
		replace := func(b []byte) []byte { return bytes.ReplaceAll(b, text, quoted) }
		doc, err = record.Decode(schemaOf(kind, replace(encoded)), replace(samples))
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		var page bytes.Buffer
		if err := html.Write(&page, doc); err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		if strings.Contains(page.String(), "<script>x") || !strings.Contains(page.String(), "x&lt;/script") {
			t.Errorf("%s: markup of a document's text reaches the page, or none of its text does", kind)
		}
	}
}

// active returns the active content of a page except the program's script.
func active(page string) []string {
	return slices.DeleteFunc(hostile.ActiveContent(page), func(s string) bool { return s == "script "+html.Script() })
}

// TestHostileTexts_StayText fills every text of every document, kept samples included, with texts that attack each
// place of a page. It checks that no page runs or loads anything but the program's script, by itself and as the body of
// another page.
func TestHostileTexts_StayText(t *testing.T) {
	for kind, doc := range record.Kinds() {
		for _, attack := range hostile.Texts {
			hostile.Fill(doc, attack)
			var page, body bytes.Buffer
			inside, style, err := html.Body(doc)
			if err == nil {
				err = errors.Join(html.Write(&page, doc), inside.Render(t.Context(), &body))
			}
			if err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			if found := active(page.String()); len(found) > 0 {
				t.Errorf("%s: %q: active content of the page %q", kind, attack, found)
			}
			if found := hostile.ActiveContent(body.String()); len(found) > 0 || strings.Contains(style, "hostile") {
				t.Errorf("%s: %q: active content of the body %q, or of its style", kind, attack, found)
			}
		}
	}
}

// schemaOf puts a kind's schema into an encoded document.
func schemaOf(kind string, encoded []byte) []byte {
	name, _, _ := strings.Cut(kind, "-")
	var object map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &object); err != nil {
		panic(err)
	}
	object["schema"] = json.RawMessage(`"fullpipe/` + name + `/v1"`)
	if kind == "measure-udp" {
		object["directions"] = regexp.MustCompile(`"protocol": *"[^,]*",`).ReplaceAll(object["directions"],
			[]byte(`"protocol":"udp",`))
	}
	if kind == "failed" {
		object["schema"] = json.RawMessage(`"fullpipe/plan/v1"`)
	}
	out, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return out
}
