package tune

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

const (
	confidence = 0.95
	mostPairs  = 6
	tight      = 0.03 // an interval this narrow either way needs no more runs
)

// prove measures before and after in turn, A B B A, until the factor is known well
// enough or the budget ends. What it measures counts in the search too: where another
// window turns out to be the one to choose, the proof begins anew with that.
func (l *loop) prove(ctx context.Context) error {
	if l.answer.Verdict != search.Change {
		return nil
	}
	length := l.config().Length(0)
	window := l.answer.Asked
	var before, after []float64
	for len(before) < mostPairs && l.affords(2*length, 1) {
		if len(before) >= 2 && stats.Gain(before, after, confidence).Within(tight) {
			break
		}
		pair := []Trial{l.automatic(length, "proof: before"), l.window(window, length, "proof: after")}
		if len(before)%2 == 1 {
			slices.Reverse(pair)
		}
		for _, t := range pair {
			t, err := l.try(ctx, t)
			if err != nil {
				return err
			}
			l.searched.Observe(search.Trial{Automatic: t.Automatic, Window: t.Asked}, t.outcome())
			if t.Automatic {
				before = append(before, t.Goodput)
			} else {
				after = append(after, t.Goodput)
			}
		}
		if l.answer = l.searched.Answer(); l.answer.Verdict != search.Change {
			return nil
		}
		if l.answer.Asked != window {
			window, before, after = l.answer.Asked, nil, nil
		}
	}
	if len(before) >= 2 {
		l.out.Gain = gain(before, after)
	}
	return nil
}

// repeatable is by how much two runs of the loop may differ beyond their own noise: the
// window that each chooses reaches 98 % of the best or more.
const repeatable = 0.01

// gain is the factor as a second run of the loop would find it again.
func gain(before, after []float64) *stats.Interval {
	g := stats.Gain(before, after, confidence)
	return &stats.Interval{Low: g.Low / (1 + repeatable), Mid: g.Mid, High: g.High * (1 + repeatable)}
}

// conclude puts together what was found, after all steps or after the one that failed.
func (l *loop) conclude(failed bool) {
	out := &l.out
	out.Interrupted = out.Interrupted || failed
	automatic := l.of(func(t *Trial) bool { return t.Automatic && t.Remedy == "" })
	out.Before = measured(automatic)
	if len(automatic) == 0 {
		return
	}
	out.Verdict, out.Shown, out.Clipped = l.answer.Verdict, l.answer.Shown, l.answer.Clipped
	if out.Verdict == "" {
		out.Verdict = search.Inconclusive
	}
	if failed && !out.Shown {
		out.Verdict, out.Shown = search.Inconclusive, false
	}
	if out.Verdict == search.Change {
		l.change()
	}
	out.Reason = l.reason()
	if l.cfg.FileSize > 0 {
		out.File = l.file()
	}
}

// change compares before with the chosen window.
func (l *loop) change() {
	out := &l.out
	chosen := l.buffers(l.answer.Window)
	after := measured(l.of(func(t *Trial) bool { return t.Remedy == "" && t.Asked == l.answer.Asked }))
	if len(after.Goodputs) == 0 {
		return
	}
	if out.Gain == nil {
		out.Gain = gain(out.Before.Goodputs, after.Goodputs)
	}
	out.Chosen, out.After = &chosen, &after
	if out.Gain.Low <= 1 && !math.IsNaN(out.Gain.Mid) && len(after.Goodputs) > 1 {
		out.Verdict, out.Shown, out.Chosen = search.Inconclusive, false, nil
		l.warn("the proof showed no gain, so nothing is recommended")
	}
}

// of are the trials that a condition picks.
func (l *loop) of(pick func(*Trial) bool) (trials []*Trial) {
	for i := range l.out.Trials {
		if pick(&l.out.Trials[i]) {
			trials = append(trials, &l.out.Trials[i])
		}
	}
	return trials
}

func measured(trials []*Trial) (m Measured) {
	for _, t := range trials {
		m.Goodputs = append(m.Goodputs, t.Goodput)
	}
	m.Interval = stats.Estimate(m.Goodputs, confidence)
	middle := math.Inf(1)
	for _, t := range trials {
		if away := math.Abs(math.Log(t.Goodput / m.Interval.Mid)); away < middle {
			middle, m.Typical = away, t.result
		}
	}
	if m.Typical != nil {
		m.Verdict = limiter.Judge(m.Typical)
	}
	return m
}

// file is how long a transfer of the stated size takes.
func (l *loop) file() *File {
	p := &l.out.Path
	takes := func(goodput float64) time.Duration {
		return model.TransferTime(float64(l.cfg.FileSize), goodput, p.RTT, p.MSS)
	}
	f := &File{Bytes: l.cfg.FileSize, Before: takes(l.out.Before.Interval.Mid)}
	if f.After = f.Before; l.out.Chosen != nil {
		f.After = takes(l.out.After.Interval.Mid)
	}
	return f
}

// reason is the verdict in words.
func (l *loop) reason() string {
	out := &l.out
	share := fmt.Sprintf("%.0f %%", 100*l.answer.Share)
	switch {
	case out.Interrupted && out.Chosen == nil:
		return "interrupted before it was decided"
	case out.Chosen != nil && l.answer.Clipped && out.Path.Window > out.Chosen.Window*5/4:
		return "the most that the systems' ceilings allow; the path needs " + units.Size(out.Path.Window).Exact()
	case out.Chosen != nil && l.answer.Clipped:
		return "the most that the systems' ceilings allow"
	case out.Chosen != nil && out.Shown:
		return "the smallest window that is shown to reach 98 % of the best"
	case out.Chosen != nil:
		return "shown to be better than what there is; a somewhat smaller window might do as well"
	case out.Verdict == search.NoChange:
		return "automatic sizing reaches " + share + " of the best that any window gave: nothing to change"
	case len(out.Trials) < 3:
		return "too little was measured to say"
	}
	return "no window was shown to be better than automatic sizing: nothing is changed"
}
