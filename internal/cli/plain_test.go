package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// goNames are Go names in errors of the standard library.
var goNames = regexp.MustCompile(`strconv|[^.\w]json: |Go struct|Go value|parsing "|invalid syntax|` +
	`looking for beginning|unexpected EOF|\[\]`)

// TestErrors_ContainNoGoNames gives commands unreadable input.
func TestErrors_ContainNoGoNames(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	kind := file("kind.json", `{"schema":"fullpipe/measure/v1","directions":"x"}`)
	tune := file("tune.json", `{"schema":"fullpipe/tune/v1","directions":3}`)
	short := file("short.json", `{"schema":"fullpipe/measure/v1","directions":[`)
	text := file("text.json", `hello`)
	sentence := file("sentence.json", `{"schema":"fullpipe/rfc6349/v1","directions":[{"criteria":[{"reason":{}}]}]}`)
	t.Setenv("FULLPIPE_STATE", dir)
	for _, c := range []struct{ line, want string }{
		{"measure x --parallel x", `--parallel: "x" is not a number`},
		{"measure x -p 99999", `--port: 99999 is more than 65535`},
		{"measure x --mss 99999999999999999999", "--mss: 99999999999999999999 is larger than it can be"},
		{"measure x --dscp 1e9", `--dscp: "1e9" is no class: 0 to 63`},
		{"measure x --nonsense", "fullpipe: --nonsense: no such option"},
		{"measure x -O 3", "fullpipe: -O: is iperf3's"},
		{"measure x --time", "fullpipe: --time: needs a value"},
		{"measure x --exchange=perhaps", `--exchange: "perhaps" is neither true nor false`},
		{"measure x --label a", `--label: "a" has no = in it`},
		{"measure x --time soon", "--time: "},
		{"show " + kind, "directions has a text instead of a list"},
		{"show " + sentence, "an object instead of a text"},
		{"show " + short, "the JSON ends too early"},
		{"show " + text, "no JSON at byte 1"},
		{"plan --tune " + tune, "directions has a number instead of a list"},
		{"plan --tune " + text, "no JSON at byte 1"},
		{"apply " + tune, "directions has a number instead of a list"},
		{"apply " + short, "the JSON ends too early"},
		{"history import " + kind, "directions has a text instead of a list"},
		{"history import " + short, "it ends too early"},
		{"audit " + kind, "fullpipe/snapshot/v1"},
		{"audit " + text, "neither JSON, nor"},
		{"show", "0 arguments given, 1 needed"},
		{"history compare 1", "1 argument given, 2 needed"},
		{"rfc6349 x --cir fast", "not a number"},
		{"measur x", "unknown command \"measur\"\n  try: fullpipe measure"},
		{"hub serve", "unknown command \"hub\"\n  try: fullpipe-hub serve"},
		{"lab nothing", "needs a profile"},
		{"key neww", "unknown command \"neww\"\n  try: fullpipe key new"},
		{"help measur", "unknown command \"measur\""},
		{"completion nosh", "unknown command \"nosh\""},
		{"plan extra --rate 1mbit --rtt 1ms", `"extra" is an argument too many: fullpipe plan takes none`},
		{"measure x --time 1x", `--time: "1x": not a time`},
		{"measure foo://x", `PEER: "foo://x": no kind of peer`},
		{"measure lab:", "PROFILE: no profile is called"},
		{"why x --for soon", `--for: "soon": not a time`},
		{"history --limit -1", "--limit: -1 is below zero"},
		{"explain receiver-windo", "try: fullpipe explain receiver-window"},
		{"undo tcp_wmen", "try: fullpipe status"},
		{"show " + filepath.Join(dir, "none"), "fullpipe: " + filepath.Join(dir, "none") + ": there is no such file"},
		{"key new a --keys " + filepath.Join(dir, "keys") + " --max-rate 100", "--max-rate: \"100\": 100 bit/s or"},
		{"key new a --keys " + filepath.Join(dir, "keys") + " --from nowhere", "--from: \"nowhere\" is no network"},
		{"key show --keys " + filepath.Join(dir, "keys"), "no such file"}, // the failed command left none
		{"measure x --fail-on receiver-window/policer", `"policer" is no subtype of receiver-window`},
		{"measure x --fail-on ack-path/policer", "ack-path, which has no subtypes"},
	} {
		var out, errs bytes.Buffer
		status := run(context.Background(), strings.Fields(c.line), console.NewStreams(strings.NewReader(""), &out, &errs))
		if said := errs.String(); status == 0 || !strings.Contains(said, c.want) || goNames.MatchString(said) ||
			strings.Contains(said, "--tune: --path:") {
			t.Errorf("%s: %d\n%s", c.line, status, said)
		}
	}
}

// TestHelpSpeaksTheUsersWords looks for Go's names of types, and for defaults that nobody would type, in
// every command's help.
func TestHelpSpeaksTheUsersWords(t *testing.T) {
	leaks := regexp.MustCompile(`stringToString|stringArray|uint|-\S+ (?:strings|ints|duration)\b|` +
		`default \[\]|0m0s|9\.31|97\.7`)
	var look func(cmd *cobra.Command)
	look = func(cmd *cobra.Command) {
		for _, line := range strings.Split(cmd.UsageString(), "\n") {
			if found := leaks.FindString(line); found != "" {
				t.Errorf("%s: %q in %s", cmd.CommandPath(), found, line)
			}
		}
		for _, sub := range cmd.Commands() {
			look(sub)
		}
	}
	look(NewRoot(console.NewStreams(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})))
}
