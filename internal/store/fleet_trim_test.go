package store

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestFleetTrim_ConstantSize stores the results of 30 days and keeps those of 7: the database has the same size after
// 10 days and after 30.
func TestFleetTrim_ConstantSize(t *testing.T) {
	const keep, runsADay = 7 * 24 * time.Hour, 48
	f := must.Get(OpenFleet(t.Context(), t.TempDir(), ""))(t)
	defer f.Close()
	lead := must.Get(f.TakeLead(t.Context(), "one", 1000*time.Hour))(t)
	rng := rand.New(rand.NewPCG(1, 1))
	sizes := map[int]int64{}
	for day := range 30 {
		for n := range runsADay {
			at := begin.Add(time.Duration(day*runsADay+n) * 24 * time.Hour / runsADay)
			var random [10]byte
			binary.BigEndian.PutUint64(random[:], rng.Uint64())
			job := Job{ID: record.NewID(at, random), Pair: fmt.Sprint("t a b", n), Task: "t", A: "a", B: "b",
				Origin: record.Scheduled, Due: at, Late: at.Add(time.Hour)}
			must.Do(t, f.Due(t.Context(), lead, []Job{job}, nil))
			must.Get(f.Grant(t.Context(), lead, at, Grant{ID: job.ID, Near: "a", Lasts: time.Minute}))(t)
			doc := fleetDocument(t, job.ID, at, 1e9*rng.Float64(), 1e9*rng.Float64())
			if stored := must.Get(f.AddResult(t.Context(), "a", doc, at))(t); stored.State != mesh.Done {
				t.Fatal(stored.State)
			}
			must.Do(t, f.AddEvents(t.Context(), []Event{{Run: job.ID, Sender: "a", Receiver: "b", Metric: "goodput",
				Kind: "dip", Task: "t", At: at}}))
		}
		now := begin.Add(time.Duration(day+1) * 24 * time.Hour)
		for more := true; more; {
			more = must.Get(f.Trim(t.Context(), now, keep))(t)
		}
		tx := must.Get(f.s.db.Begin())(t)
		sizes[day] = must.Get(f.s.usedBytes(t.Context(), tx))(t)
		must.Do(t, tx.Rollback())
	}
	t.Logf("bytes after 7, 10 and 30 days: %d, %d, %d", sizes[6], sizes[9], sizes[29])
	if ratio := float64(sizes[29]) / float64(sizes[9]); ratio < 0.9 || ratio > 1.1 {
		t.Errorf("%d bytes after 10 days, %d after 30", sizes[9], sizes[29])
	}
	if float64(sizes[9]) > 2*float64(sizes[6]) {
		t.Errorf("%d bytes after 7 days, %d after 10", sizes[6], sizes[9])
	}
	runs := must.Get(f.s.List(t.Context(), Filter{Limit: 5000}))(t)
	jobs := must.Get(f.Jobs(t.Context(), JobFilter{Limit: 5000}))(t)
	events := must.Get(f.Events(t.Context(), time.Time{}, 5000))(t)
	for name, n := range map[string]int{"runs": len(runs), "jobs": len(jobs), "events": len(events)} {
		if want := 7 * runsADay; n < want || n > want+runsADay {
			t.Errorf("%d %s, not %d", n, name, want)
		}
	}
}
