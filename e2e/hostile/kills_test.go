//go:build linux

package hostile

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// killsVariable sets how often each command is killed.
const killsVariable = "FULLPIPE_TEST_KILLS"

// killer kills commands at random times within their usual duration.
type killer struct {
	t                 *testing.T
	random            *rand.Rand
	left              int
	took              time.Duration // the newest command that was not killed
	killed, completed int
}

func newKiller(t *testing.T, seed uint64) *killer {
	t.Parallel()
	k := &killer{t: t, random: rand.New(rand.NewPCG(seed, 32)), left: 20}
	if n, err := strconv.Atoi(os.Getenv(killsVariable)); err == nil {
		k.left = n
	}
	t.Cleanup(func() { t.Logf("%d killed, %d completed, the newest within %v", k.killed, k.completed, k.took) })
	return k
}

// whole runs a command to its end and returns its standard output.
func (k *killer) whole(cmd *exec.Cmd, status int) string {
	k.t.Helper()
	var out, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &says
	begun := time.Now()
	if err := cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != status {
		k.t.Fatalf("%q: %v: %s%s", cmd.Args[1:], err, &out, &says)
	}
	k.took = time.Since(begun)
	return out.String()
}

// once runs a command and kills it at some time. It reports whether the command completed before.
func (k *killer) once(cmd *exec.Cmd, statuses ...int) (out string, completed bool) {
	k.t.Helper()
	var printed, says bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &says
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	begun := time.Now()
	timer := time.AfterFunc(time.Duration(k.random.Int64N(int64(k.took)*3/2)), func() { cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	switch code := cmd.ProcessState.ExitCode(); {
	case code == -1:
		k.killed++
		k.left--
	case slices.Contains(statuses, code):
		k.completed++
		k.took, completed = time.Since(begun), true
	default:
		k.t.Fatalf("%q: %v: %s%s", cmd.Args[1:], err, &printed, &says)
	}
	return printed.String(), completed
}

// TestKills_KeyRotate checks that a killed rotation loses no key that is still valid, and that a printed key is in
// the file.
func TestKills_KeyRotate(t *testing.T) {
	k := newKiller(t, 1)
	file := filepath.Join(t.TempDir(), "keys.toml")
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), harness.Program(t), append([]string{"key", "--keys", file}, args...)...)
		cmd.Env = append(os.Environ(), "FULLPIPE_KEY=", "FULLPIPE_CONFIG=")
		return cmd
	}
	secret := regexp.MustCompile(`[0-9a-f]{64}`)
	secrets := func() []string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return secret.FindAllString(string(text), -1)
	}
	for _, args := range [][]string{{"new", "other"}, {"new", "office"}, {"rotate", "office"}} {
		k.whole(command(args...), 0)
	}
	for known := secrets(); k.left > 0; {
		out, completed := k.once(command("rotate", "office"), 0)
		now := secrets()
		for _, s := range append(known, secret.FindAllString(out, -1)...) {
			if !slices.Contains(now, s) {
				t.Fatalf("a key is lost: %d keys, %d before, printed %q", len(now), len(known), out)
			}
		}
		if added := len(now) - len(known); added > 1 || completed && added != 1 {
			t.Fatalf("completed %v: %d keys, %d before", completed, len(now), len(known))
		}
		known = now
	}
	k.whole(command("rotate", "office"), 0)
	k.whole(command("show"), 0)
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("in addition to the keys: %v, %v", left, err)
	}
}

