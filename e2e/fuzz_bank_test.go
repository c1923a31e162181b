//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// reached are the packages that read what strangers, far ends and files of others say.
var reached = []string{"cmd/fullpipe", "internal/audit", "internal/capture", "internal/datagram", "internal/download",
	"internal/flow", "internal/host", "internal/iperf3", "internal/ndt7", "internal/path", "internal/peer",
	"internal/plan", "internal/probe", "internal/record", "internal/render", "internal/sweep", "internal/web"}

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

// fuzzTarget is a function of a package, and where its campaign stands: what was done since a
// file of the package last changed.
type fuzzTarget struct {
	Dir        string    `json:"package"`
	Name       string    `json:"target"`
	Commit     string    `json:"commit"` // the last that changed a Go file of the package
	Seconds    float64   `json:"seconds"`
	Executions int64     `json:"executions"`
	At         time.Time `json:"at,omitzero"` // of the last slice, of whatever commit
}

// left is how long it is still to be fuzzed.
func (f *fuzzTarget) left() time.Duration {
	all := timeOfUnreached
	if slices.Contains(reached, f.Dir) {
		all = timeOfReached
	}
	return max(0, all-time.Duration(f.Seconds*float64(time.Second)))
}

// goOn brings targets to where an earlier run left them; what was done before a package's last
// change only says when their last turn was.
func goOn(targets []*fuzzTarget, earlier []fuzzTarget) {
	for _, target := range targets {
		for _, e := range earlier {
			if e.Dir != target.Dir || e.Name != target.Name {
				continue
			}
			if target.At = e.At; e.Commit == target.Commit {
				target.Seconds, target.Executions = e.Seconds, e.Executions
			}
		}
	}
}

// longestWaiting is the target whose turn it is; nil: all have had their time.
func longestWaiting(targets []*fuzzTarget) (next *fuzzTarget) {
	for _, target := range targets {
		if target.left() > 0 && (next == nil || target.At.Before(next.At)) {
			next = target
		}
	}
	return next
}

// fuzzes is the campaign: every target in turn, those first that have waited longest, until
// all have had their time or the budget is spent. FULLPIPE_BANK_CASES leaves only those that
// contain it.
func fuzzes(t *testing.T, budget time.Duration) {
	all := fuzzTargets(t)
	goOn(all, readCampaign(t))
	asked := slices.DeleteFunc(slices.Clone(all), func(f *fuzzTarget) bool {
		return !strings.Contains(f.Dir+" "+f.Name, os.Getenv("FULLPIPE_BANK_CASES"))
	})
	for end := time.Now().Add(budget); ; {
		next := longestWaiting(asked)
		length := fuzzSlice
		if next != nil {
			length = min(length, next.left(), time.Until(end)).Round(time.Second)
		}
		if next == nil || length <= 0 {
			break
		}
		next.At = time.Now().UTC().Round(time.Second)
		executions, err := next.fuzz(t, length)
		if err != nil {
			t.Errorf("%s %s: %v", next.Dir, next.Name, err)
			asked = slices.DeleteFunc(asked, func(f *fuzzTarget) bool { return f == next })
		} else {
			next.Seconds, next.Executions = next.Seconds+length.Seconds(), next.Executions+executions
		}
		t.Logf("%s %s: %v, %d executions; %v left", next.Dir, next.Name, length, executions, next.left())
		writeCampaign(t, all)
	}
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
	return bankRow{Section: "Hostile far ends", Case: "fuzz, every target since its package changed",
		Claim: fmt.Sprintf("none panics or hangs in %.0f minutes, %.0f where no stranger reaches", timeOfReached.Minutes(),
			timeOfUnreached.Minutes()),
		Measured: fmt.Sprintf("%d of %d targets had their time", done, len(all)),
		Spread:   fmt.Sprintf("%.1f hours, %d million executions in all", seconds/3600, executions/1e6),
		Verdict:  byInterval(!failed, failed || done == len(all)), Command: "make bank RUN=TestBankHostile/fuzz"}
}

var executed = regexp.MustCompile(`execs: (\d+)`)

// fuzz fuzzes for so long and answers how many inputs were tried.
func (f *fuzzTarget) fuzz(t *testing.T, length time.Duration) (executions int64, err error) {
	out, err := exec.CommandContext(t.Context(), "go", "test", "-run", "^$", "-fuzz", "^"+f.Name+"$", "-fuzztime",
		length.String(), "../"+f.Dir).CombinedOutput()
	// The Go tool may take its own clock's interruption for a failure, which leaves no input.
	if err != nil && bytes.Contains(out, []byte("context deadline exceeded")) &&
		!bytes.Contains(out, []byte("Failing input written")) {
		err = nil
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	if all := executed.FindAllSubmatch(out, -1); len(all) > 0 {
		executions, err = strconv.ParseInt(string(all[len(all)-1][1]), 10, 64)
	}
	return executions, err
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
	for _, dir := range slices.Sorted(maps.Keys(names)) {
		commit, err := exec.Command("git", "log", "-1", "--format=%h", "--", ":(top,glob)"+dir+"/*.go").Output()
		if err != nil {
			commit = nil // no repository: every slice is the first
		}
		for _, name := range slices.Sorted(slices.Values(names[dir])) {
			all = append(all, &fuzzTarget{Dir: dir, Name: name, Commit: strings.TrimSpace(string(commit))})
		}
	}
	return all
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
	targets := []*fuzzTarget{{Dir: "internal/web", Name: "FuzzA", Commit: "new"},
		{Dir: "internal/web", Name: "FuzzB", Commit: "new"}, {Dir: "internal/units", Name: "FuzzC", Commit: "same"},
		{Dir: "internal/plan", Name: "FuzzD", Commit: "same"}, {Dir: "internal/link", Name: "FuzzNever", Commit: "same"}}
	goOn(targets, []fuzzTarget{
		{Dir: "internal/web", Name: "FuzzA", Commit: "old", Seconds: 600, Executions: 1e6, At: at(5)},
		{Dir: "internal/web", Name: "FuzzB", Commit: "new", Seconds: 480, Executions: 1e6, At: at(3)},
		{Dir: "internal/units", Name: "FuzzC", Commit: "same", Seconds: 120, At: at(1)}, // it had its time
		{Dir: "internal/plan", Name: "FuzzD", Commit: "same", Seconds: 120, At: at(4)},
		{Dir: "internal/gone", Name: "FuzzE", Commit: "same", Seconds: 120, At: at(0)}})
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
