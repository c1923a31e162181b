package tune

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Applied is what a change of settings gave, measured with it and without it in turn.
type Applied struct {
	Changes []host.Did     // of this host
	Far     []host.Did     // of the far one
	Before  Measured       // with the old settings
	After   Measured       // with the new ones
	Gain    stats.Interval // of goodput, or of what the goal wants to be large
	rate    stats.Interval // of goodput, where the goal is another
	goal    Goal
	// acceptLikely keeps a change that the proof neither shows nor contradicts.
	acceptLikely bool
	// Kept reports that the change is in force; otherwise it was undone, and Reason says why.
	Kept bool
	// Lasting reports that a change is still in force after a restart, NotLasting why it is not although asked for.
	Lasting    bool
	NotLasting error
	Reason     Statement
	// Marked counts the segments that queues marked in all runs with the change; nil: ECN was not asked for, or not known.
	Marked *int64
}

// fewestPairs keeps two runs that happen to agree from deciding.
const fewestPairs = 3

// count adds what was marked in a run with the change.
func (a *Applied) count(r *transfer.Result) {
	if a.Marked == nil {
		return
	}
	if marked, ok := r.DeliveredCE(); ok {
		*a.Marked += marked
	} else {
		a.Marked = nil
	}
}

// Apply makes the changes on this host, and those of the far one if it is not nil, and
// measures what a program gets with them and without them in turn, B A A B …, each time on
// fresh connections. Unless the change is shown to be faster, or as fast with clearly fewer retransmissions, the hosts
// are put back as they were, and so they are after an error or when ctx ends.
func Apply(ctx context.Context, cfg Config, d *Direction, changes []host.Change, far *FarHost) (*Applied, error) {
	a := &application{runner: newRunner(cfg, d.Direction)}
	a.path.Path = d.Path
	a.path.round = d.Path.RTT
	a.blackHole = d.Before.Verdict
	if a.budget.Time == 0 {
		a.budget.Time = max(30*time.Second, 300*d.Path.RTT)
	}
	if slices.ContainsFunc(changes, func(c host.Change) bool { return strings.HasSuffix(c.Name, " initcwnd") }) {
		a.fileBytes = d.shortFile()
	}
	s := &toggle{sides: []side{&thisHost{changes}}}
	if far != nil {
		s.sides = append(s.sides, far)
	}
	out := &Applied{goal: cfg.Goal, acceptLikely: cfg.AcceptLikely && d.Decision.Strength == search.Likely}
	if slices.ContainsFunc(changes, func(c host.Change) bool { return c.Name == ecnSetting }) {
		out.Marked = new(int64)
	}
	err := a.alternate(ctx, s, out)
	out.decide(err)
	// The host ends as Kept says, also after an error.
	settle := context.WithoutCancel(ctx)
	if failed := s.set(settle, out.Kept); failed != nil {
		err = errors.Join(err, failed)
		out.Reason = Statement{Code: HostNotSet, Err: failed}
		out.Kept = false
	}
	if len(s.last) > 0 {
		out.Changes = s.last[0]
	}
	if len(s.last) > 1 {
		out.Far = s.last[1]
	}
	if err == nil && out.Kept && cfg.Persist != nil && len(changes) > 0 {
		out.persist(settle, cfg, changes)
	}
	return out, err
}

// persist has the kept changes hold after a restart.
func (a *Applied) persist(ctx context.Context, cfg Config, changes []host.Change) {
	dids, err := cfg.Persist(ctx, changes)
	a.Lasting = err == nil
	a.NotLasting = err
	for _, d := range dids {
		if d.Kind == host.File {
			a.Changes = append(a.Changes, d)
		}
	}
}

// longEnough is how many round trips a buffer takes to grow from its default to what the path
// needs, and cubic to fill a long path after slow start was left early.
const longEnough = 30

// application is the proof of a change of the hosts' settings.
type application struct {
	*runner
	fileBytes int64 // that each transfer moves; 0: for a time
}

