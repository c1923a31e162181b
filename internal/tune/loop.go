package tune

import (
	"cmp"
	"context"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// loop tunes one direction. Its parts share the runner; each has its own state and leaves its result there.
//
//  1. path: probe the idle path for its RTT, jitter and MTU.
//  2. baseline: measure what a program gets today. Where full segments vanish, find smaller ones that pass and
//     go on with the verification.
//  3. windows: raise the window until it no longer limits, to learn what the path carries.
//  4. windows, compared: search the smallest window that carries the most, and compare other remedies with the
//     baseline. Remedies for the baseline's limiter come first. Candidates are compared in rounds; where a few losses
//     scatter single runs, one candidate is compared and verified by unequal numbers of runs.
//  5. streams: before a link is said to be full, measure whether several connections carry more than one.
//  6. proof: verify the gain by measuring before and after in turn.
//  7. Where the verification reopened the search, resume it and verify once more.
//  8. conclude: the verdict, the chosen setup, its gain.
type loop struct {
	*runner
	base     *baseline
	windows  *windowSearch
	compared *comparison
	streams  *streamProbe
	proof    *verification
	out      Direction
}

func newLoop(cfg Config, d transfer.Direction) *loop {
	r := newRunner(cfg, d)
	l := &loop{runner: r, base: &baseline{runner: r}, windows: &windowSearch{runner: r},
		compared: &comparison{runner: r, below: belowCapacity{runner: r}}, streams: &streamProbe{runner: r}}
	l.proof = &verification{runner: r, windows: l.windows, compared: l.compared}
	l.out = Direction{Direction: d, Goal: cmp.Or(cfg.Goal, Throughput), Verdict: search.Inconclusive,
		Reason: Statement{Code: NothingMeasured}}
	return l
}

// run makes the steps in order. It stops at the first error; conclude works with what was found until then.
func (l *loop) run(ctx context.Context) (err error) {
	if err := l.probePath(ctx); err != nil {
		return err
	}
	if l.compared.winner, err = l.base.measure(ctx); err != nil {
		return err
	}
	if !l.seen.isBlackHole() {
		if err := l.windows.raise(ctx, l.base); err != nil {
			return err
		}
		if err := l.search(ctx); err != nil {
			return err
		}
		if err := l.probeStreams(ctx); err != nil {
			return err
		}
	}
	if err := l.proof.verify(ctx); err != nil {
		return err
	}
	return l.retry(ctx)
}

// search finds the setup to verify: the smallest window that suffices, where windows may matter, and otherwise or on
// top of it the remedies for what limits.
func (l *loop) search(ctx context.Context) error {
	if l.cfg.Goal == Latency {
		return l.shortenQueue(ctx)
	}
	if _, err := l.base.outlast(ctx); err != nil {
		return err
	}
	if l.longTransfers() && l.base.verdict.Limiter == verdict.Bottleneck {
		if wastes(l.seen.baselineRuns()) {
			if err := l.compare(ctx); err != nil || l.compared.winner != (Setup{}) {
				return err
			}
		}
		if full, err := l.base.confirmFullLink(ctx); full || err != nil {
			return err
		}
	}
	steps := []func(context.Context) error{l.windows.search, l.compare, l.resume}
	byLuck := l.base.fullByLuck()
	if byLuck || !l.seen.windowsMatter() {
		steps = []func(context.Context) error{l.compare, l.refine, l.resume}
	}
	if byLuck {
		l.lengthen(min(mostRounds*l.path.round, longest))
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return l.outlast(ctx)
}

// outlast searches again, by long transfers, where nothing helped short ones that lost segments late or not at all.
func (l *loop) outlast(ctx context.Context) error {
	open := l.windows.searched != nil && l.windows.answer.Verdict != search.NoChange
	if _, found := l.proof.target(); found || open || l.cfg.Goal == Fair {
		return nil
	}
	dropped, err := l.base.outlast(ctx)
	if !dropped || err != nil {
		return err
	}
	l.seen.trials = slices.DeleteFunc(l.seen.trials, func(t Trial) bool {
		return t.Remedy != "" && t.Purpose != BetweenLosses && 2*t.Spec.Time < l.length(Setup{})
	})
	*l.windows = windowSearch{runner: l.runner}
	*l.compared = comparison{runner: l.runner, below: belowCapacity{runner: l.runner}}
	return l.search(ctx)
}

// shortenQueue compares what shortens the queue that the baseline builds, if that is worth it.
func (l *loop) shortenQueue(ctx context.Context) error {
	added := l.seen.trials[0].result.MeanRTT() - l.path.round
	if added < max(shortQueue, l.path.round/10) {
		l.windows.answer = search.Answer{Verdict: search.NoChange, Share: 1}
		return nil
	}
	l.compared.limits = l.base.verdict
	winner, ok, err := l.compared.measure(ctx, Setup{}, l.compared.candidates(Setup{}), true)
	if ok {
		l.compared.winner = winner
	}
	return err
}

// compare compares other remedies than windows, unless the window search ended before it had an answer.
func (l *loop) compare(ctx context.Context) error {
	if l.windows.searched != nil && l.windows.answer.Verdict == "" {
		return nil
	}
	return l.compared.compare(ctx, l.windows.answer)
}

// refine searches the best window where a smaller one helped and the budget allows it, or where no remedy for
// acknowledgements did.
func (l *loop) refine(ctx context.Context) error {
	winner := l.compared.winner
	noneForAcks := winner == (Setup{}) && l.seen.acksLimit()
	if !noneForAcks && (winner.Window == 0 || winner.besides() != "") {
		return nil
	}
	if left := l.budget.left(search.Share); winner != (Setup{}) && (left.Time <= 0 || left.Bytes <= 0) {
		return nil // it is verified as it is
	}
	l.compared.winner = Setup{}
	return l.windows.search(ctx)
}

// resume continues a search that its share of the budget left open where nothing else was shown to help: with what is
// left of the budget and, where nobody stated one, as much again.
func (l *loop) resume(ctx context.Context) error {
	for _, more := range []func() bool{func() bool { return true }, l.windows.extend} {
		open := l.windows.searched != nil && l.windows.answer.Verdict == search.Inconclusive && !l.settled()
		if !open || l.compared.winner != (Setup{}) || !more() {
			return nil
		}
		l.windows.searched.More(l.budget.left(lastShare))
		if err := l.windows.follow(ctx, l.windows.searched); err != nil {
			return err
		}
	}
	return nil
}

// settled reports that what windows may still give is too little to search: where transfers are long, a few percent.
func (l *loop) settled() bool {
	return l.seen.full(search.Enough) || l.longTransfers() && (l.seen.full(search.Nearly) || l.nearly())
}

// nearly reports that automatic sizing was shown to come within a twentieth of the best window, or seems to and was
// shown to come within a tenth, or that no budget resolves the difference: the remaining gain is too small to matter.
func (l *loop) nearly() bool {
	open := l.windows.searched != nil && l.windows.answer.Verdict == search.Inconclusive &&
		promising(l.compared.remedies) == nil
	if l.compared.winner != (Setup{}) { // which its proof may not have shown
		open = open && !l.proof.shown && l.proof.inTurn(l.compared.winner, confidence).Mid < tenth
	}
	if !open {
		return false
	}
	s := l.windows.searched
	undecidable := s.Automatic() >= search.Nearly && l.budget.propose(l.windows.answer.Needs) == 0
	return s.Reaches(search.Nearly) || s.Alike() || undecidable
}

// retry resumes a search whose answer the verification's own trials reopened, and verifies once more.
func (l *loop) retry(ctx context.Context) error {
	if _, ok := l.proof.target(); ok || !l.cfg.Goal.isThroughput() {
		return nil
	}
	if err := l.resume(ctx); err != nil {
		return err
	}
	return l.proof.verify(ctx)
}
