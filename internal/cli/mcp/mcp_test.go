package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fullpipe-net/fullpipe/internal/mcp"
)

// newAssistant returns the tools with a run that returns output and keeps the command lines.
func newAssistant(t *testing.T, output func(args []string) []byte) (a *assistant, ran *[][]string) {
	t.Helper()
	allowed, err := newFiles([]string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	ran = &[][]string{}
	return &assistant{files: allowed, hasHistory: func() bool { return true }, measuring: make(chan struct{}, 1),
		run: func(_ context.Context, i invocation) (outcome, error) {
			*ran = append(*ran, i.args)
			return outcome{output: output(i.args)}, nil
		}}, ran
}

// required are arguments with which each tool runs.
var required = map[string]map[string]any{
	"measure": {"peer": "h"}, "diagnose": {"file": "f"}, "why": {"target": "t"}, "explain": {"name": "n"},
	"plan": {"rate": "1mbit", "rtt": "1ms"}, "predict": {}, "audit": {}, "history": {},
}

// offered are the tools of assistants that were called: they are made once.
var offered = map[*assistant][]mcp.Tool{}

// call calls a tool and returns the response as the client gets it.
func call(t *testing.T, a *assistant, name string, arguments any) (line string, r response) {
	t.Helper()
	encoded, err := json.Marshal(map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	in := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}` + "\n" +
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + string(encoded) + "}\n"
	out := &untilCalled{done: make(chan struct{})}
	if offered[a] == nil {
		offered[a] = a.tools()
	}
	s := &mcp.Server{Name: "fullpipe", Instructions: instructions, Tools: offered[a]}
	if err := s.Serve(t.Context(), io.MultiReader(strings.NewReader(in), out), out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(out.text.String(), "\n"), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines: %q", len(lines), lines)
	}
	var decoded struct {
		ID     int `json:"id"`
		Result response
		Error  any
	}
	if err := json.Unmarshal([]byte(lines[1]), &decoded); err != nil || decoded.ID != 1 || decoded.Error != nil {
		t.Fatalf("%v: %.500s", err, lines[1])
	}
	return lines[1], decoded.Result
}

type response struct {
	Content           []struct{ Type, Text string }
	StructuredContent any
	IsError           bool
}

// untilCalled is the output of a session, and an input that ends when two lines were written.
type untilCalled struct {
	text  strings.Builder
	count int
	done  chan struct{}
}

func (u *untilCalled) Write(p []byte) (int, error) {
	u.count += bytes.Count(p, []byte("\n"))
	if u.count == 2 {
		defer close(u.done)
	}
	return u.text.Write(p)
}

func (u *untilCalled) Read([]byte) (int, error) {
	<-u.done
	return 0, io.EOF
}

// checkResult checks that a result has the constant note, marked data, and no character that a terminal obeys or that
// nobody sees.
func checkResult(t *testing.T, r response) {
	t.Helper()
	note := dataNote
	if r.IsError {
		note = failedNote
	}
	if len(r.Content) != 2 || r.Content[0].Text != note || r.Content[0].Type != "text" || r.Content[1].Type != "text" {
		t.Fatalf("%+.300v", r.Content)
	}
	for line := range strings.SplitSeq(r.Content[1].Text, "\n") {
		if !strings.HasPrefix(line, mark) {
			t.Errorf("not marked: %q", line)
		}
	}
	checkCharacters(t, strings.ReplaceAll(r.Content[1].Text, "\n", ""))
	eachString(r.StructuredContent, func(s string) { checkCharacters(t, s) })
}

func checkCharacters(t *testing.T, s string) {
	t.Helper()
	if i := strings.IndexFunc(s, func(r rune) bool {
		return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
	}); i >= 0 {
		t.Errorf("%q at %d of %.200q", s[i:min(i+4, len(s))], i, s)
	}
}

// eachString calls f with each string of a JSON value but for the keys.
func eachString(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, one := range v {
			eachString(one, f)
		}
	case map[string]any:
		for _, one := range v {
			eachString(one, f)
		}
	}
}

// shape returns the paths and kinds of a JSON value.
func shape(v any, at string, into map[string]bool) {
	into[at+" "+fmt.Sprintf("%T", v)] = true
	switch v := v.(type) {
	case []any:
		for i, one := range v {
			shape(one, fmt.Sprintf("%s[%d]", at, i), into)
		}
	case map[string]any:
		for key, one := range v {
			shape(one, at+"."+key, into)
		}
	}
}

// infected returns a copy of a JSON value with a text added to each string that is not checked when it is decoded.
func infected(v any, key, text string) any {
	switch v := v.(type) {
	case string:
		if key == "schema" || strings.HasSuffix(key, "_at") {
			return v
		}
		return v + text
	case []any:
		out := []any{}
		for _, one := range v {
			out = append(out, infected(one, key, text))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, one := range v {
			out[k] = infected(one, k, text)
		}
		return out
	}
	return v
}

// storedDocument returns a document of package render's tests.
func storedDocument(t *testing.T, kind string) []byte {
	t.Helper()
	archive, err := txtar.ParseFile("../../render/testdata/" + kind + ".txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		if f.Name == "record.json" {
			return f.Data
		}
	}
	t.Fatalf("%s has no document", kind)
	return nil
}

func TestMeasure_RefusesFarEnds(t *testing.T) {
	for peer, open := range map[string]bool{"h": true, "h:1": true, "[::1]:5201": true, "iperf3://h": true,
		"ndt7://h": true, "fullpipe://h": true, "iperf2://h": true, "ssh://h": false, "https://h/x": false,
		"http://169.254.169.254/": false,
		"lab:wan-40ms":            false, "file:///x": false, "SSH://h": false} {
		a, ran := newAssistant(t, func([]string) []byte { return []byte(`{}`) })
		call(t, a, "measure", map[string]any{"peer": peer})
		if (len(*ran) == 1) != open {
			t.Errorf("%s: %q", peer, *ran)
		}
	}
}

// TestMeasure_Bounds checks the command line's limits, and that --record is needed to keep anything.
func TestMeasure_Bounds(t *testing.T) {
	a, ran := newAssistant(t, func([]string) []byte { return []byte(`{}`) })
	call(t, a, "measure", map[string]any{"peer": "h"})
	call(t, a, "measure", map[string]any{"peer": "h", "seconds": 30, "max_megabytes": 10000})
	a.keep = true
	call(t, a, "measure", map[string]any{"peer": "h"})
	call(t, a, "measure", map[string]any{"peer": "h", "requests": "rr"})
	call(t, a, "measure", map[string]any{"peer": "h", "requests": "crr", "requests_per_s": 10_000, "streams": 8,
		"max_megabytes": 60, "seconds": 5})
	for _, wrong := range []map[string]any{{"peer": "h", "seconds": 31}, {"peer": "h", "max_megabytes": 10001},
		{"peer": "h", "seconds": -1}, {"peer": "h", "max_megabytes": -5}, {"peer": "h", "streams": 17}, {"seconds": 5},
		{"peer": "h", "other": 1}, {"peer": 5}, {"peer": "h", "seconds": "5"}, {"peer": "h", "direction": "sideways"},
		{"peer": "h", "requests": "udp"}, {"peer": "h", "requests_per_s": 5},
		{"peer": "h", "requests": "rr", "requests_per_s": 10_001},
		{"peer": "h", "requests": "rr", "requests_per_s": 10_000, "max_megabytes": 59}} {
		if _, r := call(t, a, "measure", wrong); !r.IsError {
			t.Errorf("%v is accepted", wrong)
		}
	}
	want := [][]string{
		{"measure", "--json", "--quiet", "--time=5s", "--max-bytes=1000MB", "--no-history", "--", "h"},
		{"measure", "--json", "--quiet", "--time=30s", "--max-bytes=10000MB", "--no-history", "--", "h"},
		{"measure", "--json", "--quiet", "--time=5s", "--max-bytes=1000MB", "--", "h"},
		{"measure", "--json", "--quiet", "--time=5s", "--rr", "--rate=100", "--concurrency=1", "--", "h"},
		{"measure", "--json", "--quiet", "--time=5s", "--crr", "--rate=10000", "--concurrency=8", "--", "h"}}
	if !reflect.DeepEqual(*ran, want) {
		t.Errorf("%q", *ran)
	}
}

// TestTools_DescribeParameters checks that each parameter has a description and each tool schemas.
func TestTools_DescribeParameters(t *testing.T) {
	for _, tool := range (&assistant{}).tools() {
		schema := tool.Input.(map[string]any)
		for name, one := range schema["properties"].(map[string]any) {
			if one.(map[string]any)["description"] == "" {
				t.Errorf("%s: %s has no description", tool.Name, name)
			}
		}
		if tool.Description == "" || tool.Title == "" || tool.Output == nil {
			t.Errorf("%+v", tool)
		}
	}
}

// TestDiagnose_ListsTheWorst checks that the result has only the connections that were asked for.
func TestDiagnose_ListsTheWorst(t *testing.T) {
	var stored map[string]any
	if err := json.Unmarshal(storedDocument(t, "diagnose"), &stored); err != nil {
		t.Fatal(err)
	}
	one := stored["connections"].([]any)[0]
	stored["connections"] = slices.Repeat([]any{one}, 30)
	doc, err := json.Marshal(stored)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := newAssistant(t, func([]string) []byte { return doc })
	if err := os.WriteFile(filepath.Join(a.files.dirs[0], "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, r := call(t, a, "diagnose", map[string]any{"file": "f", "top": 3})
	got := r.StructuredContent.(map[string]any)
	if n := len(got["connections"].([]any)); n != 3 || !strings.Contains(fmt.Sprint(got["warnings"]), "3 of 30") {
		t.Errorf("%d connections, %v", n, got["warnings"])
	}
}
