//go:build linux

package bench

import (
	"fmt"
	"math"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// tally counts trials; confident are the wrong verdicts with high confidence, those from
// one end's samples alone included.
type tally struct{ trials, known, right, confident int }

func (n tally) with(r *trial) tally {
	n.trials++
	if right, known := r.right(r.verdict); known {
		n.known++
		if right {
			n.right++
		}
	}
	for _, v := range []verdict.Verdict{r.verdict, r.oneEnd[0], r.oneEnd[1]} {
		if r.wrong(v) {
			n.confident++
		}
	}
	return n
}

func (n tally) String() string { return fmt.Sprintf("%d of %d right", n.right, n.known) }

func (n tally) unclear() string {
	if n.trials == n.known {
		return ""
	}
	return fmt.Sprintf("; %d too close to call", n.trials-n.known)
}

// interval returns Clopper and Pearson's exact 95 % interval of the share that is right.
func (n tally) interval() (low, high float64) {
	atLeast := func(k int, p float64) (sum float64) {
		for i := k; i <= n.known; i++ {
			sum += math.Exp(logChoose(n.known, i) + float64(i)*math.Log(p) + float64(n.known-i)*math.Log1p(-p))
		}
		return sum
	}
	solve := func(k int, probability float64) float64 {
		a, b := 1e-12, 1-1e-12
		for range 60 {
			if m := (a + b) / 2; atLeast(k, m) < probability {
				a = m
			} else {
				b = m
			}
		}
		return a
	}
	low, high = 0, 1
	if n.right > 0 {
		low = solve(n.right, 0.025)
	}
	if n.right < n.known {
		high = solve(n.right+1, 0.975)
	}
	return low, high
}

func logChoose(n, k int) float64 {
	lg := func(v int) float64 { l, _ := math.Lgamma(float64(v + 1)); return l }
	return lg(n) - lg(k) - lg(n-k)
}

func TestTallyInterval(t *testing.T) {
	for _, c := range []struct {
		n         tally
		low, high float64
	}{{tally{known: 20, right: 20}, 0.832, 1}, {tally{known: 100, right: 95}, 0.887, 0.984},
		{tally{known: 10}, 0, 0.308}} {
		if low, high := c.n.interval(); math.Abs(low-c.low) > 0.001 || math.Abs(high-c.high) > 0.001 {
			t.Errorf("%v: %.3f to %.3f; want %.3f to %.3f", c.n, low, high, c.low, c.high)
		}
	}
}
