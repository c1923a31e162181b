package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// bothFleets runs a test on a new fleet in a file and on one in PostgreSQL. at opens it once more, as another hub does.
func bothFleets(t *testing.T, test func(t *testing.T, at func() *Fleet)) {
	run := func(name string, url func(*testing.T) string) {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			to := url(t)
			test(t, func() *Fleet {
				f, err := OpenFleet(t.Context(), dir, to)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { f.Close() })
				return f
			})
		})
	}
	run("sqlite", func(*testing.T) string { return "" })
	run("postgres", func(t *testing.T) string { return pgtest.Shared(t).URL(t) })
}

const leadTime = 300 * time.Millisecond

func TestFleet_OneHubLeads(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		first := at()
		second := at()
		lead, err := first.TakeLead(t.Context(), "one", time.Hour)
		if err != nil || lead.Epoch < time.Now().Add(-time.Hour).UnixMicro() {
			t.Fatalf("lead %+v, %v", lead, err)
		}
		if _, err := second.TakeLead(t.Context(), "two", time.Hour); !errors.Is(err, ErrNotLeading) {
			t.Errorf("a second hub leads: %v", err)
		}
		again, err := first.TakeLead(t.Context(), "one", leadTime)
		if err != nil || again != lead {
			t.Errorf("renewed: %+v, %v", again, err)
		}
		deadline := time.Now().Add(10 * time.Second)
		var taken Lead
		for {
			taken, err = second.TakeLead(t.Context(), "two", time.Hour)
			if err == nil {
				if taken.Epoch <= lead.Epoch {
					t.Errorf("epoch %d after the first expired, which had %d", taken.Epoch, lead.Epoch)
				}
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		must.Do(t, first.Due(t.Context(), taken, nil, nil))
		err = first.Due(t.Context(), lead, []Job{{ID: "x", Origin: record.Scheduled}}, nil)
		if !errors.Is(err, ErrNotLeading) {
			t.Errorf("the old hub adds jobs: %v", err)
		}
	})
}

// fleetDocument returns the document of a run of task t from a to b, with up at a rate.
func fleetDocument(t *testing.T, id string, at time.Time, upBps, downBps float64) []byte {
	t.Helper()
	return documentOf(t, id, FleetPathKey("t", "a", "b"), at, upBps, downBps)
}

func documentOf(t *testing.T, id, path string, at time.Time, upBps, downBps float64) []byte {
	t.Helper()
	up := record.Direction{Direction: "up", GoodputBps: &upBps, Streams: []record.Stream{}}
	up.Limiter = "receiver-window"
	up.LostAt = []record.LostAt{{Place: "firewall", Side: record.ReceiverHost}, {Place: record.NotLost},
		{Place: record.BetweenHosts}, {Place: "firewall", Side: record.ReceiverHost}, {Place: record.Elsewhere}}
	down := record.Direction{Direction: "down", GoodputBps: &downBps, Streams: []record.Stream{}}
	down.Limiter = "bottleneck"
	doc, err := record.Encode(&record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test",
		StartedAt: at, Envelope: &record.Envelope{ID: id, TestID: id, Origin: record.Scheduled, Outcome: record.Done,
			PathKey: path}}, Peer: "b", Directions: []record.Direction{up, down}})
	must.Do(t, err)
	return doc
}

// granted returns a fleet with one job that is granted to an agent, and the job's ID.
func granted(t *testing.T, f *Fleet, near string) (id string, lead Lead) {
	t.Helper()
	lead, err := f.TakeLead(t.Context(), "one", time.Hour)
	must.Do(t, err)
	id = record.NewID(begin, [10]byte{1})
	job := Job{ID: id, Pair: "t a b", Task: "t", A: "a", B: "b", Origin: record.Scheduled, Due: begin,
		Late: begin.Add(time.Minute)}
	must.Do(t, f.Due(t.Context(), lead, []Job{job}, map[string]time.Time{"t a b": begin.Add(time.Hour)}))
	granted, err := f.Grant(t.Context(), lead, begin, Grant{ID: id, Near: near, Lasts: time.Minute})
	if err != nil || !granted[id] {
		t.Fatalf("granted %v, %v", granted, err)
	}
	return id, lead
}

func TestFleet_OpensDuringAWrite(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		writer := at()
		tx, err := writer.s.db.BeginTx(t.Context(), nil)
		must.Do(t, err)
		defer tx.Rollback()
		if _, err := tx.ExecContext(t.Context(), "UPDATE hub SET holder = 'one'"); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		reader := at()
		if _, err := reader.Agents(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > wait/2 {
			t.Errorf("a reader waited %v for the writer", took)
		}
	})
}

