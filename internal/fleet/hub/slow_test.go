package hub

import (
	"context"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// TestStep_SlowStore checks that agents get replies while a step waits for the store.
func TestStep_SlowStore(t *testing.T) {
	t.Parallel()
	h, _, slow := slowHub(t)
	if err := h.refreshMembers(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	g := &run{near: "anna", failed: make(chan bus.Failed, 1)}
	h.runs["r"] = g
	slow()
	ctx, cancel := context.WithCancel(t.Context())
	stepped := make(chan error, 1)
	go func() {
		_, err := h.step(ctx, time.Now())
		stepped <- err
	}()
	began := time.Now()
	for time.Since(began) < 200*time.Millisecond { // the step waits by then, and goes on waiting
		h.Here(ctx, "anna", bus.Here{V: bus.Version})
		if receipt := h.Failed("anna", bus.Failed{Run: "r", Reason: mesh.FarError}); !receipt.Stored {
			t.Fatalf("%+v", receipt)
		}
		time.Sleep(10 * time.Millisecond)
	}
	select {
	case err := <-stepped:
		t.Errorf("the step did not wait: %v", err)
	default:
	}
	cancel()
	if err := <-stepped; err == nil {
		t.Error("the step has ended without its store and without an error")
	}
}

// leadingHub returns a hub that leads two agents with one pair.
func leadingHub(t *testing.T) (h *Hub, w *world, key string) {
	t.Helper()
	w = newWorld(t, 2, 1)
	t.Cleanup(func() { w.fleet.Close() })
	h = New(Config{Fleet: w.fleet, Orders: w, Lease: time.Hour})
	if err := h.renew(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	for key = range h.pairs {
	}
	if len(h.pairs) != 1 {
		t.Fatalf("%d pairs", len(h.pairs))
	}
	return h, w, key
}

func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestDue_StoreFails checks that a scheduled run and a repetition are due again when the store did not take them.
func TestDue_StoreFails(t *testing.T) {
	t.Parallel()
	h, w, key := leadingHub(t)
	now := time.Now()
	p := h.pairs[key]
	p.next = now.Add(-2 * time.Second)
	h.dues.add(p.next, key)
	h.setTest(key, now.Add(-time.Second))
	if err := h.due(ended(), now); err == nil {
		t.Fatal("the store did not fail")
	}
	if err := h.due(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	jobs, err := w.fleet.OpenJobs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	origins := map[record.Origin]int{}
	for _, j := range jobs {
		origins[j.Origin]++
	}
	if len(jobs) != 2 || origins[record.Scheduled] != 1 || origins[record.Retest] != 1 {
		t.Errorf("%v are due, want one scheduled and one repetition", origins)
	}
}

// TestTakeOver_OwnRuns checks that a hub that leads again keeps the hosts of the runs that it has ordered before.
func TestTakeOver_OwnRuns(t *testing.T) {
	t.Parallel()
	h, _, key := leadingHub(t)
	now := time.Now()
	p := h.pairs[key]
	h.runs["before"] = &run{job: store.Job{ID: "before", Until: now.Add(time.Minute)}, needs: p.Needs}
	h.follow()
	if err := h.takeOver(t.Context(), h.lead, now); err != nil {
		t.Fatal(err)
	}
	h.book.Due(mesh.Run{ID: "next", Pair: key, Needs: p.Needs, Due: now, Late: now.Add(time.Hour)})
	anyTime := func(mesh.Run) time.Duration { return time.Second }
	if start, _ := h.book.Next(now, anyTime); len(start) != 0 {
		t.Error("a run starts on hosts in use")
	}
	h.free("before", 0)
	if start, _ := h.book.Next(now, anyTime); len(start) != 1 {
		t.Error("the hosts are not free after the run")
	}
}
