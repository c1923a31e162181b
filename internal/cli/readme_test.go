package cli

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
)

// TestDocumentsNameCommandsThatExist reads every fullpipe command line in the documents
// and in the commands' own examples, and checks that command and flags are real.
func TestDocumentsNameCommandsThatExist(t *testing.T) {
	documents, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	// In documents a command is in backquotes or in a block of shell; "·" joins several.
	line := regexp.MustCompile("(?m)^(?:\\w*[$#] +)?(?:sudo )?(fullpipe [a-z].*)$|`(fullpipe [a-z][^`]*)`")
	found := 0
	for _, document := range append(documents, "../../README.md") {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			command := m[1] + m[2]
			if m[1] != "" && !inShellBlock(string(text), m[0]) {
				continue
			}
			found++
			checkCommandLine(t, document, command)
		}
	}
	if found < 10 {
		t.Errorf("only %d command lines found: is the pattern still right?", found)
	}
	for _, cmd := range NewRoot(console.NewStreams(nil, io.Discard, io.Discard)).Commands() {
		for example := range strings.Lines(cmd.Example) {
			if _, line, ok := strings.Cut("\n"+strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(example), "sudo ")),
				"\nfullpipe "); ok {
				checkCommandLine(t, cmd.Name()+" --help", "fullpipe "+line)
			}
		}
	}
}

func inShellBlock(text, line string) bool {
	before, _, _ := strings.Cut(text, line)
	return strings.Count(before, "```sh")*2 == strings.Count(before, "```")+1
}

func checkCommandLine(t *testing.T, where, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	line, _, _ = strings.Cut(line, " > ")
	line, _, _ = strings.Cut(line, " | ")
	args := strings.Fields(strings.ReplaceAll(line, "'", ""))[1:]
	for i, arg := range args {
		args[i] = strings.TrimRight(arg, "…,")
	}
	cmd, rest, err := NewRoot(console.NewStreams(nil, io.Discard, io.Discard)).Find(args)
	if err != nil {
		t.Errorf("%s: %q: %v", where, line, err)
		return
	}
	for i, arg := range rest { // a document may name a flag without its value
		name, isFlag := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		if arg == "--" {
			break
		}
		if isFlag && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil && name != "help" {
			t.Errorf("%s: %q: %s has no flag %s", where, line, cmd.Name(), rest[i])
		}
	}
}
