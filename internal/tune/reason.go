package tune

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// reason is the verdict in words.
func (l *loop) reason() string {
	out := &l.out
	share := fmt.Sprintf("%.0f %%", 100*l.windows.answer.Share)
	clipped := out.Chosen != nil && l.windows.answer.Clipped && out.Chosen.besides() == ""
	switch {
	case out.Interrupted && out.Chosen == nil:
		return "interrupted before it was decided"
	case l.seen.isBlackHole() && out.Chosen == nil:
		return "full segments vanish on the way, and no smaller ones were shown to pass"
	case l.seen.isBlackHole():
		return "full segments vanish on the way, these pass"
	case clipped && out.Path.Window > out.Chosen.Window*5/4:
		return "the most that the systems' ceilings allow; the path needs " + units.Size(out.Path.Window).Exact()
	case clipped:
		return "the most that the systems' ceilings allow"
	case l.cfg.Goal == Latency && out.Chosen != nil:
		return "shown to shorten the queue and to keep the rate"
	case l.cfg.Goal == Latency && out.Verdict == search.NoChange:
		return "a transfer adds so little to the round trip that nobody notices: nothing to change"
	case l.cfg.Goal == Fair && out.Chosen != nil:
		return "shown to gain more than it takes from another flow on the link"
	case out.Chosen != nil && l.compared.winner != Setup{} && l.windows.answer.Clipped:
		return "shown to be better than what there is; the systems' ceilings keep one connection's window below the " +
			units.Size(out.Path.Window).Exact() + " that the path needs"
	case out.Chosen != nil && l.compared.winner != Setup{}:
		return "shown to be better than what there is"
	case out.Chosen != nil && out.Shown:
		return "the smallest window that is shown to reach 98 % of the best"
	case out.Chosen != nil:
		return "shown to be better than what there is; a somewhat smaller window might do as well"
	case out.Verdict == search.NoChange && l.windows.answer.Verdict != search.NoChange && l.seen.full(search.Nearly):
		return fmt.Sprintf("automatic sizing reaches %.0f %% of the most that the path carried in any run: nothing to change",
			100*min(1, out.Before.Interval.Mid/out.Path.CapacityBps))
	case out.Verdict == search.NoChange && l.nearly() && l.windows.searched.Reaches(search.Nearly):
		return "automatic sizing reaches " + share + " of the best that any window gave, shown to be 95 % or more: nothing " +
			"to change"
	case out.Verdict == search.NoChange && l.nearly() && !l.windows.searched.Alike():
		return fmt.Sprintf("automatic sizing gives %s of what the best window gave, and single runs differ by %.2g %%, so "+
			"that nobody could tell one from the other: nothing to change", share, 100*l.windows.answer.Noise.Dev)
	case out.Verdict == search.NoChange && l.nearly():
		return "automatic sizing reaches " + share + " of the best that any window gave, shown to be 91 % or more: what " +
			"another one may give is too little to tell from chance, and to matter"
	case out.Verdict == search.NoChange && l.windows.answer.Verdict != search.NoChange:
		return "nothing that was tried gives 5 % more than what there is: nothing is changed"
	case out.Verdict == search.NoChange:
		return "automatic sizing reaches " + share + " of the best that any window gave: nothing to change"
	case len(out.Trials) < 3 && len(out.Remedies) == 0:
		out.Open = l.more()
		if out.Open != nil {
			return "too little was measured to say: " + wouldTake(out.Open.Budget)
		}
		return "too little was measured to say"
	}
	if reason, open := l.open(); open != nil {
		out.Open = open
		return reason
	}
	return "nothing that was tried was shown to be better than what there is: nothing is changed"
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
		what = &Open{Of: of, Gain: gain, Budget: l.budget.propose(needs)}
		return wouldTake(what.Budget)
	}
	if all := l.proof.inTurn(l.compared.winner, confidence); all.Mid >= tenth { // the proof did not show it
		return fmt.Sprintf("%s gave × %.2f by the middle of all runs in turn, which scatter too much to prove it: %s",
			l.compared.winner, all.Mid, ask(l.compared.winner.String(), all.Mid, l.budget.spent.Time)), what
	}
	if best := promising(l.compared.remedies); best != nil {
		times := "in one run"
		if best.Runs > 1 {
			times = fmt.Sprintf("in %d runs", best.Runs)
		}
		return fmt.Sprintf("%s gave × %.2f %s, not proven yet: %s", best.Name, best.Gain.Mid, times,
			ask(best.Name, best.Gain.Mid, best.needs)), what
	}
	a := &l.windows.answer
	if g := l.out.Gain; a.Verdict == search.Change && g != nil && g.Mid > 1/search.Enough {
		window := "a window of " + units.Size(a.Window).Exact()
		return fmt.Sprintf("%s seems to give × %.2f, and single runs differ by %.2g %%, so that is not proven yet: %s",
			window, g.Mid, 100*a.Noise.Dev, ask(window, g.Mid, l.windows.proofTime(g.Mid))), what
	}
	if l.windows.searched == nil || a.Needs == 0 || len(l.seen.trials) < fewestToJudge {
		return "", nil
	}
	needs := a.Needs
	if a.Share < search.Enough {
		needs += l.windows.proofTime(1 / a.Share)
	}
	return fmt.Sprintf("automatic sizing gives %.0f %% of what the best window gave, and single runs differ by %.2g %%, "+
		"so it is not decided yet whether another window is better: %s", 100*min(a.Share, 1), 100*a.Noise.Dev,
		ask("another window", 1/a.Share, needs)), what
}

// more is what a comparison and a proof would take where the budget held too little of them; nil where
// that is not known.
func (l *loop) more() *Open {
	if l.path.CapacityBps <= 0 || l.budget.Time == 0 || l.seen.isBlackHole() {
		return nil
	}
	return &Open{Of: "another way to send", Budget: l.budget.propose(search.LossyTransfers * l.span(Setup{}))}
}

// fewestToJudge are the trials below which nothing is said of windows.
const fewestToJudge = 3

func wouldTake(budget time.Duration) string {
	if budget == 0 {
		return "runs scatter so much that no budget of a reasonable length would tell"
	}
	return fmt.Sprintf("--budget %s would tell, if these figures hold", Shortest(budget))
}
