package fullpipe_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentsNameTestsThatExist checks that every test named in the documents exists.
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
				t.Errorf("%s names %s, and that test does not exist", document, name)
			}
		}
	}
}

// TestPicturesExist checks that every picture of the documents exists.
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

// TestArchitectureNamesEveryPackage compares ARCHITECTURE.md's list of packages with the tree.
// TestEveryDependencyIsExplained checks its table of modules.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	picture, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages(t) {
		parts := strings.Split(p.path(), "/")
		name := strings.TrimPrefix(p.path(), "internal/")
		if len(p.GoFiles) > 0 && len(parts) <= 2 && !strings.HasPrefix(p.path(), "e2e") && !strings.Contains(string(picture),
			name+"/ ") {
			t.Errorf("ARCHITECTURE.md does not show %s", p.path())
		}
	}
}
