package testenv

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	present, missing := func() error { return nil }, func() error { return errors.New("not installed") }
	features := map[Feature]property{"present": {true, present}, "missing": {true, missing},
		"present-long": {false, present}, "missing-long": {false, missing}}
	declared := map[Feature]bool{"present": true, "missing": true, "present-long": true, "missing-long": true}
	for _, tt := range []struct {
		feature       Feature
		short         bool
		declared      map[Feature]bool
		skip, failure string
	}{
		{"present", false, nil, "", ""},
		{"present", true, declared, "", ""},
		{"missing", false, nil, "needs missing: not installed", ""},
		{"missing", true, nil, "needs missing: not installed", ""},
		{"missing", false, declared, "", "needs missing, which FILE declares: not installed"},
		{"missing", true, declared, "", "needs missing, which FILE declares: not installed"},
		{"present-long", false, nil, "", ""},
		{"present-long", true, declared, "needs present-long: short tests leave it out", ""},
		{"missing-long", true, declared, "needs missing-long: short tests leave it out", ""},
		{"missing-long", false, declared, "", "needs missing-long, which FILE declares: not installed"},
		{"unknown", false, nil, "", `testenv knows no feature "unknown"`},
	} {
		m := &machine{features: features, declared: tt.declared, file: "FILE"}
		if skip, failure := m.check(tt.feature, tt.short); skip != tt.skip || failure != tt.failure {
			t.Errorf("%s, short %v, declared %v: skip %q, failure %q; want %q, %q", tt.feature, tt.short,
				tt.declared[tt.feature], skip, failure, tt.skip, tt.failure)
		}
	}
	m := &machine{features: features, declared: declared, leftOut: map[Feature]bool{"missing-long": true}}
	if skip, failure := m.check("missing-long", false); skip != "needs missing-long: "+LeftOut || failure != "" {
		t.Errorf("a feature that is left out: skip %q, failure %q", skip, failure)
	}
	m = &machine{features: features, err: errors.New("no such file")}
	if skip, failure := m.check("present", false); skip != "" || failure != "no such file" {
		t.Errorf("a declaration that cannot be read: skip %q, failure %q", skip, failure)
	}
}

func TestParse(t *testing.T) {
	known := map[Feature]property{"one": {}, "two": {}}
	got, err := parse("FILE", "# comment\n\none # what for\n  two\n", known)
	if want := map[Feature]bool{"one": true, "two": true}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	if _, err := parse("FILE", "one\nthree\n", known); err == nil || !strings.HasPrefix(err.Error(), "FILE:2: ") {
		t.Errorf("an unknown feature: %v", err)
	}
}

// TestNeed_OfTheBinary runs TestNeeds in a process of its own: with the feature missing, and declared as well.
func TestNeed_OfTheBinary(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "features")
	if err := os.WriteFile(file, []byte("iperf3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		features, want string
		failed         bool
	}{
		{"", "SKIP: TestNeeds", false},
		{file, "needs iperf3, which " + file + " declares:", true},
		{filepath.Join(dir, "none"), FeaturesVariable + ": open ", true},
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNeeds$", "-test.v")
		cmd.Env = append(os.Environ(), needsVariable+"=1", FeaturesVariable+"="+tt.features, "PATH="+dir)
		out, err := cmd.CombinedOutput()
		if (err != nil) != tt.failed || !strings.Contains(string(out), tt.want) {
			t.Errorf("%s=%q: %v; want %q in\n%s", FeaturesVariable, tt.features, err, tt.want, out)
		}
	}
}

const needsVariable = "FULLPIPE_TESTENV_NEEDS"

func TestNeeds(t *testing.T) {
	if os.Getenv(needsVariable) != "" {
		Need(t, Iperf3)
		t.Error("the test goes on without iperf3")
	}
}

// TestProperties_EveryProbeReturns logs what this machine has. Each probe ends and says why.
func TestProperties_EveryProbeReturns(t *testing.T) {
	for _, f := range slices.Sorted(maps.Keys(properties())) {
		t.Log(f, fmt.Sprint(properties()[f].probe()))
	}
}
