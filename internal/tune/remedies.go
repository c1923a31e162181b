package tune

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// mostRounds of one contest.
const mostRounds = 8

// mostAdditions is how many things a setup may combine besides the first.
const mostAdditions = 2

// mostStreams is where more streams are no longer a remedy.
const mostStreams = 16

// Remedy is a setup that was measured beside another in turn.
type Remedy struct {
	Name    string
	Setup   Setup
	Beside  Setup // the reference: today's, or what had been chosen before
	Goodput float64
	Runs    int
	Spec    transfer.Spec
	// Gain is over the reference: of goodput, of round trips a second where the goal is
	// Latency, or of what both flows have where it is Fair. Its interval holds for all remedies and all looks at
	// them together with search.ContestError one way.
	Gain stats.Interval
	// Others is the share that another flow kept of what it has beside the reference, with
	// the goal Fair; 0: not measured.
	Others float64
}

// seek finds the setup to end with: the window that is enough, where windows may matter,
// and else or on top of it what the verdict calls for.
func (l *loop) seek(ctx context.Context) error {
	if l.cfg.Goal == Latency {
		return l.seekLatency(ctx)
	}
	first, then := l.search, l.remedies
	if !l.windowsMatter() {
		first, then = l.remedies, l.refine
	}
	if err := first(ctx); err != nil {
		return err
	}
	return then(ctx)
}

// windowsMatter says whether the model leaves room for another window to help: one was
// seen to, the path may carry more than any window let it, or nobody knows what limits.
func (l *loop) windowsMatter() bool {
	if l.out.Path.AtLeast {
		return true
	}
	today := l.of(func(t *Trial) bool { return t.Automatic })
	for _, t := range today {
		if t.Limiter != verdict.Congestion && t.Limiter != verdict.MTUBlackHole {
			return true
		}
	}
	faster := l.of(func(t *Trial) bool {
		return t.Remedy == "" && !t.Automatic && t.Goodput > farFaster*slices.Max(goodputs(today))
	})
	return len(faster) > 0
}

// farFaster is by how much one transfer has to be faster than today's, in spite of loss, to
// tell of its window rather than of its luck.
const farFaster = 1.5

// refine looks for the best window where holding it down was what helped.
func (l *loop) refine(ctx context.Context) error {
	if l.winner.Window == 0 || l.winner.besides() != "" {
		return nil
	}
	l.winner = Setup{}
	return l.search(ctx)
}

// remedies finds what else than a window helps, by a contest; then what helps on top of
// it, one thing at a time, each shown.
func (l *loop) remedies(ctx context.Context) error {
	base := Setup{}
	switch {
	case l.out.Path.CapacityBps <= 0 || l.searched != nil && l.answer.Verdict == "":
		return nil
	case l.answer.Verdict == search.Change && !l.answer.Clipped:
		return nil // the window is the answer
	case l.answer.Verdict == search.Change:
		base.Window = l.answer.Asked
	}
	for addition := 0; addition <= mostAdditions; addition++ {
		rivals := l.rivals(base)
		if len(rivals) == 0 {
			return nil
		}
		winner, ok, err := l.contest(ctx, base, rivals, addition == 0)
		if err != nil || !ok {
			return err
		}
		l.winner, base = winner, winner
	}
	return nil
}

// rivals are the setups worth trying beside a base, in order of preference.
func (l *loop) rivals(base Setup) (rivals []Setup) {
	for _, add := range l.ideas(base) {
		if s := base.plus(add); s != base && l.can(s) && !l.lost(s) {
			rivals = append(rivals, s)
		}
	}
	return rivals
}

// lost says that a setup was in an earlier contest and did not help there.
func (l *loop) lost(s Setup) bool {
	return slices.ContainsFunc(l.out.Remedies, func(r Remedy) bool { return r.Setup == s })
}

// ideas are what a setup may change besides a base, by what limits today.
func (l *loop) ideas(base Setup) (ideas []Setup) {
	p := &l.out.Path
	if l.cfg.Goal == Latency {
		return l.latencyIdeas()
	}
	if l.answer.Verdict == search.Change { // larger windows help and cannot be had
		return []Setup{{Streams: min(4*max(base.Streams, 1), mostStreams)}}
	}
	for _, step := range remedy.For(l.today.Limiter, l.today.Subtype) {
		switch step.Action {
		case remedy.OtherControl:
			if base.Congestion == "" {
				ideas = append(ideas, l.controls()...)
			}
		case remedy.WindowOfBDP:
			if w := p.Window; base.Window == 0 && w > 0 && !p.AtLeast {
				ideas = append(ideas, Setup{Window: w})
			}
		case remedy.PaceBelow:
			if base.PacingBps == 0 && base.Streams < 2 {
				ideas = append(ideas, Setup{PacingBps: 0.97 * l.paceable()})
			}
		case remedy.SmallerSegment:
			if p.MSS > 1200 && base.MSS == 0 {
				ideas = append(ideas, Setup{MSS: 1200})
			}
		case remedy.ParallelFlows:
			if base.PacingBps == 0 && base.Streams < mostStreams && base.besides() == "" {
				ideas = append(ideas, Setup{Streams: 4})
			}
		}
	}
	return ideas
}

// paceable is the rate at the IP layer that pacing is to stay below: the path's, or what a
// policer was seen to let through after its first burst, if that is less.
func (l *loop) paceable() float64 {
	p := &l.out.Path
	if l.today.Subtype != verdict.Policer || p.CapacityBps <= 0 {
		return p.BottleneckBps
	}
	for _, e := range l.today.Evidence {
		if steady := e.Values["steady_bps"]; e.Code == verdict.PolicedRate && steady > 0 {
			return min(p.BottleneckBps, steady*p.BottleneckBps/p.CapacityBps)
		}
	}
	return p.BottleneckBps
}

