package sweep_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/sweep"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

func far() *simpeer.Peer {
	return simpeer.New(&simpath.Path{RateBps: 100e6, RTT: 12 * time.Millisecond, MSS: 1448, Queue: 300e3, Harm: 1,
		AutoWindow: 4 << 20, Noise: simpath.Noise{Dev: 0.004}}, 1)
}

func config(peer transfer.Peer, rules sweep.Rules, directions ...transfer.Direction) sweep.Config {
	return sweep.Config{Peer: peer, Name: "host", Time: time.Second, Rules: rules,
		Axes: sweep.Axes{Send: []int{16384, 262144, 0}, Receive: []int{65536, 262144},
			Write: []int{0}, Directions: directions, Congestion: []string{""}}}
}

func TestSweep(t *testing.T) {
	peer := far()
	shown := 0
	cfg := config(peer, sweep.Rules{Precision: 0.03}, transfer.Up, transfer.Down)
	cfg.Progress = func(sweep.Progress) { shown++ }
	result := must.Get(sweep.Run(t.Context(), cfg))(t)
	if !result.Complete || len(result.Cells) != 12 || len(result.Paths) != 2 || shown != len(peer.Ran) {
		t.Errorf("complete %v, %d cells, %d paths, %d of %d runs shown", result.Complete, len(result.Cells),
			len(result.Paths), shown, len(peer.Ran))
	}
	for _, m := range result.Cells {
		if !m.Tight || m.Limiter == "" || m.SendBuffer == nil || m.ReceiveBuffer == nil {
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

// TestRun_Interrupted checks that an interrupted sweep has the runs up to then.
func TestRun_Interrupted(t *testing.T) {
	peer := far()
	ctx, cancel := context.WithCancel(t.Context())
	cfg := config(peer, sweep.Rules{Precision: 0.03}, transfer.Up)
	cfg.Progress = func(sweep.Progress) {
		if len(peer.Ran) == 3 {
			cancel()
		}
	}
	result, err := sweep.Run(ctx, cfg)
	runs := 0
	for _, c := range result.Cells {
		runs += len(c.Runs)
	}
	if !errors.Is(err, context.Canceled) || result.Complete || runs != 3 {
		t.Errorf("%v, complete %v, %d runs", err, result.Complete, runs)
	}
	if result, err := sweep.Run(ctx, cfg); !errors.Is(err, context.Canceled) || result != nil {
		t.Errorf("%v, a document without runs: %v", err, result)
	}
}

func TestABrokenFarEndEndsTheSweep(t *testing.T) {
	peer := far()
	peer.Fail = func(transfer.Spec) error {
		if len(peer.Ran) > 4 {
			return errors.New("connection reset by peer")
		}
		return nil
	}
	result, err := sweep.Run(t.Context(), config(peer, sweep.Rules{}, transfer.Up))
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
	result, err := sweep.Run(t.Context(),
		config(picky{far()}, sweep.Rules{Precision: 0.05}, transfer.Up))
	if err != nil || !result.Complete {
		t.Fatalf("%v, %+v", err, result)
	}
	for _, m := range result.Cells {
		if (m.Send == 16384) != (m.Refused != "") || (m.Send == 16384) != (len(m.Runs) == 0) {
			t.Errorf("%v: refused %q, %d runs", m.SweepSetup, m.Refused, len(m.Runs))
		}
	}
}
