package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// policed says whether unqueued loss comes from a policer: it leaves a steady rate, and it
// drops many segments in a row once its bucket is empty. BBR holds a steady rate through any
// loss, so that only the first burst tells there.
func (a *analysis) policed() bool {
	p := a.path
	if p.mean < threshold.PolicedSteady*p.later {
		return false
	}
	if a.connections[0].paced() {
		return p.burst()
	}
	return a.lossDispersion() >= threshold.LossInBursts
}

// lossDispersion is the variance of the retransmissions in each round over their mean: 1
// where segments are lost at random one by one (Poisson), and about the number lost
// at once where they are lost together. 0 is not known. The end of slow start is left out:
// it overshoots on any path. So are transfers too short to tell a rate that stays from one that
// has not grown back yet.
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
