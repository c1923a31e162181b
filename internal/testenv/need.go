package testenv

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
)

// FeaturesVariable is the environment variable that names the file with the features that this machine
// declares. A test that needs a declared feature fails where the feature is missing.
const FeaturesVariable = "FULLPIPE_FEATURES"

// LeaveOutVariable is the environment variable with a list of features, separated by spaces. Tests that need them run
// only in `make test-all`.
const LeaveOutVariable = "FULLPIPE_LEAVE_OUT"

// LeftOut ends the reason to skip a test that needs a feature of LeaveOutVariable.
const LeftOut = "left to make test-all"

// Need skips the test where the machine lacks one of the features. It fails the test instead where
// FULLPIPE_FEATURES declares the feature. Short tests skip features that need privileges or programs.
func Need(t testing.TB, features ...Feature) {
	t.Helper()
	for _, f := range features {
		if missing := lacks(t, f); missing != "" {
			t.Skip(missing)
		}
	}
}

// Has reports whether the machine has the features. A part of a test that depends on it must not be the
// main part: Need says so. Has fails the test where FULLPIPE_FEATURES declares a missing feature.
func Has(t testing.TB, features ...Feature) bool {
	t.Helper()
	for _, f := range features {
		if missing := lacks(t, f); missing != "" {
			return false
		}
	}
	return true
}

// Program returns the path of a program after Need.
func Program(t testing.TB, f Feature) string {
	t.Helper()
	Need(t, f)
	path, err := find(f)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// NeedMain is Need for a TestMain, which has no test to skip. It leaves out the package's tests.
func NeedMain(features ...Feature) {
	if !flag.Parsed() {
		flag.Parse()
	}
	for _, f := range features {
		skip, failure := current().check(f, testing.Short())
		if failure != "" {
			fmt.Fprintln(os.Stderr, failure)
			os.Exit(1)
		}
		if skip != "" {
			fmt.Println(skip)
			os.Exit(0)
		}
	}
}

func lacks(t testing.TB, f Feature) string {
	t.Helper()
	skip, failure := current().check(f, testing.Short())
	if failure != "" {
		t.Fatal(failure)
	}
	return skip
}

// machine is what is known about the machine: which features it has, and which it says it has.
type machine struct {
	features map[Feature]property
	declared map[Feature]bool
	leftOut  map[Feature]bool
	file     string // where declared was read
	err      error  // why it could not be
}

// check returns why a test that needs the feature is skipped, or why it fails, or neither.
func (m *machine) check(f Feature, short bool) (skip, failure string) {
	p, known := m.features[f]
	switch {
	case m.err != nil:
		return "", m.err.Error()
	case !known:
		return "", fmt.Sprintf("testenv knows no feature %q", f)
	case m.leftOut[f]:
		return fmt.Sprintf("needs %s: %s", f, LeftOut), ""
	case short && !p.short:
		return fmt.Sprintf("needs %s: short tests leave it out", f), ""
	}
	err := p.probe()
	switch {
	case err == nil:
		return "", ""
	case m.declared[f]:
		return "", fmt.Sprintf("needs %s, which %s declares: %v", f, m.file, err)
	}
	return fmt.Sprintf("needs %s: %v", f, err), ""
}

var current = sync.OnceValue(func() *machine {
	m := &machine{features: properties(), leftOut: map[Feature]bool{}, file: os.Getenv(FeaturesVariable)}
	for name := range strings.FieldsSeq(os.Getenv(LeaveOutVariable)) {
		if _, known := m.features[Feature(name)]; !known {
			m.err = fmt.Errorf("%s: testenv knows no feature %q", LeaveOutVariable, name)
			return m
		}
		m.leftOut[Feature(name)] = true
	}
	if m.file == "" {
		return m
	}
	text, err := os.ReadFile(m.file)
	if err != nil {
		m.err = fmt.Errorf("%s: %w", FeaturesVariable, err)
		return m
	}
	m.declared, m.err = parse(m.file, string(text), m.features)
	return m
})

// parse reads a declaration: one feature a line; a # begins a comment.
func parse(file, text string, known map[Feature]property) (map[Feature]bool, error) {
	declared := map[Feature]bool{}
	n := 0
	for line := range strings.Lines(text) {
		n++
		name, _, _ := strings.Cut(line, "#")
		f := Feature(strings.TrimSpace(name))
		if f == "" {
			continue
		}
		if _, ok := known[f]; !ok {
			return nil, fmt.Errorf("%s:%d: testenv knows no feature %q", file, n, f)
		}
		declared[f] = true
	}
	return declared, nil
}
