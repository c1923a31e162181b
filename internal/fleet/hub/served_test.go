package hub

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestServed_FalseCountIsNoBaseline delivers results of an agent that invents its payload. They are stored, and the
// usual goodput of the path comes from the others.
func TestServed_FalseCountIsNoBaseline(t *testing.T) {
	w := newWorld(t, 2, 1)
	defer w.fleet.Close()
	h := New(Config{Fleet: w.fleet, Orders: w})
	begin := time.Now().Truncate(time.Second)
	lead, err := w.fleet.TakeLead(t.Context(), "one", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	deliver := func(at time.Time, claimed, served int64) (store.Job, *follower) {
		t.Helper()
		job := store.Job{ID: newID(at), Pair: "p", Task: "t", A: "id0", B: "id1", Origin: record.Scheduled, Due: at,
			Late: at.Add(time.Minute)}
		if err := w.fleet.Due(t.Context(), lead, []store.Job{job}, nil); err != nil {
			t.Fatal(err)
		}
		_, err := w.fleet.Grant(t.Context(), lead, at, store.Grant{ID: job.ID, Near: "id0", Lasts: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		h.Served(t.Context(), "id1", bus.Served{V: bus.Version, Run: job.ID, UpBytes: served, DownBytes: served,
			UpNs: time.Second, DownNs: time.Second})
		bps := float64(8 * claimed)
		doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test", StartedAt: at.UTC(),
			Envelope: &record.Envelope{ID: job.ID, TestID: job.ID, Origin: record.Scheduled, Outcome: record.Done,
				PathKey: store.FleetPathKey("t", "id0", "id1")}}, Peer: "a1"}
		for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
			doc.Directions = append(doc.Directions, record.Direction{Direction: direction, GoodputBps: &bps, Bytes: &claimed,
				Streams: []record.Stream{}})
		}
		encoded, err := record.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		if receipt := h.Result(t.Context(), "id0", encoded); !receipt.Stored {
			t.Fatalf("%+v", receipt)
		}
		job, err = w.fleet.Job(t.Context(), job.ID)
		if err != nil {
			t.Fatal(err)
		}
		return job, h.paths["p"]
	}
	for i := range 5 {
		at := begin.Add(time.Duration(2*i) * time.Minute)
		honest, path := deliver(at, 100e6, 100e6)
		if honest.Unconfirmed() != "" || path == nil || !path.last.Equal(at.UTC()) {
			t.Fatalf("an honest result: %q, the path is %+v", honest.Unconfirmed(), path)
		}
		invented, path := deliver(at.Add(time.Minute), 900e6, 100e6)
		if invented.Unconfirmed() != store.CountsDiffer || !path.last.Equal(at.UTC()) {
			t.Errorf("an invented result: %q, the path's newest is of %v", invented.Unconfirmed(), path.last)
		}
	}
}
