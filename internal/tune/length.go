package tune

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
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

// Where the path is full all the same, fullLosses are enough. Where losses limit, a transfer begins with
// what slow start left it, far above what they leave in the long run, and so few of them are mostly luck:
// by enoughLosses the first ones matter little, and three transfers tell more than ten shorter ones that take
// as long together. mostRounds and longest are where waiting for them ends.
const (
	fullLosses, fullRounds   = 4, 30
	enoughLosses, mostRounds = 12, 80
	longest                  = 12 * time.Second
)

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

// lossesTake is the number of round trips that enough losses take, once slow start has lost what it loses.
func (l *loop) lossesTake(t *Trial) int {
	startup, _ := t.result.Startup()
	var lost int64
	if end := t.result.Sender(); end != nil {
		for i := range end.Streams {
			lost += lostSince(&end.Streams[i], startup.End)
		}
	}
	received, _ := t.result.Received()
	rtt := max(t.result.LeastRTT(), time.Microsecond).Seconds()
	each := (received.Duration() - startup.End).Seconds() / rtt / float64(max(lost, 1)) // round trips
	few := min(max(fullLosses*each, search.LossyRounds), fullRounds)
	if t.Limiter != verdict.Congestion {
		return int(few)
	}
	return int(max(few, min(enoughLosses*each, mostRounds, longest.Seconds()/rtt)))
}

// lostSince is how many segments a connection sent again after a moment.
func lostSince(s *transfer.Stream, at time.Duration) int64 {
	all, _ := s.Retransmitted()
	for i := range s.Samples {
		if s.Samples[i].At >= at {
			return all - s.Samples[i].Retransmitted
		}
	}
	return all
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

// last has transfers last so long after slow start, and allows what those cost.
func (l *loop) last(length time.Duration) {
	l.lossy = max(l.lossy, int(length/max(l.round, time.Microsecond)))
	if l.cfg.Budget == 0 {
		l.budget.Time = max(l.budget.Time, l.config().Budget().Time)
	}
	if l.cfg.MaxBytes == 0 {
		l.budget.Bytes = max(l.budget.Bytes, l.bytesRule())
	}
}

// outlastShare is the most of the budget that one run takes to see whether a link stays full, and statedShare of
// one that was stated: that is not extended.
const outlastShare, statedShare = 0.2, 0.05

// outlast looks whether a link that was full, and lost segments, stays so: what slow start filled, losses may
// not let fill again. Where it does not, transfers last as long, and the first runs are left out.
func (l *loop) outlast(ctx context.Context) error {
	today := l.of(func(t *Trial) bool { return t.Automatic })
	if !mayBeFull(&l.today) || !slices.ContainsFunc(today, (*Trial).loses) {
		return nil
	}
	share := outlastShare
	regrowth := l.regrowth()
	if l.cfg.Budget > 0 {
		share = statedShare
	}
	length := min(regrowth*3/2, longest, time.Duration(share*float64(l.allowance())))
	tells := 2*length >= regrowth
	seen := slices.ContainsFunc(today, func(t *Trial) bool { return 3*t.Spec.Time >= 2*length })
	if !tells || seen || !l.affords(length, 1) {
		return nil
	}
	t, err := l.try(ctx, l.automatic(length, "does the link stay full?"))
	if err != nil || t.Limiter == verdict.Bottleneck && !t.drained() {
		return err
	}
	l.last(length)
	l.out.Trials = slices.DeleteFunc(l.out.Trials, func(t Trial) bool { return t.Automatic && t.Spec.Time < length })
	l.today = t.verdict
	return nil
}

// regrowth is how long CUBIC takes from a loss to the window that fills the path: the cube root of W (1 − β)/C
// seconds with β = 0.7 and C = 0.4 segments a second cubed (RFC 9438, 4.2).
func (l *loop) regrowth() time.Duration {
	segments := float64(l.knee) / float64(max(l.out.Path.MSS, 1))
	return time.Duration(math.Cbrt(segments*0.3/0.4) * float64(time.Second))
}

// drained says that a transfer lost segments, and that the queue which had stood was gone in its last quarter.
func (t *Trial) drained() bool {
	end := t.result.Sender()
	if !t.loses() || end == nil {
		return false
	}
	const seen = 0.1 // of the time before
	empty := float64(t.result.LeastRTT()) * (1 + threshold.StandingQueue)
	queued := func(all []transfer.Sample) (n float64) {
		for i := range all {
			if float64(all[i].RTT) > empty {
				n++
			}
		}
		return n
	}
	var early, late, stood, stands float64
	for i := range end.Streams {
		all := end.Streams[i].Samples
		last := len(all) * 3 / 4
		early = early + float64(last)
		late = late + float64(len(all)-last)
		stood = stood + queued(all[:last])
		stands = stands + queued(all[last:])
	}
	return stood >= seen*early && 2*stands < late
}
