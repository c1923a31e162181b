//go:build linux

package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// fuzzSlice is the time for which a target is fuzzed in one turn.
	fuzzSlice = 2 * time.Minute
	// fuzzed is the state of the campaign.
	fuzzed = "fuzzed.jsonl"
)

// fuzzTarget is a fuzz function of a package and the state of its campaign: the work since the package's code last
// changed.
type fuzzTarget struct {
	Dir        string    `json:"package"`
	Name       string    `json:"target"`
	Code       string    `json:"code"`    // codeOf the package
	Seconds    float64   `json:"seconds"` // of a processor
	Executions int64     `json:"executions"`
	At         time.Time `json:"at,omitzero"` // of the last slice, of whatever code

	busy bool // it is being fuzzed
}

// left returns the remaining fuzzing time.
func (f *fuzzTarget) left() time.Duration {
	all := timeOfOwn
	if place(foreign, f.Dir, f.Name) >= 0 {
		all = timeOfForeign
	}
	return max(0, all-time.Duration(f.Seconds*float64(time.Second)))
}

// goOn restores the state of an earlier run. Work from before a change of the package's code only dates the target's
// last turn.
func goOn(targets []*fuzzTarget, earlier []fuzzTarget) {
	for _, target := range targets {
		for _, e := range earlier {
			if e.Dir != target.Dir || e.Name != target.Name {
				continue
			}
			if target.At = e.At; e.Code == target.Code {
				target.Seconds, target.Executions = e.Seconds, e.Executions
			}
		}
	}
}

// longestWaiting returns the target with the next turn, or nil if all have had their time or run now.
func longestWaiting(targets []*fuzzTarget) (next *fuzzTarget) {
	for _, target := range targets {
		if !target.busy && target.left() > 0 && (next == nil || target.At.Before(next.At)) {
			next = target
		}
	}
	return next
}

// fuzzes runs the campaign: every target in turn, those that waited longest first, until all have had their time or
// the budget is spent. As many run at a time as there are processors (GOMAXPROCS=1: one), each on one.
// FULLPIPE_BANK_CASES keeps only the targets whose names contain it.
func fuzzes(t *testing.T, budget time.Duration) {
	all := fuzzTargets(t)
	goOn(all, readCampaign(t))
	asked := slices.DeleteFunc(slices.Clone(all), func(f *fuzzTarget) bool {
		return !strings.Contains(f.Dir+" "+f.Name, os.Getenv("FULLPIPE_BANK_CASES"))
	})
	programs := newFuzzPrograms(t)
	end := time.Now().Add(budget)
	var mu sync.Mutex // guards the targets and the campaign's file
	var lanes sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		lanes.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for {
				next := longestWaiting(asked)
				if next == nil || time.Until(end) < time.Second {
					return
				}
				length := max(time.Second, min(fuzzSlice, next.left(), time.Until(end)).Round(time.Second))
				next.busy, next.At = true, time.Now().UTC().Round(time.Second)
				mu.Unlock()
				took, executions, err := programs.fuzz(t.Context(), next, length)
				mu.Lock()
				next.busy = false
				if err != nil {
					t.Errorf("%s %s: %v", next.Dir, next.Name, err)
					asked = slices.DeleteFunc(asked, func(f *fuzzTarget) bool { return f == next })
				} else {
					next.Seconds, next.Executions = next.Seconds+took.Seconds(), next.Executions+executions
				}
				t.Logf("%s %s: %v, %d executions; %v left", next.Dir, next.Name, took, executions, next.left())
				writeCampaign(t, all)
			}
		})
	}
	lanes.Wait()
	record(t, campaignRow(all, t.Failed()))
}

// campaignRow reports the state of the campaign.
func campaignRow(all []*fuzzTarget, failed bool) bankRow {
	done, seconds, executions := 0, 0.0, int64(0)
	for _, f := range all {
		if f.left() == 0 {
			done++
		}
		seconds, executions = seconds+f.Seconds, executions+f.Executions
	}
	return bankRow{Section: "Hostile far ends", Case: "fuzz, every target since its package's code changed",
		Claim: fmt.Sprintf("none panics or hangs in %.0f minutes, %.0f where nobody else writes", timeOfForeign.Minutes(),
			timeOfOwn.Minutes()),
		Measured: fmt.Sprintf("%d of %d targets had their time", done, len(all)),
		Spread:   fmt.Sprintf("%.1f hours of a processor, %d million executions in all", seconds/3600, executions/1e6),
		Verdict:  byInterval(!failed, failed || done == len(all)), Command: "make bank RUN=TestBankHostile/fuzz"}
}

