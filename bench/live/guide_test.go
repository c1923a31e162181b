//go:build linux

package live

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

const guide = "../../docs/slow-backup.md"

// guideSession is the guide's host in a lab: a lowered tcp_rmem, and a program called
// rsync that fetches something while the first two commands run.
const guideSession = `echo "4096 131072 262144" > /proc/sys/net/ipv4/tcp_rmem
rsync measure backup -R -t 9s >/dev/null 2>&1 &
sleep 2
`

// guideBlock has commands and the expected parts of their output: pieces, with "…" between them.
type guideBlock struct {
	commands []string
	shown    []string
}

func guideBlocks(text string) (all []guideBlock) {
	for _, m := range regexp.MustCompile("(?s)```console session\n(.*?)```").FindAllStringSubmatch(text, -1) {
		b := guideBlock{shown: []string{""}}
		for line := range strings.Lines(m[1]) {
			line = strings.TrimRight(line, "\n")
			switch command, is := strings.CutPrefix(line, "$ "); {
			case is:
				b.commands = append(b.commands, command)
			case line == "…":
				b.shown = append(b.shown, "")
			default:
				b.shown[len(b.shown)-1] += line + "\n"
			}
		}
		all = append(all, b)
	}
	return all
}

// withoutFigures replaces every quantity of a text by the same word and joins its lines: runs differ in their
// figures, and figures change the line breaks.
func withoutFigures(text string) string {
	for _, r := range []struct{ from, to string }{
		{`[▏▎▍▌▋▊▉█]+`, " "}, {`(?:high|medium|low) confidence`, "confidence"}, {`\d[\d.,]*`, "#"},
		{`# ?[kMGT]?bit/s`, "#bit/s"}, {`# ?(?:[kKMG]i?)?B\b`, "#B"}, {`# bytes`, "#B"},
		{`# h # min|# min|#h#m#s|#m#s|# ?[nµm]?s\b`, "#s"}, {`\s+`, " "},
	} {
		text = regexp.MustCompile(r.from).ReplaceAllString(text, r.to)
	}
	return strings.TrimSpace(text)
}

// TestTheGuide runs the guide's commands in their order and compares their output with the output in the guide.
// FULLPIPE_GUIDE=FILE writes the output there, to shorten and paste.
func TestTheGuide(t *testing.T) {
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	blocks := guideBlocks(string(text))
	if len(blocks) != 10 {
		t.Fatalf("%d blocks of commands; the guide promises ten", len(blocks))
	}
	outputs, missing := runGuide(t, blocks), []string(nil)
	if missing = missingFrom(blocks, outputs); len(missing) > 0 && wasLate(outputs) {
		outputs = runGuide(t, blocks)
		if missing = missingFrom(blocks, outputs); len(missing) > 0 && wasLate(outputs) {
			t.Error("the lab was too late twice: this machine does other things")
		}
	}
	for _, m := range missing {
		t.Error(m)
	}
	if name := os.Getenv("FULLPIPE_GUIDE"); name != "" {
		if err := os.WriteFile(name, []byte(strings.Join(outputs, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// missingFrom returns the lines of the guide that were not printed, or not in their order.
func missingFrom(blocks []guideBlock, outputs []string) (missing []string) {
	for i, b := range blocks {
		rest := withoutFigures(outputs[i])
		for _, piece := range b.shown {
			_, after, found := strings.Cut(rest, withoutFigures(piece))
			if !found {
				missing = append(missing, fmt.Sprintf("%s does not print this now, or not here:\n%s\nbut\n%s", b.commands[0],
					piece, outputs[i]))
				break
			}
			rest = after
		}
	}
	return missing
}

// wasLate reports whether the lab rejected its own session as too late.
func wasLate(outputs []string) bool {
	return strings.Contains(strings.Join(outputs, ""), "too busy for an exact lab")
}

// runGuide runs one session in one lab and returns the output of each block's commands.
func runGuide(t *testing.T, blocks []guideBlock) []string {
	t.Helper()
	dir := t.TempDir()
	program := harness.Program(t)
	copied, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fullpipe", "rsync"} { // why knows a program by its file's name
		if err := os.WriteFile(filepath.Join(dir, name), copied, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const mark = "=== "
	var script strings.Builder
	script.WriteString(guideSession)
	for i, b := range blocks {
		if i == 2 {
			script.WriteString("wait\n") // the backup is over: the measurement has the line to itself
		}
		fmt.Fprintf(&script, "echo '%s%d'\n%s\n", mark, i, strings.Join(b.commands, "\n"))
	}
	files := map[string]string{"session": script.String(), "key": strings.Repeat("5e", 32) + "\n",
		"config.toml": "[far.backup]\npeer = \"fullpipe://198.18.0.2\"\nkey-file = \"key\"\n"}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), program, "lab", "rate=100mbit,rtt=40ms", "--far",
		"fullpipe serve --quiet --key-file key", "--", "sh", "session")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "FULLPIPE_STATE="+filepath.Join(dir, "state"),
		"FULLPIPE_CONFIG="+filepath.Join(dir, "config.toml"))
	out, err := cmd.CombinedOutput()
	parts := strings.Split(string(out), mark)
	if len(parts) != len(blocks)+1 {
		t.Fatalf("%v\n%s", err, out)
	}
	for i := range parts {
		_, parts[i], _ = strings.Cut(parts[i], "\n")
	}
	return parts[1:]
}
