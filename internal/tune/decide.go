package tune

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// lastShare is the part of a budget that a search may spend where nothing else is to be tried:
// the rest is for a proof.
const lastShare = 0.8

// decide goes on with a search that its share of the budget left open where nothing else was
// shown to help: with what is left of the budget and, where nobody stated one, as much again.
func (l *loop) decide(ctx context.Context) error {
	for _, more := range []func() bool{func() bool { return true }, l.extendSearch} {
		if l.searched == nil || l.winner != (Setup{}) || l.answer.Verdict != search.Inconclusive || l.settled() || !more() {
			return nil
		}
		l.searched.More(l.left(lastShare))
		if err := l.follow(ctx, l.searched); err != nil {
			return err
		}
	}
	return nil
}

// answerOf is a search's answer. Behind a bucket, of which a short transfer by another window takes
// more, a window that seems better by less than it takes to matter is none.
func (l *loop) answerOf(s *search.Search) search.Answer {
	a := s.Answer()
	if l.burst > 0 && a.Verdict == search.Change && s.Reaches(search.Nearly) {
		a = search.Answer{Verdict: search.NoChange, Share: s.Automatic(), Spent: a.Spent, Noise: a.Noise}
	}
	return a
}

// settled says that what windows may still give is too little to be looked for: where transfers are
// long, the last percents are.
func (l *loop) settled() bool {
	return l.full(search.Enough) || l.long() && (l.full(search.Nearly) || l.nearly())
}

// fewTransfers is how many transfers a search's share of the budget holds where they are long because
// the path loses: too few to tell one percent from the next.
const fewTransfers = 14

func (l *loop) long() bool {
	return l.lossy > 0 && search.Share*float64(l.allowance()) < fewTransfers*float64(l.length(Setup{}))
}

// again goes on with a search whose answer the proof's own trials opened again.
func (l *loop) again(ctx context.Context) error {
	if _, ok := l.target(); ok || l.cfg.Goal != Throughput && l.cfg.Goal != "" {
		return nil
	}
	if err := l.decide(ctx); err != nil {
		return err
	}
	return l.prove(ctx)
}

// left is what a share of the budget still holds; 0 where it is spent.
func (l *loop) left(share float64) search.Budget {
	return search.Budget{Time: max(0, time.Duration(share*float64(l.budget.Time))-l.elapsed),
		Bytes: max(0, int64(share*float64(l.budget.Bytes))-l.bytes)}
}

// hopeless is how many times the time that is left a search may need to be given more of it:
// what it needs is a guess.
const hopeless = 2

// extendSearch doubles the budget, once, for a search that may be decided by that.
func (l *loop) extendSearch() bool {
	after := time.Duration(2*lastShare*float64(l.budget.Time)) - l.elapsed
	return l.answer.Needs <= hopeless*after && l.double()
}

// double doubles a budget that nobody stated, once: decisions that are still open are what
// more time is for.
func (l *loop) double() bool {
	if l.cfg.Budget > 0 || l.cfg.MaxBytes > 0 || l.extended || l.budget.Time > longestBudget {
		return false
	}
	l.extended = true
	l.budget.Time *= 2
	l.budget.Bytes *= 2
	return true
}

// Open is a decision that was left open.
type Open struct {
	Of     string        // the setup that may be better
	Gain   float64       // that it seems to give, as a factor; 0: nothing is known of it
	Budget time.Duration // that would decide it; 0: more than longestAsked
}

