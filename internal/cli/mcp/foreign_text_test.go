package mcp

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestInjections_InResults puts each injection into every string of stored documents: each result has the structure of
// the original one, and its text outside the data is the same.
func TestInjections_InResults(t *testing.T) {
	if len(injections) != 50 {
		t.Fatalf("%d injections", len(injections))
	}
	for _, kind := range []string{"measure", "diagnose", "why", "plan", "predict", "audit", "history"} {
		original := storedDocument(t, kind)
		var doc any
		must.Do(t, json.Unmarshal(original, &doc))
		current := original
		a, _ := newAssistant(t, func([]string) []byte { return current })
		must.Do(t, os.WriteFile(filepath.Join(a.files.dirs[0], "f"), nil, 0o600))
		_, clean := call(t, a, kind, required[kind])
		want := map[string]bool{}
		shape(clean.StructuredContent, "", want)
		if clean.IsError || len(want) < 5 {
			t.Fatalf("%s: %+v", kind, clean)
		}
		for _, text := range injections {
			text = text[:min(len(text), 2000)] // a document has many strings
			var err error
			current, err = json.Marshal(infected(doc, "", text))
			if err != nil {
				t.Fatal(err)
			}
			_, r := call(t, a, kind, required[kind])
			checkResult(t, r)
			got := map[string]bool{}
			shape(r.StructuredContent, "", got)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s with %.40q: another structure, %d and %d paths", kind, text, len(got), len(want))
			}
		}
	}
}

// TestInjections_InFailures puts each injection into the message of a command that failed, as a far end chooses it.
func TestInjections_InFailures(t *testing.T) {
	for _, text := range injections {
		a, _ := newAssistant(t, func([]string) []byte {
			doc, _ := json.Marshal(map[string]any{"schema": "fullpipe/measure/v1", "version": "v",
				"started_at": "2026-01-01T00:00:00Z", "error": map[string]any{"code": text, "argument": text, "message": text,
					"try": text}})
			return doc
		})
		_, r := call(t, a, "measure", required["measure"])
		if !r.IsError || r.StructuredContent != nil {
			t.Errorf("%.40q: %+v", text, r)
		}
		checkResult(t, r)
	}
}

// TestInjections_InArguments puts each injection into each text parameter of each tool: the command that runs is the
// tool's own, and the text is one argument, behind -- or as the value of a flag.
func TestInjections_InArguments(t *testing.T) {
	a, ran := newAssistant(t, func([]string) []byte { return []byte(`{}`) })
	for _, tool := range a.tools() {
		properties := tool.Input.(map[string]any)["properties"].(map[string]any)
		for parameter, schema := range properties {
			if schema.(map[string]any)["type"] != "string" {
				continue
			}
			for _, text := range injections {
				*ran = nil
				arguments := map[string]any{parameter: text}
				for key, value := range required[tool.Name] {
					if key != parameter {
						arguments[key] = value
					}
				}
				_, r := call(t, a, tool.Name, arguments)
				checkResult(t, r)
				for _, args := range *ran {
					checkCommand(t, tool.Name, args, text)
				}
			}
		}
	}
}

func checkCommand(t *testing.T, name string, args []string, text string) {
	t.Helper()
	if !slices.Equal(args[:3], []string{name, "--json", "--quiet"}) {
		t.Errorf("%q", args)
	}
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	for i, arg := range args[3:] {
		flag, _, _ := strings.Cut(arg, "=")
		switch {
		case i+3 < end && !slices.Contains(knownFlags, flag):
			t.Errorf("%s: %q is no flag of a tool: %q", name, arg, args)
		case i+3 > end+1:
			t.Errorf("%s: more than one argument behind --: %q", name, args)
		}
	}
	if count := strings.Count(strings.Join(args, "\x00"), text); len(text) > 20 && count > 1 {
		t.Errorf("%s: %d times: %q", name, count, args)
	}
}

// knownFlags are all flags that tools may give to commands. None of them writes a file or changes a host.
var knownFlags = []string{"--direction", "--parallel", "--congestion", "--receive-buffer", "--send-buffer", "--time",
	"--max-bytes", "--no-history", "--key-file", "--host", "--port", "--for", "--system", "--rate", "--rtt", "--jitter",
	"--target", "--role", "--connections", "--memory", "--vpn", "--app", "--path", "--loss", "--queue", "--stack",
	"--window", "--write-size", "--bytes", "--since", "--limit"}

// TestInjections_ToolsStay checks that tools and instructions do not depend on what was called before.
func TestInjections_ToolsStay(t *testing.T) {
	a, _ := newAssistant(t, func([]string) []byte { return []byte("{}") })
	before := must.Get(json.Marshal(a.tools()[0].Input))(t)
	for _, text := range injections {
		for _, word := range []string{instructions, dataNote, failedNote} {
			if strings.Contains(word, text) {
				t.Errorf("%q is text of the server's own", text)
			}
		}
		call(t, a, "measure", map[string]any{"peer": text})
	}
	after, err := json.Marshal(a.tools()[0].Input)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("%v: %s", err, after)
	}
}
