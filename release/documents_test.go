package main

import (
	"os"
	"path"
	"strings"
	"testing"
)

// TestDocuments_LinksResolve checks that each link of a packaged page leads to a packaged file or to the repository.
func TestDocuments_LinksResolve(t *testing.T) {
	r := &release{source: "..", work: t.TempDir(), version: version{commit: "0123456789ab"}}
	all, err := r.documents()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, e := range all {
		for name := e.name; name != "."; name = path.Dir(name) {
			names[name] = true
		}
	}
	for _, name := range []string{"README.md", "docs/session.svg", "docs/guide/windows.md", "docs/schema/measure.json"} {
		if !names[name] {
			t.Errorf("%s is not packaged", name)
		}
	}
	outside := 0
	for _, e := range all {
		if !strings.HasSuffix(e.name, ".md") {
			continue
		}
		text, err := os.ReadFile(e.from)
		if err != nil {
			t.Fatal(err)
		}
		outside += strings.Count(string(text), homepage+"/blob/0123456789ab/")
		for _, m := range relativeLink.FindAllStringSubmatch(string(text), -1) {
			if !names[path.Join(path.Dir(e.name), m[1])] {
				t.Errorf("%s links to %s, which is not packaged", e.name, m[1])
			}
		}
	}
	if outside == 0 {
		t.Error("no link leads to the repository: ARCHITECTURE.md is not packaged")
	}
}
