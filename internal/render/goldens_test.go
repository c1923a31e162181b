package render_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

var update = flag.Bool("update", false, "write the rendered documents into testdata")

// stored reads the documents that commands printed: each archive has one document, its samples
// and their rendered forms.
func stored(t testing.TB) map[string]*txtar.Archive {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d stored documents, %v", len(files), err)
	}
	all := map[string]*txtar.Archive{}
	for _, file := range files {
		archive := must.Get(txtar.ParseFile(file))(t)
		all[file] = archive
	}
	return all
}

func part(a *txtar.Archive, name string) []byte {
	for _, f := range a.Files {
		if f.Name == name {
			return f.Data
		}
	}
	return nil
}

// style and script are left out of goldens: they are files of their own.
var assets = regexp.MustCompile(`(?s)<style>.*?</style>|<script>.*?</script>`)

// lineEnds are the tags after which goldens have a line break, so that their differences can be read.
var lineEnds = regexp.MustCompile(`</(p|h[1-3]|li|tr|thead|table|title|head|header|figcaption|figure|section|svg|details)>`)

// rendered is a document in every form.
func rendered(t testing.TB, doc record.Document) map[string][]byte {
	t.Helper()
	var words, page bytes.Buffer
	must.Do(t, text.Write(&words, doc))
	must.Do(t, html.Write(&page, doc))
	encoded := must.Get(record.Encode(doc))(t)
	samples := must.Get(record.EncodeSamples(doc))(t)
	return map[string][]byte{"text": words.Bytes(), "page": page.Bytes(), "json": encoded, "samples": samples}
}

// TestStoredDocumentsRenderAsEver compares the text, the page and the JSON of stored documents of
// every kind with the golden files. go test ./internal/render -update accepts a change.
func TestStoredDocumentsRenderAsEver(t *testing.T) {
	for file, archive := range stored(t) {
		doc, err := record.Decode(part(archive, "record.json"), part(archive, "samples.json"))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got := rendered(t, doc)
		now := &txtar.Archive{Comment: archive.Comment,
			Files: []txtar.File{{Name: "record.json", Data: part(archive, "record.json")}}}
		if samples := part(archive, "samples.json"); len(samples) > 0 {
			now.Files = append(now.Files, txtar.File{Name: "samples.json", Data: samples})
		}
		now.Files = append(now.Files, txtar.File{Name: "text", Data: got["text"]}, txtar.File{Name: "page.html",
			Data: lineEnds.ReplaceAll(assets.ReplaceAll(got["page"], nil), []byte("$0\n"))})
		if !bytes.Equal(got["json"], part(archive, "record.json")) {
			now.Files = append(now.Files, txtar.File{Name: "again.json", Data: got["json"]}) // keys were added since
		}
		want := must.Get(os.ReadFile(file))(t)
		if is := txtar.Format(now); !bytes.Equal(is, want) {
			if *update {
				must.Do(t, os.WriteFile(file, is, 0o644))
				continue
			}
			t.Errorf("%s renders differently (-update accepts it):\n%s", file, diff.Diff("stored", want, "now", is))
		}
	}
}

// TestDocumentsSurviveBeingStored: encoded and decoded, a document renders to the same
// bytes in every form.
func TestDocumentsSurviveBeingStored(t *testing.T) {
	seen := map[string]bool{}
	for file, archive := range stored(t) {
		doc, err := record.Decode(part(archive, "record.json"), part(archive, "samples.json"))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		seen[strings.TrimSuffix(filepath.Base(file), ".txtar")] = true
		checkStored(t, file, doc)
	}
	for kind := range record.Kinds() {
		if !seen[kind] {
			t.Errorf("no stored document of the kind %s", kind)
		}
	}
}

func checkStored(t *testing.T, name string, doc record.Document) {
	t.Helper()
	before := rendered(t, doc)
	again, err := record.Decode(before["json"], before["samples"])
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	for form, is := range rendered(t, again) {
		if !bytes.Equal(is, before[form]) {
			t.Errorf("%s: its %s is another after it was stored:\n%s", name, form, diff.Diff("before", before[form], "after",
				is))
		}
	}
}

// TestUnknownKeysAreIgnored: a newer version's document can still be shown.
func TestUnknownKeysAreIgnored(t *testing.T) {
	for file, archive := range stored(t) {
		old := part(archive, "record.json")
		newer := bytes.Replace(old, []byte("{\n"), []byte("{\n  \"added_later\": {\"x\": [1, {\"y\": null}]},\n"), 1)
		doc, err := record.Decode(newer, nil)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		was := must.Get(record.Decode(old, nil))(t)
		if !bytes.Equal(rendered(t, doc)["text"], rendered(t, was)["text"]) {
			t.Errorf("%s: a key that is not known changes the text", file)
		}
	}
}
