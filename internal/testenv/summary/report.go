package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

const (
	maxSlowest = 20 // tests in the list of the slowest
	maxSkips   = 3  // tests named for each reason to skip
)

// event is a line of `go test -json` (cmd/test2json), or of the build that came before.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output and build-fail
	Test        string
	Elapsed     float64 // seconds
	Output      string
	FailedBuild string
}

// test is one test, or one package where name is "".
type test struct{ pkg, name string }

func (t test) String() string { return strings.TrimSpace(t.pkg + " " + t.name) }

type timed struct {
	test
	seconds float64
}

// report counts tests without subtests: of a test with subtests the subtests count.
type report struct {
	out                     io.Writer
	output                  map[test]*strings.Builder
	running                 map[test]bool // no result yet
	hasSubtests             map[test]bool
	hasFailures             map[test]bool // a subtest, or a package's test, failed
	skips                   map[string][]test
	left                    []test // tests and packages that are left to make test-all
	slowest                 []timed
	passed, failed, skipped int
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[test]*strings.Builder{}, running: map[test]bool{},
		hasSubtests: map[test]bool{}, hasFailures: map[test]bool{}, skips: map[string][]test{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		var e event
		if json.Unmarshal([]byte(line), &e) == nil && e.Action != "" {
			r.add(e)
		} else {
			io.WriteString(r.out, line) // of go itself
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *report) add(e event) {
	t := test{cmp.Or(e.Package, e.ImportPath), e.Test}
	switch e.Action {
	case "start", "run":
		r.running[t] = true
		if i := strings.LastIndexByte(t.name, '/'); i >= 0 {
			r.hasSubtests[test{t.pkg, t.name[:i]}] = true
		}
	case "output", "build-output":
		if r.output[t] == nil {
			r.output[t] = &strings.Builder{}
		}
		r.output[t].WriteString(e.Output)
	case "build-fail":
		io.WriteString(r.out, r.text(t))
	case "pass", "skip", "fail":
		r.end(t, e)
	}
}

func (r *report) end(t test, e event) {
	delete(r.running, t)
	if t.name != "" && !strings.Contains(t.name, "/") {
		r.slowest = append(r.slowest, timed{t, e.Elapsed})
	}
	text := r.text(t)
	reason := "for another reason"
	need := needs.FindStringSubmatch(text)
	if need != nil {
		reason = need[1]
	}
	switch {
	case e.Action == "fail":
		r.fail(t, text, e.FailedBuild != "")
	case t.name != "" && e.Action == "skip", t.name == "" && need != nil:
		r.skipped++
		r.skips[reason] = append(r.skips[reason], t)
		if strings.Contains(text, testenv.LeftOut) {
			r.left = append(r.left, t)
		}
	case t.name != "" && e.Action == "pass" && !r.hasSubtests[t]:
		r.passed++
	}
}

// needs matches the output of testenv.Need, which begins with a test's file and line, and of testenv.NeedMain.
var needs = regexp.MustCompile(`(?m)^(?:.*: )?(needs [a-z0-9-]+)(?::|$)`)

// fail prints what a failed test printed. A parent of a test that failed is no failure of its own.
func (r *report) fail(t test, text string, build bool) {
	if t.name == "" { // a package: its tests did not end
		for _, one := range slices.SortedFunc(maps.Keys(r.running), compare) {
			if one.pkg == t.pkg && !r.hasSubtests[one] {
				r.fail(one, r.text(one)+"(it did not end)\n", false)
			}
		}
	}
	if !r.hasFailures[t] {
		r.failed++
	}
	for parent := t; parent.name != ""; {
		parent.name = parent.name[:max(0, strings.LastIndexByte(parent.name, '/'))]
		r.hasFailures[parent] = true
	}
	if build {
		text += t.pkg + " does not build\n"
	}
	io.WriteString(r.out, text)
}

// text returns what a test printed, once.
func (r *report) text(t test) string {
	b := r.output[t]
	delete(r.output, t)
	if b == nil {
		return ""
	}
	return b.String()
}

func (r *report) finish() {
	if len(r.slowest) > 0 {
		slices.SortStableFunc(r.slowest, func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) })
		fmt.Fprintf(r.out, "\nslowest tests, seconds:\n")
		for _, s := range r.slowest[:min(maxSlowest, len(r.slowest))] {
			fmt.Fprintf(r.out, "%8.2f  %s\n", s.seconds, s.test)
		}
	}
	if len(r.skips) > 0 {
		fmt.Fprintf(r.out, "\nskipped:\n")
	}
	for _, reason := range slices.Sorted(maps.Keys(r.skips)) {
		fmt.Fprintf(r.out, "%8d  %s\n", len(r.skips[reason]), reason)
		for i, t := range r.skips[reason] {
			if i == maxSkips {
				fmt.Fprintf(r.out, "          …\n")
				break
			}
			fmt.Fprintf(r.out, "          %s\n", t)
		}
	}
	fmt.Fprintf(r.out, "\n%d passed, %d failed, %d skipped\n", r.passed, r.failed, r.skipped)
}

// leftOut lists the tests that were left out, without their subtests: package and test in each line, and no test
// where all of the package was left out.
func (r *report) leftOut() string {
	var lines []string
	for _, t := range r.left {
		name, _, _ := strings.Cut(t.name, "/")
		lines = append(lines, test{t.pkg, name}.String()+"\n")
	}
	slices.Sort(lines)
	return strings.Join(slices.Compact(lines), "")
}

func compare(a, b test) int {
	return cmp.Or(strings.Compare(a.pkg, b.pkg), strings.Compare(a.name, b.name))
}