// alternate measures pairs until the factor is known or, after the budget, until it is known which is faster.
// Its up to four looks at a 95 % interval leave an error below 5 % on one side.
func (a *application) alternate(ctx context.Context, s *toggle, out *Applied) error {
	var with, without []*Trial
	// Long enough for a buffer to grow from its default to what the path needs.
	length := max(longEnough*a.path.round, time.Second)
	for pair := 0; pair < mostPairs; pair++ {
		shown := out.Gain.Low > 1 || out.Gain.High < 1
		if pair >= fewestPairs && (out.Gain.Within(tight) || shown && a.budget.spent.Time+2*length > a.budget.Time) {
			break
		}
		for turn := range 2 {
			on := (turn == 0) == (pair%2 == 0)
			if err := s.set(ctx, on); err != nil {
				return err
			}
			t, err := a.tryWith(ctx, on, length)
			if err != nil {
				return err
			}
			if on {
				out.count(t.result)
				with = append(with, &t)
			} else {
				without = append(without, &t)
			}
		}
		out.Before = a.seen.measured(without)
		out.After = a.seen.measured(with)
		out.Gain = gainInTurn(out.Before.Goodputs, out.After.Goodputs)
		if a.cfg.Goal == Latency || a.cfg.Goal == Fair && a.fileBytes == 0 {
			out.rate = out.Gain
			out.Gain = stats.Gain(a.scores(without), a.scores(with), confidence)
		}
	}
	return nil
}

// rankLooks are the looks that a proof takes at its ranks.
const rankLooks = mostPairs - fewestPairs + 1

// gainInTurn returns the factor of goodputs measured in turn. Where loss makes runs scatter too much for an interval,
// ranks may show which is faster, with the error of all looks together.
func gainInTurn(before, after []float64) stats.Interval {
	gain := stats.Gain(before, after, confidence)
	ranks := stats.Shift(before, after, 1-(1-confidence)/rankLooks)
	if open := gain.Low <= 1 && gain.High >= 1; open && (ranks.Low > 1 || ranks.High < 1) {
		return ranks
	}
	return gain
}

// tryWith makes one transfer: of fileBytes where slow start limits that, so that its whole time counts.
func (a *application) tryWith(ctx context.Context, on bool, length time.Duration) (Trial, error) {
	why := ProofUnchanged
	if on {
		why = ProofChanged
	}
	t := a.with(Setup{}, length, why)
	if a.fileBytes == 0 {
		return a.tryFor(ctx, t)
	}
	t.whole = true
	t.Spec.Bytes = a.fileBytes
	t.Spec.Time = 10 * length
	return a.try(ctx, t)
}

// decide keeps the change where it is shown to help.
func (a *Applied) decide(err error) {
	code := NoGainShown
	switch {
	case err != nil:
		code = ProofCutShort
	case a.rate.Mid > 0 && a.rate.Mid < keeps:
		code = CostsGoodput
	case a.Gain.Low > 1 && a.rate.Mid > 0 && a.goal == Fair:
		code = GainsMoreThanTakes
	case a.Gain.Low > 1 && a.rate.Mid > 0:
		code = QueueShortened
	case a.Gain.Low > 1:
		code = FasterChanged
	case a.goal.isThroughput() && asFast(&a.Before, &a.After, a.Gain):
		code = AsFastChanged
	case a.Gain.High < 1:
		code = SlowerChanged
	case a.acceptLikely && a.Gain.Mid > 1:
		code = LikelyChanged
	}
	if a.goal.isThroughput() && err == nil && a.Before.Interval.Mid > nothing {
		a.Gain = printedGain(&a.Before, &a.After, a.Gain)
	}
	a.Kept = slices.Contains([]Code{GainsMoreThanTakes, QueueShortened, FasterChanged, AsFastChanged, LikelyChanged},
		code)
	a.Reason = Statement{Code: code, Err: err,
		Values: verdict.Values{"low": a.Gain.Low, "high": a.Gain.High, "factor": a.rate.Mid}}
}
