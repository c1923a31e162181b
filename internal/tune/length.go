package tune

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// policedRun is how long the first run lasts at least where a policer is suspected, or its first
// part was faster than the rest: buckets hold a second's traffic or a few (Flach et al., SIGCOMM
// 2016, section 4).
const policedRun = 5 * time.Second

// loses says that a transfer lost segments: by chance, by a policer, or by a queue that it filled.
func (t *Trial) loses() bool {
	return t.result != nil && !t.Lossless && t.Limiter != verdict.MTUBlackHole
}

// enoughLosses are the losses from which on a rate that depends on them is known to a half, and to
// less by what a contest and a proof repeat; mostRounds is where waiting for them ends.
const enoughLosses, mostRounds = 4, 30

// heed takes from a transfer how long others have to last.
func (l *loop) heed(t *Trial) {
	if t.loses() {
		l.lossy = max(l.lossy, l.lossesTake(t))
	}
	if b, ok := t.result.Burst(); ok && b.SteadyBps > 0 {
		if s, ok := t.result.Startup(); ok {
			l.burst = max(l.burst, b.End-s.End)
		}
	}
}

// lossesTake is the number of round trips that enough losses take.
func (l *loop) lossesTake(t *Trial) int {
	var lost int64
	if end := t.result.Sender(); end != nil {
		for i := range end.Streams {
			n, _ := end.Streams[i].Retransmitted()
			lost += n
		}
	}
	received, _ := t.result.Received()
	rtt := max(t.result.LeastRTT(), time.Microsecond)
	rounds := enoughLosses * received.Duration().Seconds() / rtt.Seconds() / float64(max(lost, 1))
	return int(min(max(rounds, search.LossyRounds), mostRounds))
}

// rounds are the round trips that a transfer lasts for after slow start: many where the path
// loses, as far as a stated budget holds a contest of such transfers.
func (l *loop) rounds() int {
	if l.cfg.Budget == 0 || l.round <= 0 || l.lossy == 0 {
		return l.lossy
	}
	const starting = 5 // round trips
	return min(max(int(l.cfg.Budget/search.LossyTransfers/l.round)-starting, search.FewRounds), l.lossy)
}

// longer is how long the first run should have been, by what it showed.
func (l *loop) longer(t *Trial, length time.Duration) time.Duration {
	if long := (search.LossyRounds + slowStart) * t.result.LeastRTT(); t.loses() && 2*long > 3*length {
		length = long
	}
	if _, burst := t.result.Burst(); burst || t.verdict.Subtype == verdict.Policer || t.mayBePoliced() {
		length = max(length, policedRun)
	}
	return length
}

// policedLoss is the share of bytes sent again, with no queue to be seen, from which on a policer is
// looked for: chance rarely loses so many, and its bucket alone holds a short transfer's traffic.
const policedLoss = 0.02

// mayBePoliced says that a transfer lost much without a queue and was too short to tell a policer.
func (t *Trial) mayBePoliced() bool {
	return t.Limiter == verdict.Congestion && !t.tellsAPolicer() &&
		slices.ContainsFunc(t.verdict.Evidence, func(e verdict.Evidence) bool {
			return e.Code == verdict.LossWithoutQueue && e.Values["retransmitted_ratio"] >= policedLoss
		})
}

// tellsAPolicer says that a transfer was long enough for its verdict to tell a policer.
func (t *Trial) tellsAPolicer() bool {
	startup, ok := t.result.Startup()
	received, _ := t.result.Received()
	return ok && received.Duration()-startup.End >= threshold.PolicedTime
}

// slowStart is how many round trips the first run is given to open its window.
const slowStart = 8
