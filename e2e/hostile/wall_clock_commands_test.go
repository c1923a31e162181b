//go:build linux && amd64

package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// TestWatchWhileTheClockIsSet checks that bytes and durations are the same as without a change of the clock.
func TestWatchWhileTheClockIsSet(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	out := harness.RunWatched(t, "rate=20mbit,rtt=20ms", "drain", "pour", `CLIENT & client=$!
moving
cat /proc/uptime
env `+harness.ProgramVariable+`=wall-clock $SELF $F watch --for 5s --every 1s --port 7000 --json
cat /proc/uptime
kill $client`, "SELF="+self)
	took := time.Since(began).Seconds()
	var doc printed.Watch
	var before, after, idle float64 // seconds
	read := json.NewDecoder(bytes.NewReader(out))
	for _, into := range []any{&before, &idle, &doc, &after, &idle} {
		if err := read.Decode(into); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if len(doc.Connections) != 1 || len(doc.Connections[0].Directions) != 1 {
		t.Fatalf("%s", out)
	}
	const tick = 0.01 // of /proc/uptime, s
	c := doc.Connections[0]
	watched, d := after-before, c.Directions[0]
	if watched < 5-tick || doc.LengthS <= 0 || doc.LengthS > doc.AtS || doc.AtS > watched+tick ||
		c.FollowedS < doc.LengthS || c.FollowedS > doc.AtS || len(doc.PathChanges) > 0 {
		t.Errorf("5 s took %.2f s; it says %.3f s, %.3f s of them watched, followed for %.3f s: %s", watched, doc.AtS,
			doc.LengthS, c.FollowedS, out)
	}
	// The link carries no more than its rate since it began.
	sum := 0.0
	for _, share := range d.Shares {
		sum += share
	}
	bps := float64(d.Bytes) * 8 / doc.LengthS
	if d.Bytes <= 0 || float64(d.Bytes) > clockRate/8*took || math.Abs(d.GoodputBps/bps-1) > 1e-6 ||
		math.Abs(sum-1) > 1e-3 {
		t.Errorf("%d bytes are %.3f Mbit/s, shares of %.4f", d.Bytes, d.GoodputBps/1e6, sum)
	}
}

// TestHistory_ClockSetBack checks that a clock that is set back by 400 days costs no result, and that recheck tests
// once.
func TestHistory_ClockSetBack(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s, dir := newSite(t), t.TempDir()
	back := func(cmd *exec.Cmd) *exec.Cmd {
		set := exec.CommandContext(t.Context(), self, cmd.Args...)
		set.Env = append(cmd.Env, harness.ProgramVariable+"=wall-clock", wallClockVariable+"=-9600h")
		return set
	}
	asIs := func(cmd *exec.Cmd) *exec.Cmd { return cmd }
	var first time.Time
	for i, clock := range []func(*exec.Cmd) *exec.Cmd{asIs, asIs, back, back, asIs} {
		doc, notes, status := recheckOnce(t, clock(recheckCommand(t, s, s.address, dir, "--day-bytes", "0",
			"--day-time", "0s")))
		if status != 0 || len(doc.Tests) != 1 || doc.Tests[0].RunID == "" || len(doc.Events) != 0 {
			t.Fatalf("visit %d: status %d, %+v, %s", i, status, doc, notes)
		}
		if i == 0 {
			first = doc.Tests[0].At
		}
		if set := doc.Tests[0].At.Before(first); set != (i == 2 || i == 3) {
			t.Errorf("visit %d: at %v, the first at %v", i, doc.Tests[0].At, first)
		}
		list := recheckCommand(t, s, s.address, dir)
		list.Args = []string{list.Path, "history", "--json"}
		out, err := clock(list).Output()
		var kept printed.History
		if err := errors.Join(err, json.Unmarshal(out, &kept)); err != nil || len(kept.Runs) != i+1 {
			t.Errorf("after visit %d: %d runs, %v", i, len(kept.Runs), err)
		}
	}
}

// TestUI_ClockIsSet checks that a session stays open while the clock jumps by hours and months, and that no jump
// gives a guesser of tokens more attempts.
func TestUI_ClockIsSet(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ui := exec.Command(self, harness.Program(t), "ui", "--no-open", "--json")
	ui.Env = append(os.Environ(), harness.ProgramVariable+"=wall-clock", "FULLPIPE_HISTORY="+t.TempDir(),
		"FULLPIPE_STORE=", "FULLPIPE_CONFIG=")
	out, err := ui.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	harness.StartCommand(t, ui)
	var ready struct{ Address, URL string }
	if err := json.NewDecoder(out).Decode(&ready); err != nil {
		t.Fatal(err)
	}
	jar, _ := cookiejar.New(nil) // without options it does not fail
	user := &http.Client{Jar: jar}
	page, err := user.Get(ready.URL)
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	if len(page.Cookies()) != 1 {
		t.Fatalf("%s with the cookies %v", page.Status, page.Cookies())
	}
	session := ready.Address + strings.TrimPrefix(page.Cookies()[0].Path, "/")
	began, guesses, ahead, behind := time.Now(), 0, false, false
	for tries := 0; tries < 15 || !ahead || !behind; tries++ {
		time.Sleep(20 * time.Millisecond)
		answer, err := user.Get(session + "api/v1/paths")
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			StartedAt time.Time `json:"started_at"`
		}
		err = json.NewDecoder(answer.Body).Decode(&doc)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("the session is answered %s, %v", answer.Status, err)
		}
		ahead = ahead || doc.StartedAt.After(began.AddDate(0, 6, 0))
		behind = behind || doc.StartedAt.Before(began.AddDate(0, 0, -20))
		guess, err := http.NewRequestWithContext(t.Context(), http.MethodGet, ready.Address+"api/v1/paths", nil)
		if err != nil {
			t.Fatal(err)
		}
		guess.Header.Set("Authorization", "Bearer guessed")
		answer, err = http.DefaultClient.Do(guess)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode == http.StatusUnauthorized {
			guesses++
		}
	}
	if most := 11 + int(time.Since(began)/(6*time.Second)); guesses < 10 || guesses > most {
		t.Errorf("%d guesses were tried within %v, at most %d may be", guesses, time.Since(began), most)
	}
}
