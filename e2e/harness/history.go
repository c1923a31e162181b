//go:build linux

package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// SharedHistory is one history that several programs write, and the results that they reported as kept.
type SharedHistory struct {
	t       *testing.T
	Program string
	Far     string   // the server, as PEER
	Dir     string   // of the local history
	Env     []string // of the programs

	mu       sync.Mutex
	Started  int             // programs that each keep at most one result; guarded by mu
	Reported map[string]bool // IDs of results that were reported as kept; guarded by mu
}

// NewSharedHistory makes an empty history in the store at url, or a local one if url is "", and starts a server to
// measure with.
func NewSharedHistory(t *testing.T, url string) *SharedHistory {
	t.Helper()
	k := &SharedHistory{t: t, Program: Program(t), Dir: t.TempDir(), Reported: map[string]bool{}}
	far, key := StartServe(t, k.Program)
	k.Far = "fullpipe://" + far
	k.Env = append(os.Environ(), "FULLPIPE_HISTORY="+k.Dir, "FULLPIPE_CONFIG=", "FULLPIPE_STORE="+url, "FULLPIPE_KEY="+key)
	return k
}

// Run runs a command line, in which FAR is the server, and kills it after a time unless that is 0. A result counts as
// reported if the program ended by itself and did not report that it was not kept.
func (k *SharedHistory) Run(kill time.Duration, line string) {
	cmd := exec.Command(k.Program, strings.Fields(strings.ReplaceAll(line, "FAR", k.Far))...)
	cmd.Env = k.Env
	var out, errs bytes.Buffer
	cmd.Stdout = &out
	cmd.Stderr = &errs
	if err := cmd.Start(); err != nil {
		k.t.Error(err)
		return
	}
	if kill > 0 {
		defer time.AfterFunc(kill, func() { cmd.Process.Kill() }).Stop()
	}
	err := cmd.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.Started++
	switch status := cmd.ProcessState.Sys().(syscall.WaitStatus); {
	case status.Signaled() && kill > 0:
		return
	case strings.HasPrefix(line, "recheck") && status.ExitStatus() == 1: // it could not ask for the path's past
	case err != nil && status.ExitStatus() != 3: // 3: nothing was gained
		k.t.Errorf("%s: %v: %s", line, err, errs.String())
		return
	}
	var doc struct {
		ID    string
		Tests []struct {
			ID    string `json:"run_id"`
			Error *printed.Failure
		}
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil || strings.Contains(errs.String(), "not kept") {
		k.t.Errorf("%s: %v: %s", line, err, errs.String())
		return
	}
	for _, one := range doc.Tests {
		doc.ID = ""
		if one.Error == nil {
			doc.ID = one.ID
		}
	}
	if doc.ID != "" {
		k.Reported[doc.ID] = true
	}
}

// Runs returns the results in the history by ID and checks that each can be read.
func (k *SharedHistory) Runs() map[string]printed.HistoryRun {
	k.t.Helper()
	ask := func(args ...string) []byte {
		cmd := exec.Command(k.Program, append([]string{"history"}, args...)...)
		cmd.Env = k.Env
		var errs bytes.Buffer
		cmd.Stderr = &errs
		out, err := cmd.Output()
		if err != nil || errs.Len() > 0 {
			k.t.Fatalf("history %v: %v: %s", args, err, errs.String())
		}
		return out
	}
	var all printed.History
	if err := json.Unmarshal(ask("--json", "--limit", "0"), &all); err != nil {
		k.t.Fatal(err)
	}
	runs := map[string]printed.HistoryRun{}
	for _, r := range all.Runs {
		runs[r.ID] = r
	}
	read := bytes.Count(ask("export"), []byte("\n"))
	if len(runs) != len(all.Runs) || read != len(runs) {
		k.t.Errorf("%d results are listed of %d ids, and %d can be read", len(all.Runs), len(runs), read)
	}
	if left, _ := filepath.Glob(filepath.Join(k.Dir, "outbox", "*.result")); len(left) > 0 {
		k.t.Errorf("left in the outbox: %q", left)
	}
	return runs
}

// Check checks that the history has each reported result, and no more results than programs.
func (k *SharedHistory) Check() {
	k.t.Helper()
	runs := k.Runs()
	for id := range k.Reported {
		if _, there := runs[id]; !there {
			k.t.Errorf("%s was said to be kept, and is lost", id)
		}
	}
	if len(runs) > k.Started {
		k.t.Errorf("%d results of %d programs", len(runs), k.Started)
	}
	k.t.Logf("%d programs, %d said that their result is kept, %d are there", k.Started, len(k.Reported), len(runs))
}

// FillHistory adds n made-up results of a path, one an hour: a daily swing, and a lower level after two thirds of
// them.
func FillHistory(t testing.TB, s *store.Store, far string, n int) (newest string) {
	t.Helper()
	end := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	for i := range n {
		at := end.Add(time.Duration(i-n+1) * time.Hour)
		wave := 1 + 0.04*math.Sin(float64(at.Hour())/24*2*math.Pi) + 0.02*math.Sin(float64(i*i%97))
		limiter := verdict.Bottleneck
		level := 92e6
		rtt := 40200 * time.Microsecond
		if i > 2*n/3 {
			limiter = verdict.ReceiverWindow
			level = 41e6
			rtt = 52400 * time.Microsecond
		}
		doc := &printed.Measure{Peer: far, Directions: []printed.Direction{}, Header: printed.Header{
			Schema: "fullpipe/measure/v1", Version: "test", StartedAt: at, Envelope: &printed.Envelope{
				ID:     printed.NewID(at, [10]byte{byte(i), byte(i >> 8), byte(len(far)), far[0], far[len(far)-1]}),
				Origin: printed.Manual, Outcome: printed.Done, PathKey: printed.SeriesID{Far: far}.Key()}}}
		for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
			bps := level * wave
			d := printed.Direction{Direction: direction, GoodputBps: &bps, RTTMin: units.Duration(rtt),
				Streams: []printed.Stream{}}
			bytes := int64(bps / 8)
			resent := int64(i % 50)
			d.Bytes = &bytes
			d.MSSBytes = 1448
			d.RetransmittedSegment = &resent
			d.Limiter = limiter
			d.Confidence = verdict.High
			doc.Directions = append(doc.Directions, d)
		}
		encoded, err := printed.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(context.Background(), encoded, nil); err != nil {
			t.Fatal(err)
		}
		newest = doc.ID
	}
	return newest
}
