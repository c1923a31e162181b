package tune

import (
	"context"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// fewRounds are those of one contest, and mostContest where a budget was stated that holds more.
const fewRounds, mostContest = 8, 40

// contestShare is the part of a stated budget that the rounds of two ways to send may take.
const contestShare = 0.6

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
	needs  time.Duration // what showing it would take, if its gain is what it seems to be
}

// refine looks for the best window where holding it down was what helped, or where nothing did that is tried
// before windows.
func (l *loop) refine(ctx context.Context) error {
	if l.winner == (Setup{}) && l.acksLimit() {
		return l.search(ctx)
	}
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
	if l.out.Path.CapacityBps <= 0 || l.searched != nil && l.answer.Verdict == "" {
		return nil
	}
	if l.answer.Verdict == search.Change {
		base.Window = l.answer.Asked
	}
	// One run may tell something else than the others.
	trials := l.of(func(t *Trial) bool { return t.Setup == base })
	l.today = l.measured(trials).Verdict
	left := l.lossIsLeft(trials)
	onTop := base.Window > 0 && !l.answer.Clipped
	if onTop && !left {
		return nil // the window is the answer
	}
	if left && (onTop || l.today.Limiter == verdict.Bottleneck) { // the path was seen to carry more
		l.today = verdict.Verdict{Limiter: verdict.Congestion}
	}
	for addition := 0; addition <= mostAdditions; addition++ {
		rivals := l.rivals(base)
		if len(rivals) == 0 {
			return nil
		}
		winner, ok, err := l.contest(ctx, base, rivals, addition == 0)
		if err != nil || !ok {
			if base == (Setup{}) {
				// The proof gets what the contest left of the budget.
				l.winner = winner
				l.unpicked = winner != base
			}
			return err
		}
		l.winner = winner
		base = winner
		if l.carriesAll(winner) {
			return nil
		}
	}
	return nil
}

// contest measures rivals in rounds beside a base until one is shown to be better than it,
// none can be, or the budget's share is spent.
func (l *loop) contest(ctx context.Context, base Setup, rivals []Setup, first bool) (Setup, bool, error) {
	setups := append([]Setup{base}, rivals...)
	c := search.NewContest(len(rivals), l.contestRounds(base), l.noiseOf(base), l.cfg.Seed)
	if bps, known := l.ceiling(); known {
		c.Carries(bps * (1 - l.probing()))
	}
	runs := make([][]*Trial, len(setups))
	defer func() { l.note(c, setups, runs) }()
	for order := c.Next(); len(order) > 0; order = c.Next() {
		if !l.affords(l.roundTime(c, setups, order), 1) && !(first && l.extend(c)) {
			break
		}
		ran := map[int]Trial{}
		for _, i := range order {
			reason := "does this help?"
			if i == 0 {
				reason = "what it is compared with"
			}
			t := l.with(setups[i], l.length(setups[i]), reason)
			t.inTurn = true
			t, err := l.tryFor(ctx, t)
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
	if noise, known := c.Noise(); known {
		l.pairNoise = noise
	}
	best, ok := c.Best()
	l.vain = !ok && base == Setup{} && c.Decided()
	if !ok {
		best, _ = c.Favourite()
	}
	return setups[best], ok, nil
}

// probing is the share of a long transfer that BBR leaves the path all but empty for, to see its least round trip:
// each 10 s, for the longer of 200 ms and a round trip (tcp_bbr.c, bbr_min_rtt_win_sec, bbr_probe_rtt_mode_ms).
func (l *loop) probing() float64 {
	const every, least = 10 * time.Second, 200 * time.Millisecond
	return max(least, l.round).Seconds() / every.Seconds()
}

// contestRounds is how many a contest beside a base may have.
func (l *loop) contestRounds(base Setup) int {
	pairs := contestShare * float64(l.cfg.Budget) / float64(2*l.span(base))
	return min(max(fewRounds, int(pairs)), mostContest)
}

// roundTime is what a contest's next round takes, and a proof where there may be something to prove: to
// see that nothing helps takes none, and a first look in a short budget is better than no look, where it does
// not take the time from the proof of what was found before.
func (l *loop) roundTime(c *search.Contest, setups []Setup, order []int) (round time.Duration) {
	for _, i := range order {
		round += l.span(setups[i])
	}
	found := setups[0] != Setup{}
	if c.Rounds() == 0 && (l.cfg.Budget == 0 || found) || c.Promising() {
		round += l.proofTime(setups[1:])
	}
	return round
}

// proofTime is what the proof of one of the setups will take.
func (l *loop) proofTime(setups []Setup) time.Duration {
	longest := time.Duration(0)
	for _, s := range setups {
		longest = max(longest, l.span(s))
	}
	return fewestProof * (l.span(Setup{}) + longest)
}

// extend doubles the budget where nothing was compared yet, or where something seems to help
// by a tenth and is not shown to.
func (l *loop) extend(c *search.Contest) bool {
	return (c.Rounds() == 0 || c.Promising()) && l.double()
}

// longestBudget is the largest that is doubled without being asked for.
const longestBudget = 150 * time.Second

// note enters what a contest told of each rival.
func (l *loop) note(c *search.Contest, setups []Setup, runs [][]*Trial) {
	for i := 1; i < len(setups); i++ {
		if len(runs[i]) == 0 {
			continue
		}
		r := Remedy{Name: setups[i].String(), Setup: setups[i], Beside: setups[0],
			Goodput: stats.Median(goodputs(runs[i])), Runs: c.Runs(i), Gain: c.Gain(i),
			Spec:  withDirection(l.with(setups[i], l.length(setups[i]), "").Spec, l.out.Direction),
			needs: time.Duration(c.Needs(i)+fewestProof) * (l.span(setups[0]) + l.span(setups[i]))}
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
	p.LoadedRTT = t.result.MeanRTT()
	p.CapacityBps = t.Goodput
	p.AtLeast = t.Limiter != verdict.Bottleneck
	l.size(t.result)
	if l.cfg.MaxBytes == 0 { // it was counted for a slower path
		l.budget.Bytes = max(l.budget.Bytes, l.bytesRule())
	}
}

// noiseOf is what one transfer by a setup is expected to scatter by: as its runs did, where there are
// some and loss made them differ by more than the best transfer's own spans do.
func (l *loop) noiseOf(s Setup) float64 {
	noise := l.expectedNoise()
	if runs := goodputs(l.of(func(t *Trial) bool { return t.Setup == s })); len(runs) >= enoughToday {
		noise = max(noise, stats.Pool(stats.Noise{Dev: noise, DOF: enoughToday}, stats.Logs(runs)).Dev)
	}
	return noise
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
