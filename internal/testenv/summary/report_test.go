package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// stream returns the JSON of events.
func stream(t *testing.T, events ...event) string {
	t.Helper()
	var b strings.Builder
	for _, e := range events {
		if err := json.NewEncoder(&b).Encode(e); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

func TestRun(t *testing.T) {
	on := func(action, name, output string, seconds float64) event {
		return event{Action: action, Package: "p", Test: name, Output: output, Elapsed: seconds}
	}
	start := on("start", "", "", 0)
	for name, tt := range map[string]struct {
		events        []event
		failed        int
		want, wantNot []string
	}{
		"nothing": {nil, 0, []string{"\n0 passed, 0 failed, 0 skipped\n"}, nil},
		"passed tests say nothing": {[]event{start, on("run", "A", "", 0), on("output", "A", "chatter\n", 0),
			on("pass", "A", "", 1.5), on("pass", "", "", 2)}, 0,
			[]string{"    1.50  p A\n", "\n1 passed, 0 failed, 0 skipped\n"}, []string{"chatter"}},
		"subtests count, their parent does not": {[]event{start, on("run", "A", "", 0), on("run", "A/x", "", 0),
			on("run", "A/y", "", 0), on("pass", "A/x", "", 0), on("output", "A/y", "wrong\n", 0), on("fail", "A/y", "", 0),
			on("fail", "A", "", 0), on("fail", "", "", 0)}, 1,
			[]string{"wrong\n", "\n1 passed, 1 failed, 0 skipped\n"}, nil},
		"a parent that fails by itself": {[]event{start, on("run", "A", "", 0), on("run", "A/x", "", 0),
			on("pass", "A/x", "", 0), on("output", "A", "left behind\n", 0), on("fail", "A", "", 0), on("fail", "", "", 0)}, 1,
			[]string{"left behind\n", "\n1 passed, 1 failed, 0 skipped\n"}, nil},
		"skips by feature": {[]event{start, on("run", "A", "", 0), on("output", "A", "    a_test.go:7: needs lab: no\n", 0),
			on("skip", "A", "", 0), on("run", "B", "", 0), on("output", "B", "    why\n", 0), on("skip", "B", "", 0),
			on("pass", "", "", 0)}, 0,
			[]string{"       1  needs lab\n", "       1  for another reason\n", "\n0 passed, 0 failed, 2 skipped\n"}, nil},
		"a package that TestMain leaves out": {[]event{start, on("output", "", "needs network-namespace: no\n", 0),
			on("pass", "", "", 0)}, 0, []string{"       1  needs network-namespace\n",
			"\n0 passed, 0 failed, 1 skipped\n"}, nil},
		"a package without tests": {[]event{start, on("output", "", "?   \tp\t[no test files]\n", 0),
			on("skip", "", "", 0)}, 0, []string{"\n0 passed, 0 failed, 0 skipped\n"}, nil},
		"a panic ends the tests that run": {[]event{start, on("run", "A", "", 0), on("output", "A", "panic: x\n", 0),
			on("fail", "", "", 0)}, 1, []string{"panic: x\n(it did not end)\n", "\n0 passed, 1 failed, 0 skipped\n"}, nil},
		"a package that fails outside tests": {[]event{start, on("output", "", "leak\n", 0), on("fail", "", "", 0)}, 1,
			[]string{"leak\n", "\n0 passed, 1 failed, 0 skipped\n"}, nil},
		"a build that fails": {[]event{{Action: "build-output", ImportPath: "q", Output: "a.go:1: no\n"},
			{Action: "build-fail", ImportPath: "q"}, start, {Action: "fail", Package: "p", FailedBuild: "q"}}, 1,
			[]string{"a.go:1: no\n", "p does not build\n", "\n0 passed, 1 failed, 0 skipped\n"}, nil},
	} {
		var out strings.Builder
		failed, err := run(strings.NewReader(stream(t, tt.events...)), &out, "")
		if failed != tt.failed || err != nil {
			t.Errorf("%s: %d failed, %v; want %d", name, failed, err, tt.failed)
		}
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: no %q in\n%s", name, want, out.String())
			}
		}
		for _, not := range tt.wantNot {
			if strings.Contains(out.String(), not) {
				t.Errorf("%s: %q in\n%s", name, not, out.String())
			}
		}
	}
}

func TestRun_KeepsLinesThatAreNoEvents(t *testing.T) {
	var out strings.Builder
	if failed, err := run(strings.NewReader("go: no such package\n{}\n"), &out, ""); failed != 0 || err != nil {
		t.Errorf("%d failed, %v", failed, err)
	}
	if !strings.HasPrefix(out.String(), "go: no such package\n{}\n") || !strings.HasSuffix(out.String(),
		"\n0 passed, 0 failed, 0 skipped\n") {
		t.Errorf("%q", out.String())
	}
}

func TestRun_ListsTestsThatAreLeftOut(t *testing.T) {
	skipped := func(pkg, name string) []event {
		return []event{{Action: "run", Package: pkg, Test: name}, {Action: "output", Package: pkg, Test: name,
			Output: "    a_test.go:7: needs wine: " + testenv.LeftOut + "\n"}, {Action: "skip", Package: pkg, Test: name}}
	}
	events := slices.Concat(skipped("p", "A/x"), skipped("p", "A/y"), skipped("q", "B"),
		[]event{{Action: "run", Package: "p", Test: "C"}, {Action: "skip", Package: "p", Test: "C"},
			{Action: "output", Package: "r", Output: "needs wine: " + testenv.LeftOut + "\n"},
			{Action: "pass", Package: "r"}})
	file := filepath.Join(t.TempDir(), "left")
	if failed, err := run(strings.NewReader(stream(t, events...)), io.Discard, file); failed > 0 || err != nil {
		t.Fatal(failed, err)
	}
	text, err := os.ReadFile(file)
	if want := "p A\nq B\nr\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
}
