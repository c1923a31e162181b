package tune

import (
	"math/rand/v2"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// A setup that is just as good as what there is is rarely shown to be better, however often its runs are looked at.
func TestLookShare(t *testing.T) {
	t.Parallel()
	const longest = fewRounds + mostPairs
	series := 10_000
	if testing.Short() {
		series = 2500
	}
	rng := rand.New(rand.NewPCG(1, 2))
	shown := 0
	for range series {
		var before, after []float64
		for pairs := 1; pairs <= longest; pairs++ {
			before, after = append(before, 1+rng.Float64()), append(after, 1+rng.Float64())
			if pairs >= firstPairs && stats.Shift(before, after, 1-2*search.ComparisonError*lookShare(pairs)).Low > 1 {
				shown++
				break
			}
		}
	}
	if share := float64(shown) / float64(series); share > 1.2*search.ComparisonError || share < search.ComparisonError/3 {
		t.Errorf("%.2f %% of nothing is shown to be a gain", 100*share)
	}
}

// TestByRanks_FivePairs checks that five pairs, all runs of one side above all of the other's, show a gain, and
// that four do not.
func TestByRanks_FivePairs(t *testing.T) {
	l := looped(Path{})
	for pairs := 1; pairs <= firstPairs; pairs++ {
		for _, one := range []Trial{{Goodput: 5 + float64(pairs)}, {Setup: Setup{Congestion: lossBlind}, Goodput: 19}} {
			one.inTurn = true
			l.seen.trials = append(l.seen.trials, one)
		}
		if shown := l.proof.byRanks(Setup{Congestion: lossBlind}).Low > 1; shown != (pairs == firstPairs) {
			t.Errorf("%d pairs: shown %v", pairs, shown)
		}
	}
}
