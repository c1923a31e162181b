package tune

import (
	"context"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// comparison compares other setups with the baseline, or with the setup chosen before.
type comparison struct {
	*runner
	limits    verdict.Verdict // of the setup that is compared with
	answer    search.Answer   // of the window search, before the comparison
	remedies  []Remedy
	winner    Setup       // zero: none was shown to help
	pairNoise stats.Noise // of one pair in the last comparison
	// leaderUnverified reports that the winner is the leader of a comparison that was broken off.
	leaderUnverified bool
	// noRemedyHelped reports that a comparison with the baseline was decided, and nothing in it helps.
	noRemedyHelped bool
	below          belowCapacity
	exceedance     exceedance
}

// fewRounds are the rounds of one comparison, mostRoundsStated where a stated budget allows more.
const fewRounds, mostRoundsStated = 8, 40

// comparisonShare is the part of a stated budget that the rounds of two ways to send may take.
const comparisonShare = 0.6

// mostAdditions is how many things a setup may combine besides the first.
const mostAdditions = 2

// mostStreams is where more streams are no longer a remedy.
const mostStreams = 16

// Remedy is a setup that was compared with another, in turn.
type Remedy struct {
	Name    string
	Setup   Setup
	Base    Setup // the baseline, or the setup chosen before
	Goodput float64
	Runs    int
	Spec    transfer.Spec
	// Gain is over the base: of goodput, of round trips a second where the goal is
	// Latency, or of what both flows have where it is Fair. Its interval is valid for all remedies and all looks at
	// them together with search.ComparisonError one way.
	Gain stats.Interval
	// BaselineRuns is the number of baseline runs in a comparison of unequal numbers; 0: as many as Runs.
	BaselineRuns int
	// Others is the share that another flow kept, with the goal Fair; 0: not measured.
	Others float64
	// Retransmits is the median share of the bytes sent that were retransmitted; nil: not known.
	Retransmits *float64
	needs       time.Duration // time to show the gain, if it is as estimated
	more        int           // runs that this is, of both together; 0: not counted
}

// compare finds what else than a window helps; then what helps on top of it, one thing at a time, each shown. answer is
// the window search's.
func (c *comparison) compare(ctx context.Context, answer search.Answer) error {
	c.answer = answer
	base := Setup{}
	if c.path.CapacityBps <= 0 {
		return nil
	}
	if c.answer.Verdict == search.Change {
		base.Window = c.answer.Asked
	}
	// One run may have another verdict than the others.
	trials := c.seen.runsOf(base)
	c.limits = c.seen.measured(trials).Verdict
	left := c.seen.lossIsLeft(trials)
	onTop := base.Window > 0 && !c.answer.Clipped
	if onTop && !left {
		return nil // the window is the answer
	}
	full := c.limits.Limiter == verdict.Bottleneck
	if left && (onTop || full) || full && wastes(trials) { // the path was seen to carry more, or as much with fewer losses
		c.limits = verdict.Verdict{Limiter: verdict.Congestion}
	}
	c.below.limits = c.limits
	if base == (Setup{}) && c.cfg.Goal != Fair && c.below.lacksQueue() {
		if err := c.below.probe(ctx); err != nil {
			return err
		}
	}
	for addition := 0; addition <= mostAdditions; addition++ {
		candidates := c.candidates(base)
		if len(candidates) == 0 {
			return nil
		}
		scattered := base == Setup{} && c.lossesScatterRuns()
		measure := func() (Setup, bool, error) { return c.measure(ctx, base, candidates, addition == 0) }
		if scattered {
			measure = func() (Setup, bool, error) { return c.compareScattered(ctx, candidates) }
		}
		winner, ok, err := measure()
		if err != nil || !ok {
			if base == (Setup{}) {
				// The proof gets what the comparison left of the budget.
				c.winner = winner
				c.leaderUnverified = winner != base
			}
			return err
		}
		c.winner = winner
		base = winner
		if scattered || c.carriesAll(winner) {
			return nil
		}
	}
	return nil
}

// measure compares candidates with a base in rounds until one is shown to be better than it, none can be, or the
// budget is spent.
func (c *comparison) measure(ctx context.Context, base Setup, candidates []Setup, first bool) (Setup, bool, error) {
	setups := append([]Setup{base}, candidates...)
	rounds := search.NewComparison(len(candidates), c.maxRounds(base), c.seen.noiseOf(base), c.cfg.Seed)
	if bps, known := c.ceiling(); known {
		rounds.Carries(bps * (1 - c.path.probeShare()))
	}
	runs := make([][]*Trial, len(setups))
	defer func() { c.record(rounds, setups, runs) }()
	for order := rounds.Next(); len(order) > 0; order = rounds.Next() {
		open := first && (rounds.Rounds() == 0 || rounds.Promising())
		if !c.affords(c.roundTime(rounds, setups, order), 1) && !(open && c.budget.double()) {
			break
		}
		ran := map[int]Trial{}
		for _, i := range order {
			why := Candidate
			if i == 0 {
				why = ComparedWith
			}
			t := c.with(setups[i], c.length(setups[i]), why)
			t.inTurn = true
			t, err := c.tryFor(ctx, t)
			if ctx.Err() != nil || err != nil && i == 0 {
				return base, false, err
			}
			if err != nil {
				c.notes.add(Statement{Code: NotTried, Setup: setups[i], Err: err})
				continue
			}
			ran[i] = t
			runs[i] = append(runs[i], &t)
			c.learnFromStreams(&t)
		}
		scores := map[int]float64{}
		for i, t := range ran {
			scores[i] = c.score(&t, ran[0].Goodput)
			if ratio, known := t.retransmitRatio(); known {
				rounds.Retransmits(i, ratio)
			}
		}
		rounds.Observe(scores)
	}
	if noise, known := rounds.Noise(); known {
		c.pairNoise = noise
	}
	best, ok := rounds.Best()
	c.noRemedyHelped = !ok && base == Setup{} && rounds.Decided()
	if !ok {
		best, _ = rounds.Leader()
	}
	return setups[best], ok, nil
}

// maxRounds returns how many rounds a comparison with a base may have.
func (c *comparison) maxRounds(base Setup) int {
	pairs := comparisonShare * float64(c.budget.stated.Time) / float64(2*c.span(base))
	return min(max(fewRounds, int(pairs)), mostRoundsStated)
}

// roundTime returns the time of the next round, and of a verification where there may be something to verify. A first
// round in a short budget is better than none, unless it takes the time from verifying what was found before.
func (c *comparison) roundTime(rounds *search.Comparison, setups []Setup, order []int) (round time.Duration) {
	for _, i := range order {
		round += c.span(setups[i])
	}
	found := setups[0] != Setup{}
	if rounds.Rounds() == 0 && (c.budget.stated.Time == 0 || found) || rounds.Promising() {
		longest := time.Duration(0)
		for _, s := range setups[1:] {
			longest = max(longest, c.span(s))
		}
		round += fewestProof * (c.span(Setup{}) + longest)
	}
	return round
}

// record enters what a comparison showed of each candidate.
func (c *comparison) record(rounds *search.Comparison, setups []Setup, runs [][]*Trial) {
	for i := 1; i < len(setups); i++ {
		if len(runs[i]) == 0 {
			continue
		}
		r := Remedy{Name: setups[i].String(), Setup: setups[i], Base: setups[0],
			Goodput: stats.Typical(goodputs(runs[i])), Runs: rounds.Runs(i), Gain: rounds.Gain(i),
			Retransmits: retransmits(runs[i]),
			Spec:        c.with(setups[i], c.length(setups[i]), Candidate).Spec,
			needs:       time.Duration(rounds.Needs(i)+fewestProof) * (c.span(setups[0]) + c.span(setups[i]))}
		if c.cfg.Goal == Fair && len(runs[0]) > 0 {
			r.Others = othersOf(runs[0], runs[i], stats.Noise{}).Factor
		}
		c.remedies = append(c.remedies, r)
	}
}

// learnFromStreams takes the capacity from several streams where a ceiling clips one connection's window.
func (c *comparison) learnFromStreams(t *Trial) {
	p := c.path
	if t.shared || t.Spec.Streams < 2 || !c.answer.Clipped || t.Goodput < 1.2*p.CapacityBps {
		return
	}
	p.LoadedRTT = t.result.MeanRTT()
	p.CapacityBps = t.Goodput
	p.AtLeast = t.Limiter != verdict.Bottleneck
	c.path.size(t.result)
	if c.budget.stated.Bytes == 0 { // it was counted for a slower path
		c.budget.Bytes = max(c.budget.Bytes, c.bytesRule())
	}
}

// promising returns the remedy that came furthest where none was shown; nil if none seemed to help by a tenth.
func promising(remedies []Remedy) (best *Remedy) {
	for i := range remedies {
		r := &remedies[i]
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