func readCampaign(t *testing.T) (earlier []fuzzTarget) {
	t.Helper()
	text, err := os.ReadFile(fuzzed)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var f fuzzTarget
		if err := json.Unmarshal(line, &f); err != nil {
			t.Fatalf("%s: %v", fuzzed, err)
		}
		earlier = append(earlier, f)
	}
	return earlier
}

// writeCampaign saves the state after each slice, so that a run may be ended at any time.
func writeCampaign(t *testing.T, all []*fuzzTarget) {
	t.Helper()
	var text bytes.Buffer
	for _, f := range all {
		if f.At.IsZero() {
			continue
		}
		if err := json.NewEncoder(&text).Encode(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(fuzzed, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

// codeOf returns a hash of the contents of a package's Go files, without its tests. Rewriting the Git history does
// not change it.
func codeOf(dir string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go")) // sorted
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%s %d\n%s", filepath.Base(name), len(text), text)
	}
	return fmt.Sprintf("%.6x", hash.Sum(nil)), nil
}

// TestACampaignGoesOn checks that a run continues where an earlier run ended, that the targets which waited longest
// go first, and that work from before a change of the package does not count.
func TestACampaignGoesOn(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 22, 12, minute, 0, 0, time.UTC) }
	targets := []*fuzzTarget{{Dir: "internal/web", Name: "FuzzRequest", Code: "new"},
		{Dir: "internal/web", Name: "FuzzTold", Code: "new"}, {Dir: "internal/units", Name: "FuzzParse", Code: "same"},
		{Dir: "internal/plan", Name: "FuzzPasted", Code: "same"}, {Dir: "internal/link", Name: "FuzzPacket", Code: "same"}}
	goOn(targets, []fuzzTarget{
		{Dir: "internal/web", Name: "FuzzRequest", Code: "old", Seconds: 600, Executions: 1e6, At: at(5)},
		{Dir: "internal/web", Name: "FuzzTold", Code: "new", Seconds: 480, Executions: 1e6, At: at(3)},
		{Dir: "internal/units", Name: "FuzzParse", Code: "same", Seconds: 120, At: at(1)}, // it had its time
		{Dir: "internal/plan", Name: "FuzzPasted", Code: "same", Seconds: 120, At: at(4)},
		{Dir: "internal/gone", Name: "FuzzE", Code: "same", Seconds: 120, At: at(0)}})
	var turns []string
	for minute := 10; ; minute++ {
		next := longestWaiting(targets)
		if next == nil {
			break
		}
		turns = append(turns, next.Name)
		next.At, next.Seconds = at(minute), next.Seconds+min(fuzzSlice, next.left()).Seconds()
	}
	want := "FuzzPacket FuzzTold FuzzPasted FuzzRequest FuzzPasted FuzzRequest FuzzPasted FuzzRequest " +
		"FuzzPasted FuzzRequest FuzzRequest"
	if got := strings.Join(turns, " "); got != want {
		t.Errorf("turns: %s, want %s", got, want)
	}
	if row := campaignRow(targets, false); row.Verdict != "pass" || row.Measured != "5 of 5 targets had their time" {
		t.Errorf("%+v", row)
	}
}

// TestACampaignOutlivesItsHistory checks that the hash of a package depends neither on its directory nor on the Git
// history, and that its tests and other packages do not count.
func TestACampaignOutlivesItsHistory(t *testing.T) {
	code := func(files map[string]string) string {
		t.Helper()
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		code, err := codeOf(dir)
		if err != nil {
			t.Fatal(err)
		}
		return code
	}
	was := code(map[string]string{"a.go": "package a", "b.go": "package b", "a_test.go": "package a"})
	if now := code(map[string]string{"a.go": "package a", "b.go": "package b", "c_test.go": "package c"}); now != was {
		t.Errorf("another test: %s is not %s", now, was)
	}
	for name, files := range map[string]map[string]string{
		"another text":    {"a.go": "package a", "b.go": "package c"},
		"one file less":   {"a.go": "package a"},
		"another name":    {"a.go": "package a", "c.go": "package b"},
		"moved over ends": {"a.go": "package ab.go 9\npackage b"},
	} {
		if now := code(files); now == was {
			t.Errorf("%s: still %s", name, now)
		}
	}
}
