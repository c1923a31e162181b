package search_test

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
)

// A search asks for trials and takes what came of them, until it can answer. This path
// carries 100 Mbit/s at 40 ms, and its systems stop at 64 KiB by themselves.
func ExampleSearch() {
	const capacity, rtt = 100e6, 0.040
	s := search.New(search.Config{MSS: 1460, RTT: 40 * time.Millisecond, CapacityBps: capacity, Knee: capacity / 8 * rtt})
	for {
		trial, more := s.Next()
		if !more {
			break
		}
		window := float64(trial.Window)
		if trial.Automatic {
			window = 65536
		}
		s.Observe(trial, search.Outcome{GoodputBps: min(window*8/rtt, capacity), Window: int(window), Lossless: true,
			Elapsed: trial.Time})
	}
	answer := s.Answer()
	fmt.Println(answer.Verdict, answer.Shown, answer.Window >= 490_000 && answer.Window <= 575_000)
	// Output: change true true
}

// A comparison compares candidates with the baseline, in rounds.
func ExampleComparison() {
	c := search.NewComparison(2, 8, 0.01, 1)
	for round := c.Next(); len(round) > 0; round = c.Next() {
		goodputs := map[int]float64{}
		for _, who := range round {
			goodputs[who] = []float64{10e6, 10.1e6, 19e6}[who]
		}
		c.Observe(goodputs)
	}
	best, found := c.Best()
	fmt.Printf("%d %v × %.1f\n", best, found, c.Gain(best).Mid)
	// Output: 2 true × 1.9
}