// open says what was left open and what would decide it; "" where nothing is.
func (l *loop) open() (reason string, what *Open) {
	ask := func(of string, gain float64, needs time.Duration) string {
		what = &Open{Of: of, Gain: gain, Budget: l.enough(needs)}
		return wouldTake(what.Budget)
	}
	if all := l.inTurn(l.winner, confidence); all.Mid >= tenth { // the proof did not show it
		return fmt.Sprintf("%s gave × %.2f by the middle of all runs in turn, which scatter too much to prove it: %s",
			l.winner, all.Mid, ask(l.winner.String(), all.Mid, l.elapsed)), what
	}
	if best := l.promising(); best != nil {
		times := "in one run"
		if best.Runs > 1 {
			times = fmt.Sprintf("in %d runs", best.Runs)
		}
		return fmt.Sprintf("%s gave × %.2f %s, not proven yet: %s", best.Name, best.Gain.Mid, times,
			ask(best.Name, best.Gain.Mid, best.needs)), what
	}
	a := &l.answer
	if g := l.out.Gain; a.Verdict == search.Change && g != nil && g.Mid > 1/search.Enough {
		window := "a window of " + units.Size(a.Window).Exact()
		return fmt.Sprintf("%s seems to give × %.2f, and single runs differ by %.2g %%, so that is not proven yet: %s",
			window, g.Mid, 100*a.Noise.Dev, ask(window, g.Mid, l.proofOf(g.Mid))), what
	}
	if l.searched == nil || a.Needs == 0 || len(l.out.Trials) < fewestToJudge {
		return "", nil
	}
	needs := a.Needs
	if a.Share < search.Enough {
		needs += l.proofOf(1 / a.Share)
	}
	return fmt.Sprintf("automatic sizing gives %.0f %% of what the best window gave, and single runs differ by %.2g %%, "+
		"so it is not decided yet whether another window is better: %s", 100*min(a.Share, 1), 100*a.Noise.Dev,
		ask("another window", 1/a.Share, needs)), what
}

// more is what a contest and a proof would take where the budget held too little of them; nil where
// that is not known.
func (l *loop) more() *Open {
	if l.out.Path.CapacityBps <= 0 || l.budget.Time == 0 || l.swallows() {
		return nil
	}
	return &Open{Of: "another way to send", Budget: l.enough(search.LossyTransfers * l.span(Setup{}))}
}

// proofOf is about how long a proof of a factor takes that runs scatter around as they did.
func (l *loop) proofOf(factor float64) time.Duration {
	const sure, trimmed = 2.7, 1.15 // Student's t and what Middle costs
	pairs := math.Pow(sure*trimmed*math.Sqrt2*l.answer.Noise.Dev/math.Log(factor), 2)
	return time.Duration(max(pairs, fewestProof) * float64(2*l.span(Setup{})))
}

// fewestToJudge are the trials below which nothing is said of windows.
const fewestToJudge = 3

// longestAsked is the longest budget that is proposed.
const longestAsked = 20 * time.Minute

// enough is a budget that holds what is needed besides what was spent, and a proof; twice the one
// there was at the least, for what is needed is a guess. 0 is more than is proposed.
func (l *loop) enough(needs time.Duration) time.Duration {
	budget := max(l.elapsed+needs, 2*l.budget.Time)
	step := 10 * time.Second
	if budget > 2*time.Minute {
		step = time.Minute
	}
	budget = (budget + step - 1) / step * step
	if budget > longestAsked {
		return 0
	}
	return budget
}

func wouldTake(budget time.Duration) string {
	if budget == 0 {
		return "runs scatter so much that no budget of a reasonable length would tell"
	}
	return fmt.Sprintf("--budget %s would tell, if these figures hold", Shortest(budget))
}

// Shortest is a time as --budget takes it, without parts of zero.
func Shortest(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// promising is the remedy that came furthest where none was shown; nil if none seemed to help
// by a tenth.
func (l *loop) promising() (best *Remedy) {
	for i := range l.out.Remedies {
		r := &l.out.Remedies[i]
		if r.Gain.Low > 1 || r.Gain.Mid < tenth {
			continue
		}
		repeated := best != nil && r.Runs > 1 && best.Runs == 1 // one run may be luck
		if best == nil || repeated || r.Gain.Mid > best.Gain.Mid && (r.Runs > 1 || best.Runs == 1) {
			best = r
		}
	}
	return best
}
