package tune

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// reason returns the reason of the verdict, and the open decision if there is one.
func (l *loop) reason() (Statement, *Open) {
	out := &l.out
	changed := out.Chosen != nil
	code := NothingShown
	switch {
	case out.Interrupted && !changed:
		code = CutShort
	case l.seen.isBlackHole() && changed:
		code = SmallerSegmentsPass
	case l.seen.isBlackHole():
		code = SegmentsVanish
	case changed && l.proof.probability > 0:
		_, open := l.openComparison()
		return Statement{Code: LikelyBetter, Values: verdict.Values{"probability": l.proof.probability}}, open
	case changed:
		code = l.whyChanged()
	case l.cfg.Goal == Latency && out.Verdict == search.NoChange:
		code = QueueIsShort
	case out.Verdict == search.NoChange:
		return l.whyNot(), nil
	case len(out.Trials) < 3 && len(out.Remedies) == 0:
		return Statement{Code: TooLittleMeasured}, l.more()
	default:
		return l.open()
	}
	return Statement{Code: code}, nil
}

// whyChanged returns what the chosen setup was shown to be.
func (l *loop) whyChanged() Code {
	clipped := l.windows.answer.Clipped
	found := l.compared.winner != Setup{}
	switch {
	case clipped && l.out.Chosen.besides() == "":
		return AtCeilings
	case l.cfg.Goal == Latency:
		return QueueShortened
	case l.cfg.Goal == Fair:
		return GainsMoreThanTakes
	case found && clipped:
		return BetterBelowCeilings
	case found && l.proof.asFast:
		return AsFast
	case found:
		return Better
	case l.out.Shown:
		return SmallestWindow
	}
	return BetterWindow
}

// whyNot returns why nothing is to be changed.
func (l *loop) whyNot() Statement {
	a := &l.windows.answer
	s := Statement{Code: AutomaticSuffices, Values: verdict.Values{"share": a.Share, "noise": a.Noise.Dev}}
	if a.Verdict == search.NoChange {
		return s
	}
	nearly := l.nearly()
	switch {
	case l.seen.full(search.Nearly):
		s.Code = LinkFull
		s.Values["share"] = min(1, l.out.Before.Interval.Mid/l.out.Path.CapacityBps)
	case nearly && l.windows.searched.Reaches(search.Nearly):
		s.Code = NearlyShown
	case nearly && !l.windows.searched.Alike():
		s.Code = Indistinguishable
	case nearly:
		s.Code = NearlyLikely
	default:
		s.Code = NothingHelps
	}
	return s
}

// Open is a decision that was left open.
type Open struct {
	Setup Setup   // that may be better; zero: another one
	Gain  float64 // that it seems to give, as a factor; 0: nothing is known of it
	Runs  int     // that showed it; 0: not counted
	// Baseline is the number of baseline runs that they were compared with; 0: as many.
	Baseline int
	More     int           // runs that would decide it, of both together; 0: not counted
	Budget   time.Duration // that would decide it; 0: more than maxProposed
}

// open returns the decision that was left open with the budget that it needs; nil where there is none.
func (l *loop) open() (Statement, *Open) {
	winner := l.compared.winner
	if l.proof.inTurn(winner, confidence).Mid >= tenth { // the proof did not show it
		return Statement{Code: ScatteredGain},
			&Open{Setup: winner, Gain: l.gainOver(winner), Budget: l.budget.propose(l.budget.spent.Time)}
	}
	if l.compared.exceedance.isOpen() {
		return l.openComparison()
	}
	if best := promising(l.remedies()); best != nil {
		return Statement{Code: PromisingRemedy},
			&Open{Setup: best.Setup, Gain: best.Gain.Mid, Runs: best.Runs, Budget: l.budget.propose(best.needs)}
	}
	a := &l.windows.answer
	values := verdict.Values{"share": min(a.Share, 1), "noise": a.Noise.Dev}
	if g := l.out.Gain; a.Verdict == search.Change && g != nil && g.Mid > 1/search.Enough {
		return Statement{Code: PromisingWindow, Values: values},
			&Open{Setup: Setup{Window: a.Window}, Gain: g.Mid, Budget: l.budget.propose(l.windows.proofTime(g.Mid))}
	}
	if l.windows.searched == nil || a.Needs == 0 || len(l.seen.trials) < fewestToJudge {
		return Statement{Code: NothingShown}, nil
	}
	needs := a.Needs
	if a.Share < search.Enough {
		needs += l.windows.proofTime(1 / a.Share)
	}
	return Statement{Code: WindowsUndecided, Values: values}, &Open{Gain: 1 / a.Share, Budget: l.budget.propose(needs)}
}

// openComparison returns the comparison of scattered runs that did not show a gain, with the runs that would.
func (l *loop) openComparison() (Statement, *Open) {
	r := l.compared.exceedanceRemedy()
	return Statement{Code: NeedsRuns}, &Open{Setup: r.Setup, Gain: l.gainOver(r.Setup), Runs: r.Runs,
		Baseline: r.BaselineRuns, More: r.more, Budget: l.budget.proposePlanned(r.needs)}
}

// gainOver returns a setup's factor over the baseline, by the goodputs that are printed.
func (l *loop) gainOver(s Setup) float64 {
	return l.seen.measured(l.seen.runsOf(s)).Interval.Mid / l.out.Before.Interval.Mid
}

// more returns what a comparison and its verification would take; nil where that is not known.
func (l *loop) more() *Open {
	if l.path.CapacityBps <= 0 || l.budget.Time == 0 || l.seen.isBlackHole() {
		return nil
	}
	return &Open{Budget: l.budget.propose(search.LossyTransfers * l.span(Setup{}))}
}

// fewestToJudge are the trials below which nothing is said of windows.
const fewestToJudge = 3
