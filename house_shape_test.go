package fullpipe_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/uudashr/gocognit"
)

// Limits of the code's shape.
const (
	maxColumns    = 120 // of a line, in runes
	maxLines      = 350 // of a file, tests excluded
	maxComplexity = 30  // of a function, cognitive complexity as gocognit counts it
)

// mayBeComplex are functions with one branch per element of a format, with the reason.
var mayBeComplex = map[string]string{
	"internal/capture.nextBlock": "one case for each kind of a pcapng file's blocks",
}

func TestCodeFitsAReader(t *testing.T) {
	for _, p := range packages(t) {
		names, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			if ast.IsGenerated(file) {
				continue
			}
			shown, lines := filepath.Join(p.path(), filepath.Base(name)), strings.Split(string(text), "\n")
			raw := rawLines(files, file)
			for i, line := range lines {
				if n := utf8.RuneCountInString(line); n > maxColumns && !raw[i+1] {
					t.Errorf("%s:%d: %d columns, %d are allowed", shown, i+1, n, maxColumns)
				}
			}
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			if len(lines)-1 > maxLines {
				t.Errorf("%s: %d lines, %d are allowed", shown, len(lines)-1, maxLines)
			}
			for _, d := range file.Decls {
				f, isFunc := d.(*ast.FuncDecl)
				if !isFunc {
					continue
				}
				if n := gocognit.Complexity(f); n > maxComplexity && mayBeComplex[p.path()+"."+f.Name.Name] == "" {
					t.Errorf("%s: %s has a cognitive complexity of %d, %d are allowed", shown, f.Name.Name, n, maxComplexity)
				}
			}
		}
	}
}

// maySkip are the prefixes of files that may call Skip themselves.
var maySkip = []string{"internal/testenv/", "bench/", "internal/lab/stalltest/"}

// TestTestsSkipByNeed checks that testenv.Need decides every skip, so that a missing declared feature fails
// and skips can be counted.
func TestTestsSkipByNeed(t *testing.T) {
	var names []string
	for _, pattern := range []string{"*.go", "*/*.go", "*/*/*.go", "*/*/*/*.go", "*/*/*/*/*.go"} {
		more, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, more...)
	}
	for _, name := range names {
		if slices.ContainsFunc(maySkip, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") && !strings.Contains(string(text), `"testing"`) {
			continue
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range skips(file) {
			t.Errorf("%s: a skip; testenv.Need decides skips", files.Position(at))
		}
	}
}

// skips returns the possible skips of a test: t.Skip, t.Skipf and t.SkipNow, called or not.
func skips(file *ast.File) (found []token.Pos) {
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, s.Sel.Name) {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"t", "b", "f", "tb", "T"}, x.Name) {
				found = append(found, s.Pos())
			}
		}
		return true
	})
	return found
}

func TestSkips_Found(t *testing.T) {
	const text = "package p\nfunc f(t *testing.T) { t.Skip(1); b.SkipNow(); fail := t.Skipf; fail(2); list.Skip(3) }"
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(skips(file)); got != 3 {
		t.Errorf("%d skips found, want 3", got)
	}
}

// rawLines returns the lines of raw strings, which cannot be broken.
func rawLines(files *token.FileSet, file *ast.File) map[int]bool {
	raw := map[int]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.BasicLit); ok && s.Kind == token.STRING && strings.HasPrefix(s.Value, "`") {
			for line := files.Position(s.Pos()).Line; line <= files.Position(s.End()).Line; line++ {
				raw[line] = true
			}
		}
		return true
	})
	return raw
}