func TestFleet_ResultIsStoredOnce(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		id, lead := granted(t, f, "b")
		again, err := f.Grant(t.Context(), lead, begin, Grant{ID: id, Near: "a", Lasts: time.Minute})
		if again[id] || err != nil {
			t.Errorf("granted twice: %v, %v", again, err)
		}
		doc := documentOf(t, id, FleetPathKey("t", "b", "a"), begin, 1e6, 2e6)
		if _, err := f.AddResult(t.Context(), "a", doc, begin); !errors.Is(err, ErrNotAsked) {
			t.Errorf("the other agent's result: %v", err)
		}
		var stored atomic.Int32
		var wait sync.WaitGroup
		for range 16 {
			wait.Go(func() {
				if job, err := f.AddResult(t.Context(), "b", doc, begin); err == nil && job.State == mesh.Done {
					stored.Add(1)
				} else {
					t.Errorf("%v %v", job.State, err)
				}
			})
		}
		wait.Wait()
		runs, err := f.Store().List(t.Context(), Filter{})
		if err != nil || len(runs) != 1 || stored.Load() != 16 {
			t.Errorf("%d runs, %d of 16 deliveries confirmed, %v", len(runs), stored.Load(), err)
		}
		cells, err := f.Grid(t.Context(), "t")
		must.Do(t, err)
		if len(cells) != 2 || *cells[0].GoodputBps != 2e6 || cells[0].Sender != "a" || *cells[1].GoodputBps != 1e6 ||
			cells[1].Limiter != "receiver-window" {
			t.Errorf("up is not the direction in which b sends: %+v", cells)
		}
		places := []string{"receiver-host/firewall", "between-hosts"}
		if !slices.Equal(cells[1].LostAt, places) || cells[0].LostAt != nil {
			t.Errorf("places of loss: %v, %v", cells[0].LostAt, cells[1].LostAt)
		}
		jobs := must.Get(f.Jobs(t.Context(), JobFilter{}))(t)
		figures := must.Get(f.Figures(t.Context(), jobs))(t)[id]
		if len(figures) != 2 || !slices.Equal(figures[0].LostAt, places) || figures[1].LostAt != nil ||
			!slices.Equal(runs[0].Directions[0].LostAt, places) {
			t.Errorf("places of loss of the run: %+v, %+v", figures, runs[0].Directions)
		}
	})
}

func TestFleet_ResultThatNobodyOrdered(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		id, _ := granted(t, f, "b")
		for name, doc := range map[string][]byte{
			"unknown run":        fleetDocument(t, record.NewID(begin, [10]byte{9}), begin, 1, 1),
			"garbage":            []byte("{"),
			"negative":           documentOf(t, id, FleetPathKey("t", "b", "a"), begin, -1, 1),
			"another path":       documentOf(t, id, FleetPathKey("t", "c", "a"), begin, 1, 1),
			"another task":       documentOf(t, id, FleetPathKey("u", "b", "a"), begin, 1, 1),
			"a path of no fleet": documentOf(t, id, record.SeriesID{Far: "b"}.Key(), begin, 1, 1),
		} {
			var refused *RefusedError
			if _, err := f.AddResult(t.Context(), "b", doc, begin); !errors.As(err, &refused) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestFleet_LateResult(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		id, _ := granted(t, f, "a")
		must.Do(t, f.Finish(t.Context(), map[string]End{id: {State: mesh.Lost, Reason: mesh.NoResult}},
			begin.Add(time.Hour)))
		cells, err := f.Grid(t.Context(), "")
		if err != nil || len(cells) != 2 || cells[0].State != mesh.Lost || cells[0].GoodputBps != nil {
			t.Errorf("after it was lost: %+v, %v", cells, err)
		}
		job, err := f.AddResult(t.Context(), "a", fleetDocument(t, id, begin, 5, 6), begin.Add(48*time.Hour))
		if err != nil || job.State != mesh.Done {
			t.Errorf("two days later: %s, %v", job.State, err)
		}
		stored, err := f.Job(t.Context(), id)
		if err != nil || stored.State != mesh.Done || stored.Reason != "" {
			t.Errorf("the job: %+v, %v", stored, err)
		}
		must.Do(t, f.Finish(t.Context(), map[string]End{id: {State: mesh.Lost}}, begin)) // changes nothing now
		if stored, _ = f.Job(t.Context(), id); stored.State != mesh.Done {
			t.Errorf("a job that is done became %s", stored.State)
		}
	})
}

