package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// lossDispersion returns the variance of the retransmissions in each round divided by their mean: 1 for single random
// losses (Poisson), and about the number lost at once for losses in bursts. 0 is not known. It leaves out slow start,
// which overshoots on any path, and transfers too short to distinguish a steady rate from a slow recovery.
func (a *analysis) lossDispersion() float64 {
	var n, sum, squares float64
	var seen time.Duration
	for _, c := range a.connections {
		if !c.has(transfer.HaveRetrans) {
			return 0
		}
		for i := range c.rounds {
			r := &c.rounds[i]
			if r.start.At < c.startedAt {
				continue
			}
			lost := float64(r.end.Retransmitted - r.start.Retransmitted)
			n = n + 1
			sum = sum + lost
			squares = squares + lost*lost
			seen += r.length
		}
	}
	if n < threshold.DispersionRounds || sum <= 0 ||
		seen < time.Duration(len(a.connections))*threshold.PolicedTime {
		return 0
	}
	mean := sum / n
	return (squares/n - mean*mean) / mean
}
