package guard

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

var update = flag.Bool("update", false, "write the list of figures that the guard checks into testdata")

// coverage is how often the guard removed something after one figure of a document was changed.
type coverage struct{ figures, tripled, thirded int }

// TestMutations_Coverage multiplies and divides each figure of the stored documents by three, and lists how often the
// guard removes something: testdata/mutations.txt. go test ./internal/record/guard -update accepts a change.
func TestMutations_Coverage(t *testing.T) {
	var lines []string
	for _, kind := range []string{"measure", "measure-compare", "diagnose", "watch", "why", "tune", "tune-gain", "rfc6349",
		"sweep", "predict"} {
		doc := decoded(t, storedDocument(t, kind))
		// Four tests of the stored rfc6349 exceed its bottleneck, by a policer's burst.
		if removes(t, doc) != (kind == "rfc6349") {
			t.Errorf("%s: the guard removes other figures from the stored document than before", kind)
		}
		text := must.Get(record.Encode(doc))(t)
		all := map[string]*coverage{}
		for _, path := range figurePaths(t, text) {
			name := kind + " " + generic(path)
			if all[name] == nil {
				all[name] = &coverage{}
			}
			c := all[name]
			c.figures++
			c.tripled += count(removes(t, mutated(t, text, path, 3)))
			c.thirded += count(removes(t, mutated(t, text, path, 1.0/3)))
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if c := all[name]; c.tripled+c.thirded > 0 {
				lines = append(lines, fmt.Sprintf("%s: of %d, tripled %d, divided by three %d\n", name, c.figures, c.tripled,
					c.thirded))
			}
		}
	}
	const file = "testdata/mutations.txt"
	got := []byte(strings.Join(lines, ""))
	if *update {
		must.Do(t, os.WriteFile(file, got, 0o644))
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v (-update accepts it)\n%s", err, diff.Diff("stored", want, "now", got))
	}
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// storedDocument returns the JSON of one of the documents that package render keeps as goldens, or of testdata.
func storedDocument(t *testing.T, kind string) []byte {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join("testdata", kind+".json")); err == nil {
		return text
	}
	archive, err := txtar.ParseFile(filepath.Join("../../render/testdata", kind+".txtar"))
	if err != nil || len(archive.Files) == 0 {
		t.Fatal(err)
	}
	return archive.Files[0].Data
}

func decoded(t *testing.T, text []byte) record.Document {
	t.Helper()
	doc := must.Get(record.Decode(text, nil))(t)
	return doc
}

// removes runs the guard on a document and reports whether it changed the document; false for nil.
func removes(t *testing.T, doc record.Document) bool {
	t.Helper()
	if doc == nil {
		return false
	}
	before := must.Get(json.Marshal(doc))(t)
	checkDocument(doc)
	after := must.Get(json.Marshal(doc))(t)
	return !bytes.Equal(before, after)
}

// checkDocument runs the guard on each part of a document, as package report does.
func checkDocument(doc record.Document) {
	switch d := doc.(type) {
	case *record.Measure:
		for i := range d.Directions {
			Direction(&d.Directions[i])
		}
	case *record.Compare:
		for i := range d.Directions {
			Compared(&d.Directions[i])
		}
	case *record.Diagnose:
		for i := range d.Connections {
			c := &d.Connections[i]
			for j := range c.Directions {
				Captured(&c.Directions[j], c.DurationS)
			}
		}
	case *record.Watch:
		for i := range d.Connections {
			for j := range d.Connections[i].Directions {
				Watched(&d.Connections[i].Directions[j])
			}
		}
	case *record.Tune:
		for i := range d.Directions {
			for _, m := range []*record.TuneMeasured{&d.Directions[i].Before, d.Directions[i].After} {
				if m != nil {
					Direction(&m.Direction)
				}
			}
			Tune(&d.Directions[i])
		}
	case *record.RFC6349:
		for i := range d.Directions {
			RFC6349(&d.Directions[i])
		}
	case *record.Sweep:
		Sweep(d)
	case *record.Predict:
		Predicted(d)
	}
}

// figurePaths returns the paths of all numbers of a JSON text: keys and indices.
func figurePaths(t *testing.T, text []byte) (paths [][]string) {
	t.Helper()
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(v[key], append(path, key))
			}
		case []any:
			for i, one := range v {
				walk(one, append(path, strconv.Itoa(i)))
			}
		case float64:
			if v != 0 {
				paths = append(paths, slices.Clone(path))
			}
		}
	}
	walk(parsed(t, text), nil)
	return paths
}

func parsed(t *testing.T, text []byte) (v any) {
	t.Helper()
	must.Do(t, json.Unmarshal(text, &v))
	return v
}

// generic returns a path as text without the indices of its lists.
func generic(path []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(path), func(key string) bool {
		_, err := strconv.Atoi(key)
		return err == nil
	}), ".")
}

// mutated returns a document with one figure multiplied; nil where the result is no document.
func mutated(t *testing.T, text []byte, path []string, factor float64) record.Document {
	t.Helper()
	root := parsed(t, text)
	v := root
	last := len(path) - 1
	for i, key := range path {
		switch parent := v.(type) {
		case map[string]any:
			if i == last {
				parent[key] = scaledFigure(parent[key].(float64), factor)
			}
			v = parent[key]
		case []any:
			at := must.Get(strconv.Atoi(key))(t)
			if i == last {
				parent[at] = scaledFigure(parent[at].(float64), factor)
			}
			v = parent[at]
		}
	}
	again := must.Get(json.Marshal(root))(t)
	doc, err := record.Decode(again, nil)
	if err != nil {
		return nil
	}
	return doc
}

// scaledFigure keeps whole numbers whole.
func scaledFigure(v, factor float64) float64 {
	if v == float64(int64(v)) {
		return float64(int64(v * factor))
	}
	return v * factor
}