// TestFleet_InterruptedTwice delivers a document of an interrupted run twice: it is stored once, and not refused.
func TestFleet_InterruptedTwice(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		id, _ := granted(t, f, "a")
		doc := bytes.Replace(fleetDocument(t, id, begin, 5, 6), []byte(record.Done), []byte(record.Interrupted), 1)
		for range 2 {
			job, err := f.AddResult(t.Context(), "a", doc, begin)
			if err != nil || job.State != mesh.Failed || job.Reason != mesh.Interrupted {
				t.Errorf("%s %s, %v", job.State, job.Reason, err)
			}
		}
		runs, err := f.Store().List(t.Context(), Filter{})
		if err != nil || len(runs) != 1 {
			t.Errorf("%d are stored, %v", len(runs), err)
		}
	})
}

func TestFleet_ClockOff(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		id, _ := granted(t, f, "a")
		_, err := f.AddResult(t.Context(), "a", fleetDocument(t, id, begin.Add(3*time.Hour), 5, 6), begin)
		must.Do(t, err)
		runs, err := f.Store().List(t.Context(), Filter{})
		if err != nil || len(runs) != 1 || !runs[0].StartedAt.Equal(begin) || runs[0].Labels["clock_off"] != "3h0m0s" {
			t.Errorf("%+v, %v", runs, err)
		}
	})
}

func TestFleet_Enrol(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		must.Do(t, f.AddEnrolment(t.Context(), Enrolment{Hash: "h", Uses: 2, Until: begin.Add(time.Hour),
			Networks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Labels: map[string]string{"site": "x"}}, begin))
		inside := netip.MustParseAddr("10.1.2.3")
		join := func(hash, key, name string, from netip.Addr, now time.Time) (Agent, error) {
			return f.Enrol(t.Context(), hash, Agent{ID: "id" + key, Name: name, NKey: key,
				Labels: map[string]string{"site": "mine", "rack": "1"}}, from, now)
		}
		for name, err := range map[string]error{
			"unknown secret":  second(join("other", "k", "n", inside, begin)),
			"another network": second(join("h", "k", "n", netip.MustParseAddr("192.0.2.1"), begin)),
			"expired":         second(join("h", "k", "n", inside, begin.Add(time.Hour))),
		} {
			if !errors.Is(err, ErrEnrolment) {
				t.Errorf("%s: %v", name, err)
			}
		}
		a, err := join("h", "k1", "web", inside, begin)
		if err != nil || a.Name != "web" || a.Labels["site"] != "x" || a.Labels["rack"] != "1" {
			t.Errorf("%+v, %v", a, err)
		}
		if same, err := join("h", "k1", "web", inside, begin); err != nil || same.ID != a.ID {
			t.Errorf("joined again: %+v, %v", same, err)
		}
		b, err := join("h", "k2", "web", inside, begin)
		if err != nil || b.Name != "web-2" {
			t.Errorf("%+v, %v", b, err)
		}
		if _, err := join("h", "k3", "web", inside, begin); !errors.Is(err, ErrEnrolment) {
			t.Errorf("a third use of two: %v", err)
		}
		must.Do(t, f.RemoveAgent(t.Context(), a.ID, begin))
		if _, err := f.AgentByKey(t.Context(), "k1"); !errors.Is(err, ErrNotFound) {
			t.Errorf("a removed agent: %v", err)
		}
		if _, err := join("h", "k1", "web", inside, begin); !errors.Is(err, ErrEnrolment) {
			t.Errorf("a removed key joins again: %v", err)
		}
		must.Do(t, f.Rename(t.Context(), b.ID, "web")) // its name is free again
		must.Do(t, f.Saw(t.Context(), b.ID, json.RawMessage(`{"version":"1"}`), time.Second, begin))
		all, err := f.Agents(t.Context())
		if err != nil || len(all) != 1 {
			t.Fatalf("%+v, %v", all, err)
		}
		if only := all[0]; only.Name != "web" || only.ClockOff != time.Second || !only.Seen.Equal(begin) {
			t.Errorf("%+v", only)
		}
	})
}

func second[A, B any](_ A, b B) B { return b }

