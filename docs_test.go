package fullpipe_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameTestsThatExist keeps the documents honest: what they say is shown by
// a test is.
func TestDocumentsNameTestsThatExist(t *testing.T) {
	var tests strings.Builder
	for _, p := range packages(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tests.Write(text)
		}
	}
	documents, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9]+\b`)
	for _, document := range append(documents, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(text), -1) {
			if !strings.HasPrefix(name, "TestBank") && !strings.Contains(tests.String(), "func "+name+"(") {
				t.Errorf("%s names %s, and there is no such test", document, name)
			}
		}
	}
}