// controls are the congestion controls, other than the one in use, that the sender may
// have; the peer's Check knows what a far sender has.
func (l *loop) controls() (ideas []Setup) {
	if l.control == "" {
		return nil
	}
	offered := []string{"bbr", "cubic"}
	if l.sendsNear() {
		offered = socket.CongestionControls()
	}
	for _, name := range []string{"bbr", "cubic"} {
		if name != l.control && slices.Contains(offered, name) {
			ideas = append(ideas, Setup{Congestion: name})
		}
	}
	return ideas
}

// contest measures rivals in rounds beside a base until one is shown to be better than it,
// none can be, or the budget's share is spent.
func (l *loop) contest(ctx context.Context, base Setup, rivals []Setup, first bool) (Setup, bool, error) {
	setups := append([]Setup{base}, rivals...)
	c := search.NewContest(len(rivals), mostRounds, l.expectedNoise(), l.cfg.Seed)
	runs := make([][]*Trial, len(setups))
	defer func() { l.note(c, setups, runs) }()
	for order := c.Next(); len(order) > 0; order = c.Next() {
		round := time.Duration(0)
		for _, i := range order {
			round += l.span(setups[i])
		}
		if round += l.proofTime(rivals); !l.affords(round, 1) && !(first && l.extend(c)) {
			break
		}
		ran := map[int]Trial{}
		for _, i := range order {
			reason := "does this help?"
			if i == 0 {
				reason = "what it is compared with"
			}
			t, err := l.tryFor(ctx, l.with(setups[i], l.length(setups[i]), reason))
			if ctx.Err() != nil || err != nil && i == 0 {
				return base, false, err
			}
			if err != nil {
				l.warn("%s could not be tried: %v", setups[i], err)
				continue
			}
			ran[i] = t
			runs[i] = append(runs[i], &t)
			if !t.shared {
				l.throughStreams(&t)
			}
		}
		scores := map[int]float64{}
		for i, t := range ran {
			scores[i] = l.score(&t, ran[0].Goodput)
		}
		c.Observe(scores)
	}
	l.pairNoise = c.Noise()
	best, ok := c.Best()
	return setups[best], ok, nil
}

// proofTime is what the proof of one of the setups will take.
func (l *loop) proofTime(setups []Setup) time.Duration {
	longest := time.Duration(0)
	for _, s := range setups {
		longest = max(longest, l.span(s))
	}
	return fewestProof * (l.span(Setup{}) + longest)
}

// extend doubles a budget that nobody stated, once, where nothing was compared yet, or where
// something seems to help by a tenth and is not shown to: decisions that are still open are
// what more time is for.
func (l *loop) extend(c *search.Contest) bool {
	if l.cfg.Budget > 0 || l.cfg.MaxBytes > 0 || l.extended || l.budget.Time > longestBudget || c.Rounds() > 0 &&
		!c.Promising() {
		return false
	}
	l.extended = true
	l.budget.Time *= 2
	l.budget.Bytes *= 2
	return true
}

// longestBudget is the largest that is doubled without being asked for.
const longestBudget = time.Minute

// note enters what a contest told of each rival.
func (l *loop) note(c *search.Contest, setups []Setup, runs [][]*Trial) {
	for i := 1; i < len(setups); i++ {
		if len(runs[i]) == 0 {
			continue
		}
		r := Remedy{Name: setups[i].String(), Setup: setups[i], Beside: setups[0],
			Goodput: stats.Median(goodputs(runs[i])), Runs: c.Runs(i), Gain: c.Gain(i),
			Spec: withDirection(l.with(setups[i], l.length(setups[i]), "").Spec, l.out.Direction)}
		if l.cfg.Goal == Fair && len(runs[0]) > 0 {
			r.Others = othersOf(runs[0], runs[i], stats.Noise{}).Factor.Mid
		}
		l.out.Remedies = append(l.out.Remedies, r)
	}
}

// throughStreams takes what several streams tell of the path where one window, cut short
// by a ceiling, cannot.
func (l *loop) throughStreams(t *Trial) {
	p := &l.out.Path
	if t.Spec.Streams < 2 || !l.answer.Clipped || t.Goodput < 1.2*p.CapacityBps {
		return
	}
	p.CapacityBps, p.LoadedRTT = t.Goodput, t.result.MeanRTT()
	l.size(t.result)
	if l.cfg.MaxBytes == 0 { // it was counted for a slower path
		l.budget.Bytes = max(l.budget.Bytes, l.config().Budget().Bytes)
	}
}

// expectedNoise is what one transfer's goodput is expected to scatter by, as a share, from
// how the best transfers' own spans differ.
func (l *loop) expectedNoise() float64 {
	noise := 0.03
	for _, t := range l.of(func(t *Trial) bool { return t.Goodput > l.best/2 }) {
		noise = min(noise, scatter(t.result, l.round))
	}
	return noise
}

// unproven says how far the most promising remedy came where none was shown; "" if none
// seemed to help.
func (l *loop) unproven() string {
	var best *Remedy
	for i := range l.out.Remedies {
		r := &l.out.Remedies[i]
		if r.Gain.Low <= 1 && r.Gain.Mid >= 1.1 && (best == nil || r.Gain.Mid > best.Gain.Mid) {
			best = r
		}
	}
	if best == nil {
		return ""
	}
	times := "in one run"
	if best.Runs > 1 {
		times = fmt.Sprintf("in %d runs", best.Runs)
	}
	return fmt.Sprintf("%s gave × %.2f %s, not proven yet: --budget %s", best.Name, best.Gain.Mid, times,
		(2 * l.budget.Time).Round(time.Second))
}
