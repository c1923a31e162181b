package tune

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// searchConfig describes the path to the search.
func (r *runner) searchConfig() search.Config {
	p := r.path
	return search.Config{MSS: p.MSS, RTT: p.round, CapacityBps: p.CapacityBps, Knee: p.knee, Seed: r.cfg.Seed,
		Rounds: p.rounds(r.budget.stated.Time), Burst: p.burst}
}

// length is how long a transfer with a setup has to last: behind a policer until its bucket is empty, once.
func (r *runner) length(s Setup) time.Duration {
	length := r.searchConfig().Length(s.Window)
	if s == (Setup{}) || !r.seen.policed() {
		return length
	}
	rate := s.PacingBps
	if rate == 0 && s.Streams < 2 {
		rate = float64(s.Window) * 8 / max(r.path.round, time.Microsecond).Seconds()
	}
	drain, _ := r.seen.drains(rate)
	if !slices.ContainsFunc(r.seen.runsOf(s), func(t *Trial) bool { return t.isClean() && t.Spec.Time >= drain }) {
		length += drain
	}
	return length
}

// span is how long a transfer takes that is measured as the goal wants it.
func (r *runner) span(s Setup) time.Duration {
	if r.cfg.Goal == Fair {
		return r.together(r.length(s))
	}
	return r.length(s)
}

// together returns how long a transfer has to last that shares the path with another.
func (r *runner) together(length time.Duration) time.Duration {
	return max(length, fairRounds*r.path.round, fairLeast)
}

// allow fills in what of the budget was not stated.
func (r *runner) allow() {
	if r.budget.Time == 0 {
		r.budget.Time = r.timeRule()
	}
	if r.budget.Bytes == 0 {
		r.budget.Bytes = r.bytesRule()
	}
}

// timeRule is the time of a direction where that was not stated: by the search's rule, several times that with the
// goal Fair.
func (r *runner) timeRule() time.Duration {
	allowed := r.searchConfig().Budget().Time
	if r.cfg.Goal == Fair {
		allowed *= fairBudgets
	}
	return allowed
}

// bytesRule returns the payload that may be moved where none was stated: by the search's rule, and at least the path's
// capacity times a stated budget, or one that is longer than the rule's because the path loses.
func (r *runner) bytesRule() int64 {
	bytes := r.searchConfig().Budget().Bytes
	if r.cfg.Goal == Fair {
		bytes *= fairBudgets
	}
	long := r.budget.stated.Time
	if r.path.lossRounds > 0 {
		long = r.budget.Time
	}
	return max(bytes, int64(r.path.CapacityBps/8*long.Seconds()))
}

// lengthen makes transfers last that long after slow start, and allows what those cost.
func (r *runner) lengthen(length time.Duration) {
	r.path.lossRounds = max(r.path.lossRounds, int(length/max(r.path.round, time.Microsecond)))
	if r.budget.stated.Time == 0 {
		r.budget.Time = max(r.budget.Time, r.timeRule())
	}
	if r.budget.stated.Bytes == 0 {
		r.budget.Bytes = max(r.budget.Bytes, r.bytesRule())
	}
}

// fewTransfers is the least number of transfers in a search's share of the budget where they are long because
// the path loses: fewer do not resolve one percent.
const fewTransfers = 14

// longTransfers reports that a search's share of the budget allows fewer than fewTransfers.
func (r *runner) longTransfers() bool {
	return r.path.lossRounds > 0 && search.Share*float64(r.allowance()) < fewTransfers*float64(r.length(Setup{}))
}

// allowance is the budget's time; while that is not known, 30 s or 150 round trips.
func (r *runner) allowance() time.Duration {
	if r.budget.Time > 0 {
		return r.budget.Time
	}
	return max(30*time.Second, 150*r.path.RTT)
}

// isSpent reports that a share of the budget is spent.
func (r *runner) isSpent(share float64) bool {
	return float64(r.budget.spent.Time) >= share*float64(r.allowance()) ||
		r.budget.Bytes > 0 && float64(r.budget.spent.Bytes) >= share*float64(r.budget.Bytes)
}

// affords reports whether another transfer of that length fits in a share of the budget.
func (r *runner) affords(length time.Duration, share float64) bool {
	bytes := r.path.CapacityBps / 8 * length.Seconds()
	return float64(r.budget.spent.Time+length) <= share*float64(r.budget.Time) &&
		float64(r.budget.spent.Bytes)+bytes <= share*float64(r.budget.Bytes)
}

// Where the path is full, fullLosses are enough. Where losses limit, a transfer begins far above its long-run rate: by
// enoughLosses the first ones matter little. mostRounds and longest bound the wait for them.
const (
	fullLosses, fullRounds   = 4, 30
	enoughLosses, mostRounds = 8, 60
	longest                  = 8 * time.Second
)

// longestDrain bounds the wait for a policer's bucket to empty: in it one of a quarter second empties at 8 % above the
// rate. Rates nearer to the policer's are not tried.
const longestDrain = 4 * time.Second

// heed takes from a transfer how long others have to last.
func (p *pathModel) heed(t *Trial) {
	if t.loses() {
		p.lossRounds = max(p.lossRounds, lossesTake(t))
	}
	if b, ok := t.result.Burst(); ok && b.SteadyBps > 0 {
		if s, ok := t.result.Startup(); ok {
			p.burst = max(p.burst, b.End-s.End)
		}
	}
}

// lossesTake is the number of round trips that enough losses take, once slow start has lost what it loses.
func lossesTake(t *Trial) int {
	startup, _ := t.result.Startup()
	var lost int64
	if end := t.result.Sender(); end != nil {
		for i := range end.Streams {
			lost += lostSince(&end.Streams[i], startup.End)
		}
	}
	received, _ := t.result.Received()
	rtt := max(t.result.MinRTT(), time.Microsecond).Seconds()
	each := (received.Duration() - startup.End).Seconds() / rtt / float64(max(lost, 1)) // round trips
	few := min(max(fullLosses*each, search.LossyRounds), fullRounds)
	if t.Limiter != verdict.Congestion {
		return int(few)
	}
	return int(max(few, min(enoughLosses*each, mostRounds, longest.Seconds()/rtt)))
}

// rounds are the round trips that a transfer lasts for after slow start: many where the path
// loses, as far as a stated budget allows a comparison of such transfers.
func (p *pathModel) rounds(stated time.Duration) int {
	if stated == 0 || p.round <= 0 || p.lossRounds == 0 {
		return p.lossRounds
	}
	const starting = 5 // round trips
	return min(max(int(stated/search.LossyTransfers/p.round)-starting, search.FewRounds), p.lossRounds)
}

// regrowth is how long CUBIC takes from a loss to the window that fills the path: the cube root of W (1 − β)/C
// seconds with β = 0.7 and C = 0.4 segments a second cubed (RFC 9438, 4.2).
func (p *pathModel) regrowth() time.Duration {
	segments := float64(p.knee) / float64(max(p.MSS, 1))
	return time.Duration(math.Cbrt(segments*0.3/0.4) * float64(time.Second))
}
