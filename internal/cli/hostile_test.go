package cli

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// attack is text that would do something to a terminal, and would begin a line of its
// own.
const attack = "x\x1b[2J\x1b]0;t\x07\u009b31m\r\u202e\u2028\x7f\nFORGED"

// TestHostileInputsReachNoTerminal gives commands hostile text from strangers and files, and checks both output
// streams.
func TestHostileInputsReachNoTerminal(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		name = filepath.Join(dir, name)
		must.Do(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	object := func(v any) string {
		text := must.Get(json.Marshal(v))(t)
		return string(text)
	}
	setting := map[string]any{"name": attack, "where": attack, "value": attack, "type": attack, "unit": attack,
		"restart": attack, "source": attack, "role": attack}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/moved" {
			w.Header().Set("Location", "gopher://\u202ex/"+strings.Repeat("%1b", 3))
			w.WriteHeader(http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	defer web.Close()
	lines := [][]string{
		{attack}, {"plan", "--rate", attack}, {"plan", "--" + attack}, {"plan", "--rate", "1gbit", "--rtt", "1ms", "--target",
			attack},
		{"explain", attack}, {"measure", attack}, {"measure", "ssh://" + attack}, {"measure", "lab:" + attack},
		{"measure", "127.0.0.1:1", "--key", attack},
		{"measure", web.URL + "/moved"}, {"measure", web.URL + "/teapot"}, {"audit", filepath.Join(dir, attack)},
		{"diagnose", filepath.Join(dir, attack)},
		{"apply", "--dry-run", file("plan.json", object(map[string]any{"schema": "fullpipe/plan/v1",
			"settings": []any{setting}}))},
		{"apply", "--dry-run", file("other.json", object(map[string]any{"schema": attack}))},
		{"apply", "--dry-run", file("target.json", object(map[string]any{"schema": "fullpipe/plan/v1", "target": attack}))},
		{"audit", file("snapshot.json", object(map[string]any{"schema": "fullpipe/snapshot/v1", "os": "linux",
			"version": attack, "host": attack,
			"values": map[string]string{attack: attack, "net.ipv4.tcp_rmem": attack,
				"net.ipv4.tcp_congestion_control": attack}}))},
		{"audit", file("no.json", "{\"x\x1b\": 1}")},
		{"plan", "--path", file("result.json", object(map[string]any{"schema": attack}))},
		{"diagnose", file("x.pcap", attack)},
	}
	if runtime.GOOS == "linux" {
		ssh := file("ssh", "#!/bin/sh\nprintf '"+strings.ReplaceAll(attack, "'", "")+"' >&2; printf '"+attack+"'; exit 255\n")
		must.Do(t, os.Chmod(ssh, 0o700))
		t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		lines = append(lines, []string{"measure", "ssh://host.invalid"})
	}
	for _, args := range lines {
		for _, form := range [][]string{args, append([]string{"--json"}, args...)} {
			var out, errs strings.Builder
			status := run(context.Background(), form, console.NewStreams(strings.NewReader(""), &out, &errs))
			if out.Len()+errs.Len() == 0 {
				t.Errorf("%q: nothing was said, status %d", form, status)
			}
			for _, text := range []string{out.String(), errs.String()} {
				if at := strings.IndexFunc(text, func(r rune) bool {
					return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp))
				}); at >= 0 {
					t.Errorf("%q: a control passes: %q", form, text)
				}
				if strings.Contains(text, "\nFORGED") {
					t.Errorf("%q: a line is forged: %q", form, text)
				}
			}
		}
	}
}

// A document that is written without render could begin lines of ours with its texts.
func TestDocumentsAreWrittenThroughRender(t *testing.T) {
	files := must.Get(filepath.Glob("*.go"))(t)
	writers := regexp.MustCompile(`\b(?:text|html)\.([A-Z]\w+)\((?:w|out|cmd\.[\w()]+), ?(render\.Document\()?`)
	doors := []string{"Write", "Connections", "CSV", "Parameter", "Parameters"} // the catalog's texts are our own
	for _, name := range files {
		source := must.Get(os.ReadFile(name))(t)
		for _, call := range writers.FindAllStringSubmatch(string(source), -1) {
			if call[2] == "" && !slices.Contains(doors, call[1]) {
				t.Errorf("%s: %s", name, call[0])
			}
		}
	}
}
