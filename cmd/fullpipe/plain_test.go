package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goNames are what errors of the standard library leak of themselves.
var goNames = regexp.MustCompile(`strconv|[^.\w]json: |Go struct|Go value|parsing "|invalid syntax|` +
	`looking for beginning|unexpected EOF|\[\]`)

// TestErrorsSpeakTheUsersWords gives commands what they cannot read.
func TestErrorsSpeakTheUsersWords(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	kind := file("kind.json", `{"schema":"fullpipe/measure/v1","directions":"x"}`)
	tune := file("tune.json", `{"schema":"fullpipe/tune/v1","directions":3}`)
	short := file("short.json", `{"schema":"fullpipe/measure/v1","directions":[`)
	text := file("text.json", `hello`)
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
		{"show " + kind, "directions holds a text instead of a list"},
		{"show " + short, "the JSON ends too early"},
		{"show " + text, "no JSON at byte 1"},
		{"plan --tune " + tune, "directions holds a number instead of a list"},
		{"plan --tune " + text, "no JSON at byte 1"},
		{"apply " + tune, "directions holds a number instead of a list"},
		{"apply " + short, "the JSON ends too early"},
		{"history import " + kind, "directions holds a text instead of a list"},
		{"history import " + short, "it ends too early"},
		{"audit " + kind, "fullpipe/snapshot/v1"},
		{"audit " + text, "neither JSON nor"},
		{"show", "0 arguments given, 1 needed"},
		{"history compare 1", "1 arguments given, 2 needed"},
		{"rfc6349 x --cir fast", "not a number"},
	} {
		var out, errs bytes.Buffer
		status := run(context.Background(), strings.Fields(c.line), streams{strings.NewReader(""), &out, &errs})
		if said := errs.String(); status == 0 || !strings.Contains(said, c.want) || goNames.MatchString(said) ||
			strings.Contains(said, "--tune: --path:") {
			t.Errorf("%s: %d\n%s", c.line, status, said)
		}
	}
}
