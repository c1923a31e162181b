package docs_test

import (
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
)

// TestCommandsAndFlagsExist checks every command line of fullpipe in the pages and in the examples of its help.
func TestCommandsAndFlagsExist(t *testing.T) {
	found := 0
	inline := regexp.MustCompile("`(fullpipe [a-z][^`]*)`")
	for _, p := range pages(t) {
		for _, m := range inline.FindAllStringSubmatch(fences.ReplaceAllString(p.text, ""), -1) {
			found++
			checkCommand(t, p.path, m[1])
		}
		for _, b := range blocks(p) {
			for _, step := range b.steps {
				for _, command := range fullpipes(step.command) {
					found++
					checkCommand(t, p.path, command)
				}
			}
		}
	}
	if found < 100 {
		t.Errorf("only %d command lines found: is the pattern still right?", found)
	}
	for _, cmd := range cli.NewRoot(console.NewStreams(nil, io.Discard, io.Discard)).Commands() {
		for example := range strings.Lines(cmd.Example) {
			for _, command := range fullpipes(example) {
				checkCommand(t, cmd.Name()+" --help", command)
			}
		}
	}
}

// fullpipes returns the calls of fullpipe in a line of shell.
func fullpipes(line string) []string {
	call := regexp.MustCompile(`(?:^|[\s|;&('"])(?:bin/)?(fullpipe [a-z].*)`)
	var all []string
	for part := range strings.SplitSeq(line, "|") {
		if m := call.FindStringSubmatch(part); m != nil {
			all = append(all, m[1])
		}
	}
	return all
}

// checkCommand checks that the command and its flags exist. A page may name a flag without its value.
func checkCommand(t *testing.T, where, line string) {
	t.Helper()
	line, _, _ = strings.Cut(line, " #")
	line, _, _ = strings.Cut(line, " > ")
	args := strings.Fields(strings.NewReplacer("'", "", `"`, "", `\`, "").Replace(line))[1:]
	for i, arg := range args {
		args[i] = strings.TrimRight(arg, "…,;)")
	}
	cmd, rest, err := cli.NewRoot(console.NewStreams(nil, io.Discard, io.Discard)).Find(args)
	if err != nil {
		t.Errorf("%s: %q: %v", where, line, err)
		return
	}
	for _, arg := range rest {
		if arg == "--" {
			break
		}
		name, isFlag := strings.CutPrefix(arg, "--")
		name, _, _ = strings.Cut(name, "=")
		if isFlag && name != "help" && cmd.Flags().Lookup(name) == nil && cmd.InheritedFlags().Lookup(name) == nil {
			t.Errorf("%s: %q: %s has no flag --%s", where, line, cmd.Name(), name)
		}
	}
}
