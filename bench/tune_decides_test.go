//go:build linux

package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// TestBankTuneDecides measures tune on random paths that lose by chance, on a virtual clock, with the scatter of recorded
// transfers: how often its default budget decides and how long that takes, and how often it calls a gain shown or likely
// where no way to send carries more.
func TestBankTuneDecides(t *testing.T) {
	bankOnly(t)
	const command = "make bank RUN=TestBankTuneDecides"
	row := func(claim, measured, spread string, ok bool) {
		record(t, bankRow{Section: "tune", Case: "random lossy paths, recorded scatter", Claim: claim, Measured: measured,
			Spread: spread, Verdict: byInterval(ok, true), Command: command})
	}

	const paths, firstSeed = 200, 1000 // seeds 0 to 199 chose the method
	var decided int
	var elapsed []float64
	strengths := map[search.Strength]int{}
	for seed := range uint64(paths) {
		d, took := tuneLossy(t, firstSeed+seed, false)
		if d.Verdict != search.Inconclusive {
			decided++
		}
		strengths[d.Decision.Strength]++
		elapsed = append(elapsed, took.Seconds())
	}
	slices.Sort(elapsed)
	row("≥ 90 % are decided within the default budget", fmt.Sprintf("%d of %d", decided, paths),
		fmt.Sprint(strengths), 10*decided >= 9*paths)
	row("the median takes ≤ 60 s", fmt.Sprintf("%.0f s", elapsed[paths/2]),
		fmt.Sprintf("nine of ten take ≤ %.0f s", elapsed[paths*9/10]), elapsed[paths/2] <= 60)

	const equal = 1000
	gains := map[search.Strength]int{}
	for seed := range uint64(equal) {
		if d, _ := tuneLossy(t, 2*firstSeed+seed, true); d.Chosen != nil {
			gains[d.Decision.Strength]++
		}
	}
	measured := fmt.Sprintf("%d shown, %d likely of %d", gains[search.Shown], gains[search.Likely], equal)
	row("where nothing helps, a gain is shown in ≤ 1 % of whole runs", measured, "", gains[search.Shown] <= equal/100)
	row("where nothing helps, a gain is likely in ≤ 5 % of whole runs", measured, "", gains[search.Likely] <= equal/20)
}

// tuneLossy tunes a random path. Where nothing helps, every way to send carries as much as the baseline.
func tuneLossy(t *testing.T, seed uint64, nothingHelps bool) (d tune.Direction, took time.Duration) {
	t.Helper()
	peer := simpeer.RandomLossy(rand.New(rand.NewPCG(seed, 7)))
	peer.Policed = nothingHelps
	result, err := tune.Run(t.Context(), tune.Config{Peer: peer, Directions: []transfer.Direction{transfer.Up}, Seed: seed})
	if err != nil || len(result.Directions) != 1 {
		t.Fatalf("seed %d: %+v, %v", seed, result, err)
	}
	for _, spec := range peer.Ran {
		took += spec.Time
	}
	return result.Directions[0], took
}