func TestFleet_MeshEventsAccounts(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		if _, err := f.SetMesh(t.Context(), "[task.x]", "me", begin); err == nil {
			t.Error("a mesh file with a fault is stored")
		}
		good := "[task.x]\nbetween = [\"*\"]\nevery = \"1h\""
		for want := int64(1); want <= 2; want++ {
			if v, err := f.SetMesh(t.Context(), good, "me", begin); err != nil || v != want {
				t.Errorf("version %d, %v", v, err)
			}
		}
		if text, v, err := f.Mesh(t.Context()); err != nil || text != good || v != 2 {
			t.Errorf("%q %d %v", text, v, err)
		}
		e := Event{Run: "r", Task: "t", Sender: "a", Receiver: "b", Metric: "goodput", Kind: "dip", At: begin,
			Old: "1", New: "2"}
		must.Do(t, f.AddEvents(t.Context(), []Event{e, e}))
		events, err := f.Events(t.Context(), time.Time{}, 10)
		if err != nil || len(events) != 1 || events[0] != e {
			t.Errorf("%+v %v", events, err)
		}
		must.Do(t, f.SetAccount(t.Context(), Account{"ann", "viewer", "t1"}))
		must.Do(t, f.SetAccount(t.Context(), Account{"ann", "admin", "t2"}))
		accounts, err := f.Accounts(t.Context())
		if err != nil || len(accounts) != 1 || accounts[0].Role != "admin" {
			t.Errorf("%+v %v", accounts, err)
		}
		must.Do(t, f.Audit(t.Context(), AuditEntry{ID: "1", At: begin, By: "ann", Action: "mesh"}))
		if log, err := f.AuditLog(t.Context(), 5); err != nil || len(log) != 1 || log[0].By != "ann" {
			t.Errorf("%+v %v", log, err)
		}
		id, _ := granted(t, f, "a")
		taken := End{State: mesh.Skipped, Reason: mesh.HostTaken, Detail: "run"}
		must.Do(t, f.Finish(t.Context(), map[string]End{id: taken}, begin))
		counts, err := f.CountJobs(t.Context(), time.Time{})
		if err != nil || counts[End{State: mesh.Skipped, Reason: mesh.HostTaken}] != 1 {
			t.Errorf("%v %v", counts, err)
		}
		must.Do(t, f.TrimJobs(t.Context(), begin.Add(time.Hour)))
		if jobs, err := f.Jobs(t.Context(), JobFilter{}); err != nil || len(jobs) != 0 {
			t.Errorf("%v %v", jobs, err)
		}
	})
}

// TestFleet_RestoredBackup lets hubs lead after a backup, and then one on the restored copy. The copy is for its owner
// alone, replaces nothing, and is another database whose hub leads at once and recognizes the leads of the first.
func TestFleet_RestoredBackup(t *testing.T) {
	lost, err := OpenFleet(t.Context(), t.TempDir(), "")
	must.Do(t, err)
	defer lost.Close()
	restored := t.TempDir()
	backup := filepath.Join(restored, filepath.Base(lost.s.path))
	first, err := lost.TakeLead(t.Context(), "hub", time.Hour)
	must.Do(t, err)
	must.Do(t, lost.Backup(t.Context(), backup))
	info, err := os.Stat(backup)
	must.Do(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v", info.Mode())
	}
	if err := lost.Backup(t.Context(), backup); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a backup over another: %v", err)
	}
	ahead := time.Now().Add(1000 * time.Hour) // of the first hub's clock
	_, err = lost.s.db.ExecContext(t.Context(), "UPDATE hub SET epoch = $1", ahead.UnixMicro())
	must.Do(t, err)
	seen, err := lost.TakeLead(t.Context(), "hub", time.Hour)
	must.Do(t, err)
	if seen.Database != first.Database || seen.Epoch <= first.Epoch {
		t.Errorf("one database: %+v after %+v", seen, first)
	}
	again, err := OpenFleet(t.Context(), restored, "")
	must.Do(t, err)
	defer again.Close()
	lead, err := again.TakeLead(t.Context(), "new hub", time.Hour)
	must.Do(t, err)
	if lead.Database == seen.Database || lead.Database == "" {
		t.Errorf("the copy has the identity %q", lead.Database)
	}
	proof := seen.Proof(seen.Database, seen.Epoch)
	if !lead.Proves(seen.Database, seen.Epoch, proof) || lead.Proves(seen.Database, seen.Epoch+1, proof) ||
		lead.Proves(lead.Database, seen.Epoch, proof) || (Lead{}).Proves(seen.Database, seen.Epoch, proof) {
		t.Error("a proof is of one lead, on all copies")
	}
	passed, err := again.Above(t.Context(), lead, seen.Epoch)
	must.Do(t, err)
	if passed.Epoch != seen.Epoch+1 || passed.Database == lead.Database {
		t.Errorf("%+v above %+v", passed, seen)
	}
	if now, err := again.TakeLead(t.Context(), "new hub", time.Hour); err != nil || now != passed {
		t.Errorf("renewed: %+v, %v; want %+v", now, err, passed)
	}
	if _, err := again.Above(t.Context(), lead, seen.Epoch); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a lead that is over: %v", err)
	}
}