// TestKills_History checks that a killed import or forget loses no other result, and leaves its own whole or not at
// all.
func TestKills_History(t *testing.T) {
	k := newKiller(t, 2)
	dir, files := t.TempDir(), t.TempDir()
	text, err := os.ReadFile("../../internal/cli/testdata/series_v1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), harness.Program(t), append([]string{"history"}, args...)...)
		cmd.Env = append(os.Environ(), "FULLPIPE_STORE=", "FULLPIPE_HISTORY="+dir, "FULLPIPE_CONFIG=")
		return cmd
	}
	documents := map[string]string{} // files by id
	for line := range strings.Lines(string(text)) {
		doc, err := printed.Decode([]byte(line), nil)
		if err != nil {
			t.Fatal(err)
		}
		id := doc.Head().ID
		documents[id] = filepath.Join(files, id)
		if err := os.WriteFile(documents[id], []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
		k.whole(command("import", documents[id]), 0)
	}
	ids := slices.Sorted(maps.Keys(documents))
	for known := keptIn(t, dir); k.left > 0; {
		id := ids[k.random.IntN(len(ids))]
		args, wants := []string{"import", documents[id]}, true
		if known[id] {
			args, wants = []string{"forget", id}, false
		}
		_, completed := k.once(command(args...), 0)
		now := keptIn(t, dir)
		for _, other := range ids {
			if other != id && now[other] != known[other] || other == id && completed && now[id] != wants {
				t.Fatalf("%q, completed %v: %s was there %v, is there %v", args, completed, other, known[other], now[other])
			}
		}
		known = now
	}
}

// keptIn returns the IDs of a history's results, and checks that each has a document that can be decoded.
func keptIn(t *testing.T, dir string) map[string]bool {
	t.Helper()
	s, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runs, err := s.List(t.Context(), store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]bool{}
	for _, r := range runs {
		text, _, err := s.Get(t.Context(), r.ID)
		if err == nil {
			_, err = printed.Decode(text, nil)
		}
		if err != nil {
			t.Fatalf("%s: %v", r.ID, err)
		}
		kept[r.ID] = true
	}
	return kept
}

// TestKills_Recheck checks that a killed recheck loses no result, adds at most its own, and does not block later
// ones.
func TestKills_Recheck(t *testing.T) {
	k := newKiller(t, 3)
	s, dir := newSite(t), t.TempDir()
	command := func() *exec.Cmd { return recheckCommand(t, s, s.address, dir, "--day-bytes", "0", "--day-time", "0s") }
	k.whole(command(), 0)
	for known := keptIn(t, dir); k.left > 0; {
		_, completed := k.once(command(), 0, 1) // 1: something changed
		now := keptIn(t, dir)
		for id := range known {
			if !now[id] {
				t.Fatalf("%s is lost: %d results, %d before", id, len(now), len(known))
			}
		}
		if added := len(now) - len(known); added > 1 || completed && added != 1 {
			t.Fatalf("completed %v: %d results, %d before", completed, len(now), len(known))
		}
		known = now
	}
	// The last one is waited for until its result is kept: it may go on with further tests, minutes later.
	before, last := len(keptIn(t, dir)), command()
	harness.StartCommand(t, last)
	for deadline := time.Now().Add(time.Minute); len(keptIn(t, dir)) == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no test within a minute after %d killed ones", k.killed)
		}
	}
}

// TestKills_Hook checks that recheck reports an event that an earlier, killed recheck did not report.
func TestKills_Hook(t *testing.T) {
	k := newKiller(t, 4)
	s := newSite(t)
	past, address := unreportedEvent(t, s)
	hook := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho \"$FULLPIPE_EVENT\" >>\"$EVENTS\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	const refused = 1 // the far end is gone
	visit := func(do func(command func() *exec.Cmd)) (events []string) {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "history")
		if err := os.CopyFS(dir, os.DirFS(past)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "reported")
		do(func() *exec.Cmd {
			cmd := recheckCommand(t, s, address, dir, "--on-change", hook, "--day-bytes", "0", "--day-time", "0s")
			cmd.Env = append(cmd.Env, "EVENTS="+file)
			return cmd
		})
		text, err := os.ReadFile(file)
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(text))
	}
	if events := visit(func(command func() *exec.Cmd) { k.whole(command(), refused) }); len(events) != 1 {
		t.Fatalf("events %q", events)
	}
	for k.left > 0 {
		completed := false
		events := visit(func(command func() *exec.Cmd) {
			_, completed = k.once(command(), refused)
			k.whole(command(), refused)
		})
		if len(events) == 0 || len(events) > 2 || completed && len(events) != 1 {
			t.Fatalf("completed %v: events %q", completed, events)
		}
	}
}
