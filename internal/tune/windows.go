package tune

import (
	"context"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// windowSearch looks for the smallest window that carries the most.
type windowSearch struct {
	*runner
	searched *search.Search // nil: there was no search
	answer   search.Answer
}

// climbShare is the part of a stated budget that raise may begin its last transfer in. While
// windows hold the transfers back there is nothing else to look for.
const climbShare = 0.6

// widened is how many times as large the next window is where one limits.
const widened = 8

// raise repeats each transfer that its window limits with a window widened times as large.
func (w *windowSearch) raise(ctx context.Context, base *baseline) error {
	last := w.seen.trials[len(w.seen.trials)-1]
	w.sockets.noClamp = !w.receiver.Has("TCP_WINDOW_CLAMP") || !w.can(Setup{Window: 1 << 20})
	w.sockets.senderOnly = w.sockets.noClamp && !w.can(Setup{Window: 1 << 20})
	for window := last.Effective; w.path.limitedByWindow(&last) && !w.isSpent(climbShare); {
		next := Setup{Window: max(widened*window, 16*w.path.MSS)}
		if !w.can(next) {
			break
		}
		t, err := w.try(ctx, w.with(next, w.length(next), PathLimit))
		if err != nil {
			return err
		}
		w.path.learn(&t)
		last = t
		if t.Effective < 2*window {
			break
		}
		window = t.Effective
	}
	w.path.AtLeast = w.path.limitedByWindow(&last)
	if !last.Lossless && !w.path.AtLeast && last.Limiter != verdict.Bottleneck {
		if err := base.tryLossBlind(ctx, &last); err != nil {
			return err
		}
	}
	w.allow()
	return nil
}

// search looks for the window.
func (w *windowSearch) search(ctx context.Context) error {
	cfg := w.searchConfig()
	left := w.budget.left(search.Share)
	cfg.Noise = w.seen.expectedNoise()
	cfg.Time = left.Time
	cfg.Bytes = left.Bytes
	if cfg.Time <= 0 || cfg.Bytes <= 0 {
		w.notes.add(Statement{Code: BudgetSpent})
		return nil
	}
	s := search.New(cfg)
	w.searched = s
	for _, t := range w.seen.of(func(t *Trial) bool { return t.Remedy == "" }) {
		o := t.outcome()
		o.Elapsed = 0
		o.Bytes = 0 // charged already
		s.Observe(search.Trial{Automatic: t.Automatic, Window: t.Asked}, o)
	}
	return w.follow(ctx, s)
}

// follow makes the trials that a search asks for.
func (w *windowSearch) follow(ctx context.Context, s *search.Search) error {
	defer func() { w.answer = w.answerOf(s) }()
	for {
		next, more := s.Next()
		if !more {
			return nil
		}
		t := w.with(Setup{Window: next.Window}, next.Time, next.Purpose)
		t.Spec.Bytes = next.Bytes
		t, err := w.try(ctx, t)
		if err != nil {
			return err
		}
		s.Observe(next, t.outcome())
		switch a := s.Answer(); {
		case a.Verdict == search.Change && a.Clipped:
			return nil // only remedies for the ceilings are left to find
		case w.longTransfers() && a.Verdict != search.Change && w.seen.linkIsFull():
			return nil
		}
	}
}

// answerOf returns a search's answer. Behind a token bucket, from which a short transfer takes more, a window that
// seems better by too little to matter is none.
func (w *windowSearch) answerOf(s *search.Search) search.Answer {
	a := s.Answer()
	if w.path.burst > 0 && a.Verdict == search.Change && s.Reaches(search.Nearly) {
		a = search.Answer{Verdict: search.NoChange, Share: s.Automatic(), Spent: a.Spent, Noise: a.Noise}
	}
	return a
}

// hopeless is how many times the remaining time a search may need, which is a guess, to be given more.
const hopeless = 2

// lastShare is the part of a budget that a search may spend where nothing else is tried; the rest is for a proof.
const lastShare = 0.8

// extend doubles the budget, once, for a search that may be decided by that.
func (w *windowSearch) extend() bool {
	after := time.Duration(2*lastShare*float64(w.budget.Time)) - w.budget.spent.Time
	return w.answer.Needs <= hopeless*after && w.budget.double()
}

// proofTime estimates how long a factor takes to prove where runs scatter as they did.
func (w *windowSearch) proofTime(factor float64) time.Duration {
	const sure, trimmed = 2.7, 1.15 // Student's t and the error of Middle over the mean's
	pairs := math.Pow(sure*trimmed*math.Sqrt2*w.answer.Noise.Dev/math.Log(factor), 2)
	return time.Duration(max(pairs, fewestProof) * float64(2*w.span(Setup{})))
}