// TestFleet_ResultsAfterAClockWasSetBack stores results of a clock that is a year and an hour ahead, then of the right
// one: grid, runs and events show the new ones first. A late result of before changes nothing.
func TestFleet_ResultsAfterAClockWasSetBack(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		bothFleets(t, func(t *testing.T, at func() *Fleet) {
			f := at()
			lead, err := f.TakeLead(t.Context(), "one", 100*time.Hour)
			must.Do(t, err)
			now := time.Now().UTC()
			granted := func(seed byte, at time.Time) (id string) {
				id = record.NewID(at, [10]byte{seed})
				must.Do(t, f.Due(t.Context(), lead, []Job{{ID: id, Pair: "t a b", Task: "t", A: "a", B: "b",
					Origin: record.Scheduled, Due: at, Late: at.Add(time.Minute)}}, nil))
				_, err := f.Grant(t.Context(), lead, at, Grant{ID: id, Near: "a", Lasts: time.Minute})
				must.Do(t, err)
				return id
			}
			deliver := func(id string, started, delivered time.Time) {
				_, err := f.AddResult(t.Context(), "a", fleetDocument(t, id, started, 5, 6), delivered)
				must.Do(t, err)
				must.Do(t, f.AddEvents(t.Context(), []Event{{Run: id, Sender: "a", Receiver: "b",
					Metric: "goodput", At: delivered}}))
			}
			old := granted(1, now.Add(ahead))
			deliver(old, now.Add(ahead), now.Add(ahead+time.Second))
			late := granted(2, now.Add(-time.Minute))
			after := granted(3, now)
			deliver(after, now, now.Add(time.Second))
			deliver(late, now.Add(-time.Minute), now.Add(2*time.Second))
			cells, err := f.Grid(t.Context(), "")
			if err != nil || len(cells) != 2 || cells[0].Measured != after || cells[1].Run != after {
				t.Errorf("%v: the grid shows %+v, %v", ahead, cells, err)
			}
			jobs, err := f.Jobs(t.Context(), JobFilter{})
			if err != nil || len(jobs) != 3 || jobs[0].ID != after || jobs[1].ID != late || jobs[2].ID != old {
				t.Errorf("%v: runs %+v, %v", ahead, jobs, err)
			}
			jobs, err = f.Jobs(t.Context(), JobFilter{Pair: "t a b", Limit: 1})
			if err != nil || len(jobs) != 1 || jobs[0].ID != after {
				t.Errorf("%v: the newest run %+v, %v", ahead, jobs, err)
			}
			events, err := f.Events(t.Context(), time.Time{}, 10)
			if err != nil || len(events) != 3 || events[2].Run != old {
				t.Errorf("%v: events %+v, %v", ahead, events, err)
			}
			must.Do(t, f.Finish(t.Context(), map[string]End{granted(4, now.Add(time.Second)): {State: mesh.Skipped}},
				now.Add(2*time.Second)))
			cells, err = f.Grid(t.Context(), "")
			if err != nil || cells[0].State != mesh.Skipped {
				t.Errorf("%v: after a skipped run %+v, %v", ahead, cells, err)
			}
		})
	}
}

// TestFleet_ClockSetBack checks that a lease whose end is far away is over: its hub had another clock.
func TestFleet_ClockSetBack(t *testing.T) {
	bothFleets(t, func(t *testing.T, at func() *Fleet) {
		f := at()
		_, err := f.TakeLead(t.Context(), "one", 1000*time.Hour)
		must.Do(t, err)
		if _, err := f.TakeLead(t.Context(), "two", time.Hour); err != nil {
			t.Error(err)
		}
		if _, err := f.TakeLead(t.Context(), "three", time.Hour); !errors.Is(err, ErrNotLeading) {
			t.Errorf("a lease that is not over: %v", err)
		}
	})
}
