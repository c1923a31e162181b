package svg

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

var changeNumber = regexp.MustCompile(`<text x="([-0-9.]+)" y="([-0-9.]+)">([0-9–]+)</text></g>`)

// TestSeries_ChangeNumbers checks that the numbers of changes, however close these are, neither overlap nor leave the
// chart of the goodput.
func TestSeries_ChangeNumbers(t *testing.T) {
	from := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		n := 1 + random.IntN(60)
		goodput := 1e7
		points := []record.KeptPoint{{StartedAt: from, GoodputBps: &goodput},
			{StartedAt: from.Add(day), GoodputBps: &goodput}}
		changes := []record.PathChange{{At: from.Add(day)}} // at the right edge
		for range n {
			changes = append(changes, record.PathChange{At: from.Add(time.Duration(random.IntN(1440)) * time.Minute)})
		}
		slices.SortFunc(changes, func(a, b record.PathChange) int { return a.At.Compare(b.At) })
		type box struct{ left, right, y float64 }
		var drawn []box
		for _, m := range changeNumber.FindAllStringSubmatch(string(Series("up", points, changes)), -1) {
			x, _ := strconv.ParseFloat(m[1], 64)
			y, _ := strconv.ParseFloat(m[2], 64)
			one := box{x, x + 8*float64(len([]rune(m[3]))), y}
			if one.right > chartWidth || y < plotTop+10 || y > plotTop+seriesGoodput {
				t.Errorf("seed %d: %s is at %v", seed, m[3], one)
			}
			for _, other := range drawn {
				if other.y == y && other.left < one.right && one.left < other.right {
					t.Errorf("seed %d: %s overlaps: %v, %v", seed, m[3], other, one)
				}
			}
			drawn = append(drawn, one)
		}
		if len(drawn) == 0 || n < 12 && strings.Count(string(Series("up", points, changes)), `class="change"`) != len(drawn) {
			t.Errorf("seed %d: %d numbers of %d changes", seed, len(drawn), n+1)
		}
	}
}
