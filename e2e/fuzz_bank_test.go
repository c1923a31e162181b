//go:build linux

package e2e

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// reached are the packages that read what strangers, far ends and files of others say. Whoever has waited
// equally long has its turn in this order: the network's first.
var reached = []string{"internal/probe", "internal/iperf3", "internal/web", "internal/ndt7", "internal/datagram",
	"internal/download", "internal/peer", "internal/path", "internal/capture", "internal/flow", "internal/render",
	"internal/record", "cmd/fullpipe", "internal/plan", "internal/host", "internal/audit", "internal/sweep"}

// unreached read what this host's own user, files and kernel say, and numbers that others have read.
var unreached = []string{"internal/catalog", "internal/config", "internal/engine", "internal/link", "internal/model",
	"internal/recheck", "internal/sockdiag", "internal/socket", "internal/steer", "internal/store", "internal/units",
	"internal/verdict/live", "internal/watch", "internal/watch/paths"}

const (
	timeOfReached   = 10 * time.Minute
	timeOfUnreached = 2 * time.Minute
	// fuzzSlice is how long a target is fuzzed before it is another's turn.
	fuzzSlice = 2 * time.Minute
	// fuzzed is where the campaign stands.
	fuzzed = "../docs/fuzzed.jsonl"
)

// fuzzTarget is a function of a package, and where its campaign stands: what was done since the
// package's code last changed.
type fuzzTarget struct {
	Dir        string    `json:"package"`
	Name       string    `json:"target"`
	Code       string    `json:"code"`    // codeOf the package
	Seconds    float64   `json:"seconds"` // of a processor
	Executions int64     `json:"executions"`
	At         time.Time `json:"at,omitzero"` // of the last slice, of whatever code

	busy bool // it is being fuzzed
}

// left is how long it is still to be fuzzed.
func (f *fuzzTarget) left() time.Duration {
	all := timeOfUnreached
	if slices.Contains(reached, f.Dir) {
		all = timeOfReached
	}
	return max(0, all-time.Duration(f.Seconds*float64(time.Second)))
}

// goOn brings targets to where an earlier run left them; what was done before a package's code
// changed only says when their last turn was.
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

// longestWaiting is the target whose turn it is; nil: all have had their time, or are at it.
func longestWaiting(targets []*fuzzTarget) (next *fuzzTarget) {
	for _, target := range targets {
		if !target.busy && target.left() > 0 && (next == nil || target.At.Before(next.At)) {
			next = target
		}
	}
	return next
}

// fuzzes is the campaign: every target in turn, those first that have waited longest, until
// all have had their time or the budget is spent. As many run at a time as there are processors
// (GOMAXPROCS=1: one), each on one. FULLPIPE_BANK_CASES leaves only those that contain it.
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

// campaignRow tells where the campaign stands.
func campaignRow(all []*fuzzTarget, failed bool) bankRow {
	done, seconds, executions := 0, 0.0, int64(0)
	for _, f := range all {
		if f.left() == 0 {
			done++
		}
		seconds, executions = seconds+f.Seconds, executions+f.Executions
	}
	return bankRow{Section: "Hostile far ends", Case: "fuzz, every target since its package's code changed",
		Claim: fmt.Sprintf("none panics or hangs in %.0f minutes, %.0f where no stranger reaches", timeOfReached.Minutes(),
			timeOfUnreached.Minutes()),
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

// writeCampaign keeps it after each slice, so that a run may be ended at any time.
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

var fuzzFunction = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)

// fuzzTargets are every package's of this module, by package and name.
func fuzzTargets(t *testing.T) (all []*fuzzTarget) {
	t.Helper()
	names := map[string][]string{}
	for _, root := range []string{"autobuf", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range fuzzFunction.FindAllSubmatch(text, -1) {
				dir := strings.TrimPrefix(filepath.ToSlash(filepath.Dir(path)), "../")
				names[dir] = append(names[dir], string(found[1]))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	order := slices.Concat(reached, unreached)
	for _, dir := range slices.SortedFunc(maps.Keys(names), func(a, b string) int {
		return cmp.Or(slices.Index(order, a)-slices.Index(order, b), strings.Compare(a, b))
	}) {
		code, err := codeOf(filepath.Join("..", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range slices.Sorted(slices.Values(names[dir])) {
			all = append(all, &fuzzTarget{Dir: dir, Name: name, Code: code})
		}
	}
	return all
}

// codeOf tells a package's code from any other: a hash of what its Go files hold, its tests aside.
// A history that is written anew changes nothing of it.
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

// TestEveryFuzzTargetHasItsTime: whether strangers reach a reader is decided for each package that has
// fuzz targets, and no name is one that was.
func TestEveryFuzzTargetHasItsTime(t *testing.T) {
	has := map[string]bool{}
	for _, target := range fuzzTargets(t) {
		has[target.Dir] = true
	}
	for _, dir := range slices.Concat(reached, unreached) {
		if !has[dir] {
			t.Errorf("%s has no fuzz target", dir)
		}
		delete(has, dir)
	}
	for dir := range has {
		t.Errorf("do strangers reach what %s reads? It is in neither list", dir)
	}
}

// TestACampaignGoesOn: slices are taken where an earlier run ended, by those that have waited
// longest, and what was done before a package changed does not count.
func TestACampaignGoesOn(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 22, 12, minute, 0, 0, time.UTC) }
	targets := []*fuzzTarget{{Dir: "internal/web", Name: "FuzzA", Code: "new"},
		{Dir: "internal/web", Name: "FuzzB", Code: "new"}, {Dir: "internal/units", Name: "FuzzC", Code: "same"},
		{Dir: "internal/plan", Name: "FuzzD", Code: "same"}, {Dir: "internal/link", Name: "FuzzNever", Code: "same"}}
	goOn(targets, []fuzzTarget{
		{Dir: "internal/web", Name: "FuzzA", Code: "old", Seconds: 600, Executions: 1e6, At: at(5)},
		{Dir: "internal/web", Name: "FuzzB", Code: "new", Seconds: 480, Executions: 1e6, At: at(3)},
		{Dir: "internal/units", Name: "FuzzC", Code: "same", Seconds: 120, At: at(1)}, // it had its time
		{Dir: "internal/plan", Name: "FuzzD", Code: "same", Seconds: 120, At: at(4)},
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
	want := "FuzzNever FuzzB FuzzD FuzzA FuzzD FuzzA FuzzD FuzzA FuzzD FuzzA FuzzA"
	if got := strings.Join(turns, " "); got != want {
		t.Errorf("turns: %s, want %s", got, want)
	}
	if row := campaignRow(targets, false); row.Verdict != "pass" || row.Measured != "5 of 5 targets had their time" {
		t.Errorf("%+v", row)
	}
}

// TestACampaignOutlivesItsHistory: a package's code is the same wherever its files stand and whatever
// their history is; its tests and other packages do not count.
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
