package fullpipe_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"unicode"
)

// wordsFile holds a line for each folder: its name, the count of private words when counting began, and the greatest
// count allowed. `make words` lowers the last number to today's count.
const wordsFile = "testdata/words.txt"

var updateWords = flag.Bool("update-words", false, "lower the counts in "+wordsFile+" to today's")

// privateWords matches words that docs/glossary.md replaces, in English text. House rule: plain technical English.
var privateWords = regexp.MustCompile(`(?i)\b(tells?|told|answers|holds|held|beside|so many|stands?|stood|under way|` +
	`(sent|sends?|sending) again|readings|(a|the|each|every|no|one|next|last|first) reading|of which)\b`)

// clauseSubject matches a relative clause that is the subject of a sentence or of a part of it: "Who reads slowly is".
var clauseSubject = regexp.MustCompile(`(?i)(^|[.;:,] |\b(and|but|or|if|where|when|while|since|because|than|so) )` +
	`(what|who|whom|whose|whatever|whoever) [^?]*$`)

// privateNames are the same words as parts of an identifier.
var privateNames = map[string]bool{
	"tell": true, "tells": true, "told": true, "answers": true, "holds": true, "held": true, "beside": true,
	"stands": true, "stood": true, "reading": true, "readings": true, "who": true, "what": true, "whom": true,
}

// TestPrivateWords fails where a folder has more private words than testdata/words.txt allows.
func TestPrivateWords(t *testing.T) {
	counts := map[string]int{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin" ||
				entry.Name() == "dist") {
				return fs.SkipDir
			}
			return nil
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		switch {
		case strings.HasSuffix(path, "_test.go") && strings.HasPrefix(path, "house_words"):
		case strings.HasSuffix(path, ".go"):
			n, err := countPrivateWords(path)
			counts[folder] += n
			return err
		case strings.HasSuffix(path, ".md"):
			text, err := os.ReadFile(path)
			counts[folder] += countInText(string(text))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	start, allowed := readWords(t)
	for _, folder := range slices.Sorted(maps.Keys(counts)) {
		n := counts[folder]
		if _, known := start[folder]; !known {
			start[folder] = 0
		}
		if n > allowed[folder] {
			t.Errorf("%s: %d private words, at most %d: see docs/glossary.md", folder, n, allowed[folder])
		}
	}
	table := tabwriter.NewWriter(t.Output(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "at first\tnow\taim\t folder\n")
	var lines []string
	for _, folder := range slices.Sorted(maps.Keys(start)) {
		fmt.Fprintf(table, "%d\t%d\t%d\t %s\n", start[folder], counts[folder], start[folder]/10, folder)
		if n := min(counts[folder], allowed[folder]); start[folder] > 0 {
			lines = append(lines, fmt.Sprintf("%s %d %d\n", folder, start[folder], n))
		}
	}
	table.Flush()
	if !*updateWords {
		return
	}
	err = os.WriteFile(wordsFile, []byte(strings.Join(lines, "")), 0o644)
	if err != nil {
		t.Fatal(err)
	}
}

// readWords returns the numbers of wordsFile by folder.
func readWords(t *testing.T) (start, allowed map[string]int) {
	t.Helper()
	text, err := os.ReadFile(wordsFile)
	if err != nil {
		t.Fatal(err)
	}
	start = map[string]int{}
	allowed = map[string]int{}
	for line := range strings.Lines(string(text)) {
		var folder string
		var first, now int
		_, err := fmt.Sscan(line, &folder, &first, &now)
		if err != nil {
			t.Fatalf("%s: %q: %v", wordsFile, line, err)
		}
		start[folder] = first
		allowed[folder] = now
	}
	return start, allowed
}

// countPrivateWords returns the number of private words in the comments, strings and declared names of a Go file.
func countPrivateWords(path string) (int, error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return 0, err
	}
	if ast.IsGenerated(file) {
		return 0, nil
	}
	return countInFile(file), nil
}

func countInFile(file *ast.File) int {
	n := 0
	for _, comment := range file.Comments {
		n += countInText(comment.Text())
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(node.Value)
			if node.Kind == token.STRING && err == nil && strings.Contains(text, " ") {
				n += countInText(text)
			}
		case *ast.FuncDecl:
			n += countInName(node.Name.Name)
		case *ast.TypeSpec:
			n += countInName(node.Name.Name)
		case *ast.ValueSpec:
			n += countInNames(node.Names)
		case *ast.Field:
			n += countInNames(node.Names)
		case *ast.AssignStmt:
			if node.Tok != token.DEFINE {
				break
			}
			for _, left := range node.Lhs {
				if name, ok := left.(*ast.Ident); ok {
					n += countInName(name.Name)
				}
			}
		}
		return true
	})
	return n
}

// countInText returns the number of private words in English text.
func countInText(text string) int {
	n := len(privateWords.FindAllString(text, -1))
	for sentence := range strings.SplitSeq(strings.ReplaceAll(text, "\n", " "), ". ") {
		n += len(clauseSubject.FindAllString(strings.TrimSpace(sentence), -1))
	}
	return n
}

// countInName returns the number of private words in a camel-case name.
func countInName(name string) int {
	n := 0
	for _, word := range camelWords(name) {
		if privateNames[strings.ToLower(word)] {
			n++
		}
	}
	return n
}

func countInNames(names []*ast.Ident) int {
	n := 0
	for _, name := range names {
		n += countInName(name.Name)
	}
	return n
}

// camelWords splits at capitals and underscores.
func camelWords(name string) []string {
	var words []string
	start := 0
	for i, r := range name {
		if i > start && (unicode.IsUpper(r) || r == '_') {
			words = append(words, strings.Trim(name[start:i], "_"))
			start = i
		}
	}
	return append(words, strings.Trim(name[start:], "_"))
}

func TestPrivateWords_Counted(t *testing.T) {
	for text, want := range map[string]int{
		"// NewAccount returns an empty Account.":           0,
		"// Next is who runs, and what is told of which.":   3,
		"// What stands in the queue is held.":              3,
		"// Data were sent again beside so many readings.":  4,
		"// While reading the file it checks what changed.": 0,
		"func TestWhoPacesItselfIsNotHeldBack() {}":         2,
		"var told int": 1,
		"func f() { answersHeld := 1; _ = answersHeld }":       2,
		`var text = "each acknowledgement told of 9 segments"`: 1,
		`var key = "told"`:                                            0,
		"func f(told int) { told = 1; print(told) }":                  1,
		"// Whose turn it is: what is this?":                          0,
		"type reading struct{ holdsLock bool; beside, standing int }": 3,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p\n"+text, parser.ParseComments)
		if err != nil {
			t.Fatal(text, err)
		}
		if got := countInFile(file); got != want {
			t.Errorf("%s: %d counted, want %d", text, got, want)
		}
	}
}
