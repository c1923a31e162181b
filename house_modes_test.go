package fullpipe_test

import (
	"go/ast"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// forOthers are the calls that make files which other users may read, by file: how many, and which files they are.
// All other files and directories are their owner's alone: 0600 and 0700.
var forOthers = map[string]struct {
	calls int
	files string
}{
	"internal/cli/present/present.go":  {2, "documents and pages with a name that the user gave"},
	"internal/cli/iperf3/options.go":   {2, "--logfile and --pidfile, which iperf3 makes too"},
	"internal/atomicfile/output.go":    {3, "documents and logs; else its callers' mode"},
	"internal/host/journal.go":         {1, "the journal of settings, which anybody may read in /proc/sys"},
	"internal/host/apply.go":           {1, "its directory"},
	"internal/host/files.go":           {2, "files of sysctl.d"},
	"internal/testenv/summary/main.go": {1, "a list of tests"},
	"cmd/fullpipe/manual.go":           {2, "manual pages"},
}

// TestFilesAreTheirOwners checks that each call that makes a file or directory gives it to its owner alone, but for the
// ones of forOthers. TestCommands_FileModes looks at the files.
func TestFilesAreTheirOwners(t *testing.T) {
	found := map[string]int{}
	eachProductFile(t, func(name string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if makesFileForOthers(n) {
					found[name]++
				}
			case *ast.BasicLit:
				if isModeForOthers(n.Value) {
					found[name]++
				}
			}
			return true
		})
	})
	for name, calls := range found {
		if forOthers[name].calls != calls {
			t.Errorf("%s makes files for other users in %d places, and the list has %d: 0600 and 0700, or the list",
				name, calls, forOthers[name].calls)
		}
	}
	for name := range forOthers {
		if found[name] == 0 {
			t.Errorf("%s makes no file for other users", name)
		}
	}
}

// makesFileForOthers reports whether a call makes a file or directory that other users may read. The mode, if it is a
// literal, is not asked: TestFilesAreTheirOwners finds literals anywhere.
func makesFileForOthers(call *ast.CallExpr) bool {
	s, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	name := s.Sel.Name
	switch {
	case isOf(s, "atomicfile", name):
		return slices.Contains([]string{"Create", "Stream", "Append", "Edit", "Write"}, name)
	case isOf(s, "os", "Create"):
		return true
	case isOf(s, "os", "OpenFile") && !mentions(call.Args[1], "O_CREATE"):
		return false
	case isOf(s, "os", "OpenFile"), isOf(s, "os", "WriteFile"), isOf(s, "os", "Mkdir"), isOf(s, "os", "MkdirAll"),
		name == "Chmod":
		mode := call.Args[len(call.Args)-1]
		_, literal := mode.(*ast.BasicLit)
		return !literal && !mentions(mode, "forOwner")
	}
	return false
}

func mentions(e ast.Expr, name string) (found bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		id, is := n.(*ast.Ident)
		found = found || is && id.Name == name
		return true
	})
	return found
}

// isModeForOthers reports whether a literal is a mode of a file that others may read. 0o022 and 0o077 are masks.
func isModeForOthers(literal string) bool {
	return strings.HasPrefix(literal, "0o") && !strings.HasPrefix(literal, "0o0") && !strings.HasSuffix(literal, "00")
}

// TestTests_KeepTheirState checks that packages whose tests run the program keep its history in a directory of their
// own. Results of tests were found in the history of the user who ran them.
func TestTests_KeepTheirState(t *testing.T) {
	runs := regexp.MustCompile(`harness\.Program\(|\bcli\.Run\(|asProgram = `)
	ownState := regexp.MustCompile(`harness\.Main\(|testenv\.OwnState\(`)
	checked := 0
	err := filepath.WalkDir(".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		names, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // the pattern is valid
		var all []byte
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			all = append(all, text...)
		}
		if dir == "." || !runs.Match(all) {
			return nil
		}
		checked++
		if !ownState.Match(all) {
			t.Errorf("%s: TestMain has no testenv.OwnState", dir)
		}
		return nil
	})
	if err != nil || checked < 10 {
		t.Errorf("%d packages, %v", checked, err)
	}
}
