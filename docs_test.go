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
	dirs := []string{"bench", "bench/live"}
	for _, p := range packages(t) {
		dirs = append(dirs, p.Dir)
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
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
	named := regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9_]+\b`)
	for _, document := range append(documents, "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range named.FindAllString(string(text), -1) {
			if name != "TestBank" && !strings.Contains(tests.String(), "func "+name+"(") {
				t.Errorf("%s names %s, and there is no such test", document, name)
			}
		}
	}
}

// TestPicturesExist keeps documents from showing what was never drawn.
func TestPicturesExist(t *testing.T) {
	documents, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := regexp.MustCompile(`!\[[^]]*\]\(([^):]+)\)`)
	for _, document := range append(documents, "README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, picture := range shown.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(document), picture[1])); err != nil {
				t.Errorf("%s shows %v", document, err)
			}
		}
	}
}

// TestArchitectureNamesEveryPackage holds ARCHITECTURE.md's picture against the tree. TestEveryDependencyIsExplained
// checks its table of modules.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	picture, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages(t) {
		parts := strings.Split(p.room(), "/")
		room := strings.TrimPrefix(p.room(), "internal/")
		if len(p.GoFiles) > 0 && len(parts) <= 2 && !strings.HasPrefix(p.room(), "e2e") && !strings.Contains(string(picture),
			room+"/ ") {
			t.Errorf("ARCHITECTURE.md does not show %s", p.room())
		}
	}
}
