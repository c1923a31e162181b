// Package docs_test checks README.md and the pages of docs/: links, anchors, names of files, tests, commands and
// flags. It also runs the examples.
package docs_test

import (
	"context"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// asProgram makes this test's own file behave as fullpipe.
const asProgram = "FULLPIPE_TEST_PROGRAM"

func TestMain(m *testing.M) {
	lab.Engine()
	if os.Getenv(asProgram) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		status := cli.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
		stop()
		os.Exit(status)
	}
	remove := testenv.OwnState()
	status := m.Run()
	remove()
	os.Exit(status)
}

// page is one document. Its path is relative to docs/.
type page struct{ path, text string }

// pages returns every document for readers: those of the root, of docs/ and of contrib/.
func pages(t *testing.T) []page {
	t.Helper()
	paths, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "../contrib", "../bench"} {
		err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".md") {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	var all []page
	for _, path := range paths {
		all = append(all, page{filepath.ToSlash(path), read(t, path)})
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fences matches blocks of code.
var fences = regexp.MustCompile("(?ms)^```.*?^```$")

func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^()\s]+)\)`)
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(fences.ReplaceAllString(p.text, ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue
			}
			path := filepath.Join(filepath.Dir(p.path), target)
			if target == "" {
				path = p.path
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which does not exist", p.path, m[1])
				continue
			}
			if anchor != "" && !slices.Contains(anchors(read(t, path)), anchor) {
				t.Errorf("%s links to %s: %s has no such heading", p.path, m[1], path)
			}
		}
	}
}

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(text string) []string {
	heading := regexp.MustCompile(`(?m)^#+ +(.*)$`)
	left := regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
	count := map[string]int{}
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fences.ReplaceAllString(text, ""), -1) {
		anchor := strings.ReplaceAll(left.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")
		if n := count[anchor]; n > 0 {
			all = append(all, anchor+"-"+strconv.Itoa(n))
		} else {
			all = append(all, anchor)
		}
		count[anchor]++
	}
	return all
}

func TestAnchors(t *testing.T) {
	got := anchors("# Limits: one `tune`, two\n## A\n```sh\n# no heading\n```\n## A\n### Which port?\n")
	want := []string{"limits-one-tune-two", "a", "a-1", "which-port"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestNamedFilesExist checks files and folders of this repository that the pages name.
func TestNamedFilesExist(t *testing.T) {
	path := regexp.MustCompile(`(?:^|[\s(\x60])((?:docs|contrib|internal|bench|release|cmd|e2e|\.ci)/[\w.*/-]*\w)`)
	for _, p := range pages(t) {
		for _, m := range path.FindAllStringSubmatch(p.text, -1) {
			found, err := filepath.Glob(filepath.Join("..", m[1]))
			if err != nil || len(found) == 0 {
				t.Errorf("%s names %s, which does not exist", p.path, m[1])
			}
		}
	}
}

// TestNamedTestsExist checks the tests that the pages name.
func TestNamedTestsExist(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "dist") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") {
			tests.WriteString(read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bTest[A-Z][A-Za-z0-9_]+\b`)
	for _, p := range pages(t) {
		for _, name := range named.FindAllString(p.text, -1) {
			if name != "TestBank" && !strings.Contains(tests.String(), "func "+name+"(") {
				t.Errorf("%s names %s, and that test does not exist", p.path, name)
			}
		}
	}
}

// TestPagesFitTheirReaders checks the length of the README and of the guides for each role.
func TestPagesFitTheirReaders(t *testing.T) {
	roles, err := filepath.Glob("guide/*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(roles) != 8 {
		t.Errorf("%d guides, want one for each of eight roles", len(roles))
	}
	for _, path := range append(roles, "../README.md") {
		most := 80
		if path == "../README.md" {
			most = 150
		}
		if n := strings.Count(read(t, path), "\n"); n > most {
			t.Errorf("%s has %d lines, at most %d", path, n, most)
		}
	}
}

// TestIndexIsComplete checks that docs/README.md links to every page.
func TestIndexIsComplete(t *testing.T) {
	index := read(t, "README.md")
	for _, p := range pages(t) {
		if !strings.HasPrefix(p.path, "../") && p.path != "README.md" && !strings.Contains(index, "]("+p.path) {
			t.Errorf("docs/README.md does not link to %s", p.path)
		}
	}
}
