package report_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// TestFiguresAgree_Tune tunes random simulated paths, with noise, loss and short queues, and checks that the guard
// removes nothing.
func TestFiguresAgree_Tune(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	between := func(low, high float64) float64 { return low + (high-low)*random.Float64() }
	gains := 0
	for n := range 60 {
		path := &simpath.Path{RateBps: 1e6 * between(2, 200), RTT: time.Duration(between(5, 150) * 1e6), MSS: 1448, Harm: 1,
			Noise: simpath.Noise{Dev: between(0.003, 0.015), Stalls: between(0, 0.1)}}
		path.Queue = path.BDP() * between(0.1, 2)
		path.AutoWindow = max(path.BDP()*between(0.1, 4), 4*1448)
		switch n % 3 {
		case 1:
			path.Loss = between(0.0001, 0.01)
		case 2:
			path.Harm = between(0.4, 1)
		}
		goal := []tune.Goal{tune.Throughput, tune.Latency}[n/3%2]
		result, err := tune.Run(t.Context(), tune.Config{Peer: simpeer.New(path, uint64(n)), Seed: uint64(n), Goal: goal,
			Directions: []transfer.Direction{transfer.Up}, FileSize: 1e9})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range report.Tune(record.Header{}, "", result, nil, nil).Directions {
			keepsAll(t, fmt.Sprintf("%+v, %s", *path, goal), d.Before.Verdict)
			if d.Gain != nil {
				gains++
			}
		}
	}
	if gains < 20 {
		t.Errorf("%d directions with a gain", gains)
	}
}
