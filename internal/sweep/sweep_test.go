package sweep_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

func far() *simpeer.Peer {
	return simpeer.New(&simpath.Path{RateBps: 100e6, RTT: 12 * time.Millisecond, MSS: 1448, Queue: 300e3, Harm: 1,
		AutoWindow: 4 << 20, Noise: simpath.Noise{Dev: 0.004}}, 1)
}

func grid(directions ...transfer.Direction) sweep.Identity {
	return sweep.Identity{Peer: "host", Time: time.Second, Seed: 1, Axes: sweep.Axes{Send: []int{16384, 262144, 0},
		Receive: []int{65536, 262144},
		Write:   []int{0}, Directions: directions, Congestion: []string{""}}}
}

func open(t *testing.T, path string, id sweep.Identity) *sweep.Journal {
	t.Helper()
	file, err := atomicfile.Edit(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	j, err := sweep.OpenJournal(file, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func TestSweep(t *testing.T) {
	peer := far()
	shown := 0
	result, err := sweep.Run(t.Context(), sweep.Config{Peer: peer, Rules: sweep.Rules{Precision: 0.03},
		Progress: func(sweep.Progress) { shown++ },
		Journal:  open(t, filepath.Join(t.TempDir(), "j"), grid(transfer.Up, transfer.Down))})
	if err != nil {
		t.Fatal(err)
	}
	if !result.Complete || len(result.Cells) != 12 || len(result.Paths) != 2 || shown != len(peer.Ran) {
		t.Errorf("complete %v, %d cells, %d paths, %d of %d runs shown", result.Complete, len(result.Cells),
			len(result.Paths), shown, len(peer.Ran))
	}
	for _, m := range result.Cells {
		if !m.Tight || m.Predicted || m.Limiter == "" || m.SendBuffer == nil || m.ReceiveBuffer == nil {
			t.Errorf("%+v", m)
		}
	}
	for _, p := range result.Paths {
		var best, enough *record.SweepCell
		for i := range result.Cells {
			c := &result.Cells[i]
			if c.Direction == p.Direction && c.Best {
				best = c
			}
			if c.Direction == p.Direction && c.Enough {
				enough = c
			}
		}
		if best == nil || enough == nil || enough.GoodputBps < 0.98*best.GoodputBps || enough.Send != 262144 ||
			len(p.Fix) == 0 || p.Fix[0].Limiter != best.Limiter {
			t.Errorf("%s: best %+v, enough %+v, fix %v", p.Direction, best, enough, p.Fix)
		}
	}
	if small, large := result.Cells[0], result.Cells[4]; small.GoodputBps*5 > large.GoodputBps {
		t.Errorf("16 KiB: %v, 256 KiB: %v", small.GoodputBps, large.GoodputBps)
	}
}

// TestRun_ContinuesAfterInterrupts interrupts a sweep several times and checks that no run is lost or repeated.
func TestRun_ContinuesAfterInterrupts(t *testing.T) {
	whole := far()
	rules := sweep.Rules{Precision: 0.03, Seed: 1}
	want, err := sweep.Run(t.Context(), sweep.Config{Peer: whole, Rules: rules,
		Journal: open(t, filepath.Join(t.TempDir(), "whole"), grid(transfer.Up))})
	if err != nil {
		t.Fatal(err)
	}
	path, runs := filepath.Join(t.TempDir(), "cut"), 0
	for range 100 {
		peer := far()
		ctx, cancel := context.WithCancel(t.Context())
		journal := open(t, path, grid(transfer.Up))
		kept := len(journal.Runs)
		result, err := sweep.Run(ctx, sweep.Config{Peer: peer, Rules: rules, Journal: journal,
			Progress: func(p sweep.Progress) {
				if len(peer.Ran) == 3 {
					cancel()
				}
			}})
		cancel()
		runs += len(journal.Runs) - kept
		if err == nil {
			if !result.Complete || runs != len(journal.Runs) || len(result.Cells) != len(want.Cells) {
				t.Errorf("complete %v: %d runs made, %d kept", result.Complete, runs, len(journal.Runs))
			}
			return
		}
		if !errors.Is(err, context.Canceled) || result.Complete {
			t.Fatalf("%v, complete %v", err, result.Complete)
		}
	}
	t.Error("it never ended")
}

func TestABrokenFarEndEndsTheSweep(t *testing.T) {
	peer := far()
	peer.Fail = func(transfer.Spec) error {
		if len(peer.Ran) > 4 {
			return errors.New("connection reset by peer")
		}
		return nil
	}
	result, err := sweep.Run(t.Context(), sweep.Config{Peer: peer, Journal: open(t, filepath.Join(t.TempDir(), "j"),
		grid(transfer.Up))})
	if err == nil || !strings.Contains(err.Error(), "3 runs in a row failed") || !strings.Contains(err.Error(),
		"connection reset") || result.Complete {
		t.Errorf("%v, complete %v", err, result.Complete)
	}
	measured := 0
	for _, m := range result.Cells {
		measured += len(m.Runs)
	}
	if measured != 4 {
		t.Errorf("%d runs were kept of 4", measured)
	}
}

type picky struct{ *simpeer.Peer }

func (picky) Check(t transfer.Test) error {
	if t.Legs[0].TCP.Near.SendBuffer == 16384 {
		return &transfer.Unsupported{Field: "Near.SendBuffer", Reason: "this end is small"}
	}
	return nil
}

func TestRun_RefusedCells(t *testing.T) {
	result, err := sweep.Run(t.Context(), sweep.Config{Peer: picky{far()}, Rules: sweep.Rules{Precision: 0.05},
		Journal: open(t, filepath.Join(t.TempDir(), "j"), grid(transfer.Up))})
	if err != nil || !result.Complete {
		t.Fatalf("%v, %+v", err, result)
	}
	for _, m := range result.Cells {
		if (m.Send == 16384) != (m.Refused != "") || (m.Send == 16384) != (len(m.Runs) == 0) {
			t.Errorf("%v: refused %q, %d runs", m.SweepSetup, m.Refused, len(m.Runs))
		}
	}
}
