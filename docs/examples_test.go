package docs_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// block is one block of code of a page. Its first line is ```LANGUAGE NEEDS, which no reader sees.
type block struct {
	language string
	needs    string // why the test does not run it, "" if it does
	text     string
	steps    []step
}

// step is one command with the output that the page shows: pieces that appear in this order.
type step struct {
	command string
	output  []string
}

// needs lists the second words of first lines: requirements that `make check` does not meet.
var needs = map[string]string{
	"lab":     "Linux's network namespaces; runs in `make test`",
	"far":     "a far end, a network or a program of the reader",
	"root":    "changes the host",
	"screen":  "a terminal, a browser or time",
	"source":  "builds this repository",
	"windows": "another system",
	"session": "TestTheGuide runs it in a lab",
}

// blocks returns the blocks of shell of a page. In sh each line is a command. In console a command follows a prompt,
// and the other lines are output, with … for omitted parts.
func blocks(p page) []block {
	prompt := regexp.MustCompile(`^\w*[$#>] +(.*)$`)
	var all []block
	for _, m := range regexp.MustCompile("(?ms)^```(\\w*) ?(\\S*)\n(.*?)^```$").FindAllStringSubmatch(p.text, -1) {
		b := block{language: m[1], needs: m[2], text: m[3]}
		text := strings.ReplaceAll(m[3], "\\\n", "")
		for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
			command := prompt.FindStringSubmatch(line)
			last := len(b.steps) - 1
			switch {
			case b.language == "sh":
				b.steps = append(b.steps, step{command: line})
			case b.language != "console":
			case command != nil:
				b.steps = append(b.steps, step{command: command[1]})
			case last < 0:
			case strings.HasSuffix(line, "…"):
				b.steps[last].output = append(b.steps[last].output, strings.TrimSuffix(line, "…"), "")
			case len(b.steps[last].output) == 0:
				b.steps[last].output = []string{line}
			default:
				b.steps[last].output[len(b.steps[last].output)-1] += "\n" + line
			}
		}
		all = append(all, b)
	}
	return all
}

func TestBlocks(t *testing.T) {
	got := blocks(page{text: "```sh lab\na \\\n  b\nc\n```\n\n```console\nfar$ d\none\n…\ntwo\nthree\n```\n"})
	if len(got) != 2 || got[0].needs != "lab" || len(got[0].steps) != 2 || got[0].steps[0].command != "a   b" {
		t.Errorf("%q", got)
	}
	s := got[1].steps
	if len(s) != 1 || s[0].command != "d" || !slices.Equal(s[0].output, []string{"one", "", "\ntwo\nthree"}) {
		t.Errorf("%q", s)
	}
}

// TestBlocks_NameTheirNeeds checks that no command line escapes the tests.
func TestBlocks_NameTheirNeeds(t *testing.T) {
	call := regexp.MustCompile(`(?m)^(?:\w*[$>] +)?(?:sudo )?fullpipe(?:-hub)? [a-z].*$`)
	for _, p := range pages(t) {
		for _, b := range blocks(p) {
			isShell := b.language == "sh" || b.language == "console"
			if _, known := needs[b.needs]; b.needs != "" && (!known || !isShell) {
				t.Errorf("%s: a block needs %q, which is no word of the list in examples_test.go", p.path, b.needs)
			}
			if line := call.FindString(b.text); line != "" && !isShell {
				t.Errorf("%s: %q is in a block without the language sh or console", p.path, line)
			}
		}
	}
}

// captures are the captures that the examples name, and the recordings that they are here.
var captures = map[string]string{
	"slow.pcap":     "rwnd-64k-100m-40.near.pcap.zst",
	"sender.pcap":   "rwnd-64k-100m-40.near.pcap.zst",
	"receiver.pcap": "rwnd-64k-100m-40.far.pcap.zst",
}

// TestExamples runs the examples of each page in one folder, in their order. Status 3 is an answer, not a failure.
func TestExamples(t *testing.T) {
	testenv.Need(t, testenv.Unix)
	withLab := testenv.Has(t, testenv.Lab)
	bin := t.TempDir()
	own, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(bin, "fullpipe"), own)
	ran := 0
	for _, p := range pages(t) {
		var run []block
		for _, b := range blocks(p) {
			if (b.language == "sh" || b.language == "console") && (b.needs == "" || b.needs == "lab" && withLab) {
				run = append(run, b)
				ran += len(b.steps)
			}
		}
		if len(run) > 0 {
			t.Run(p.path, func(t *testing.T) {
				t.Parallel()
				runPage(t, run, bin)
			})
		}
	}
	if ran < 25 {
		t.Errorf("only %d examples ran", ran)
	}
}

// runPage runs the examples of a page in a folder of its own, in which the captures exist.
func runPage(t *testing.T, all []block, bin string) {
	t.Helper()
	dir := t.TempDir()
	for name, recording := range captures {
		write(t, filepath.Join(dir, name), unpack(t, filepath.Join("../internal/diagnose/testdata", recording)))
	}
	for _, b := range all {
		for _, s := range b.steps {
			runStep(t, s, dir, bin)
		}
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	err := os.WriteFile(path, content, 0o755)
	if err != nil {
		t.Fatal(err)
	}
}

func unpack(t *testing.T, path string) []byte {
	t.Helper()
	packed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	content, err := reader.DecodeAll(packed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// runStep runs one command and compares its output with the page.
func runStep(t *testing.T, s step, dir, bin string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", s.command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asProgram+"=1", "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir,
		"XDG_CONFIG_HOME="+dir, "FULLPIPE_STATE="+filepath.Join(dir, "state"), "FULLPIPE_KEY=", "FULLPIPE_STORE=")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("%s: %v\n%s", s.command, err, out)
		return
	}
	rest := bytes.TrimRight(out, "\n")
	for _, piece := range s.output {
		_, after, found := bytes.Cut(rest, []byte(strings.TrimRight(piece, "\n")))
		if !found {
			t.Errorf("%s does not print\n%s\nbut\n%s", s.command, piece, out)
			return
		}
		rest = after
	}
}

// TestGoExamples_Compile builds the programs of the pages.
func TestGoExamples_Compile(t *testing.T) {
	testenv.Need(t, testenv.Go)
	built := 0
	for _, p := range pages(t) {
		for _, b := range blocks(p) {
			if b.language != "go" {
				continue
			}
			built++
			file := filepath.Join(t.TempDir(), "main.go")
			write(t, file, []byte(b.text))
			out, err := exec.CommandContext(t.Context(), "go", "build", "-o", os.DevNull, file).CombinedOutput()
			if err != nil {
				t.Errorf("%s: %v\n%s", p.path, err, out)
			}
		}
	}
	if built == 0 {
		t.Error("no program found")
	}
}
