package search

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// ComparisonError is the largest probability with which any of a comparison's Gains lies above 1
// for a candidate that is just as good as the baseline, over all candidates and looks together
// (Bonferroni). Best is less strict: a separate verification has to show its pick, which
// errs by 2.5 % one way, so that both together stay below ComparisonError.
const (
	ComparisonError = 0.01
	pickError       = 0.10
)

// worthwhile is the gain below which a candidate that retransmits as much as the baseline is given up: taking it would
// not matter.
const worthwhile = 1.05

// Comparison compares ways to send. In each round every candidate that is still in the running is
// measured once with the baseline, so that drift of the path cancels out of
// their ratio. Candidates are numbered from 1 in order of preference; 0 is the baseline.
type Comparison struct {
	baseline   candidate
	candidates []candidate
	rounds     int
	most       int
	full       float64 // bit/s from which on a candidate leaves little to those after it; 0: not known
	prior      stats.Noise
	rng        *rand.Rand
}

type candidate struct {
	rounds []int     // in which it ran
	ratios []float64 // logarithms of goodput over the baseline's in the same round
	// The same two, in bit/s.
	baseline, own []float64
	retransmits   []float64 // shares of the bytes sent, where known
	out           bool
}

// NewComparison returns a Comparison of that many candidates in at most that many rounds. Noise is the
// standard deviation, as a share, that one transfer is expected to have.
func NewComparison(candidates, rounds int, noise float64, seed uint64) *Comparison {
	return &Comparison{candidates: make([]candidate, candidates), most: rounds, rng: rand.New(rand.NewPCG(seed, 2)),
		prior: stats.Noise{Dev: math.Sqrt2 * noise, DOF: 3}}
}

// Carries sets the most that any candidate can give, in bit/s. One that comes near it each time leaves nothing to those
// that are preferred less. They wait until the first has run, and as long as it does.
func (c *Comparison) Carries(bps float64) { c.full = bps / alike }

// Next returns the trials of the next round in random order, the baseline included. It returns nil when the comparison
// is decided or no rounds are left.
func (c *Comparison) Next() []int {
	if c.rounds >= c.most || c.decided() {
		return nil
	}
	running := c.running()
	if len(running) == 0 {
		return nil
	}
	order := append([]int{0}, running...)
	c.rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// running returns the candidates that were not dropped and wait for none that is preferred.
func (c *Comparison) running() (numbers []int) {
	for i := range c.candidates {
		r := &c.candidates[i]
		if r.out {
			continue
		}
		numbers = append(numbers, i+1)
		if c.full > 0 && (c.rounds == 0 || c.fills(r)) {
			break
		}
	}
	return numbers
}

// Observe takes a round's goodputs in bit/s by number; one that Next named and that is missing or not
// positive leaves the running, and without the baseline's the round does not count.
func (c *Comparison) Observe(goodputs map[int]float64) {
	asked := c.running()
	c.rounds++
	baseline := goodputs[0]
	if !(baseline > 0) {
		return
	}
	for i := range c.candidates {
		r := &c.candidates[i]
		if g := goodputs[i+1]; g > 0 {
			r.rounds = append(r.rounds, c.rounds)
			r.ratios = append(r.ratios, math.Log(g/baseline))
			r.baseline = append(r.baseline, baseline)
			r.own = append(r.own, g)
		} else if slices.Contains(asked, i+1) {
			r.out = true
		}
	}
	c.drop()
}

// Retransmits takes the share of bytes that a candidate, or the baseline as number 0, retransmitted in one run.
func (c *Comparison) Retransmits(i int, ratio float64) {
	r := &c.baseline
	if i > 0 {
		r = &c.candidates[i-1]
	}
	r.retransmits = append(r.retransmits, ratio)
}

// drop takes out candidates with nothing left to gain, and those behind by more than chance explains: two standard
// errors behind what is worth it, or one behind the leader in the rounds that both ran in. Giving up costs a gain
// at most, never a false one, so it needs no strict level.
func (c *Comparison) drop() {
	for i := range c.candidates {
		if r := &c.candidates[i]; !r.out && len(r.own) >= fewestRounds && c.fills(r) {
			for j := i + 1; j < len(c.candidates); j++ {
				c.candidates[j].out = true
			}
		}
	}
	leader := c.leader()
	for i := range c.candidates {
		r := &c.candidates[i]
		if r.out || i == leader || len(r.ratios) == 0 {
			continue
		}
		noise := c.noise()
		behind := stats.Middle(r.ratios)+2*noise.Error(len(r.ratios)) < math.Log(c.worthwhile(r))
		if ahead := c.apart(leader+1, i+1); len(ahead) > 0 {
			tolerated := alike
			if r.isCleanerThan(&c.candidates[leader]) {
				tolerated = cleanerAlike
			}
			behind = behind || stats.Middle(ahead)-noise.Error(len(ahead)) > math.Log(tolerated)
		}
		r.out = behind
	}
}

// fills reports that a candidate carried all that the path carries in each run, and leaves no losses worth sparing.
func (c *Comparison) fills(r *candidate) bool {
	return c.full > 0 && len(r.own) > 0 && slices.Min(r.own) >= c.full && !SparesLosses(0, r.retransmitRatio()) &&
		stats.Middle(r.ratios) >= math.Log(c.worthwhile(r))
}

func (c *Comparison) leader() int {
	leader := -1
	for i := range c.candidates {
		if c.candidates[i].out || len(c.candidates[i].ratios) == 0 {
			continue
		}
		if leader < 0 || stats.Middle(c.candidates[i].ratios) > stats.Middle(c.candidates[leader].ratios) {
			leader = i
		}
	}
	return leader
}

// Noise returns the scatter of one ratio's logarithm in the rounds so far, for a verification: plain
// standard deviations, for of three rounds the one that speaks against a gain is no stalled
// run. A comparison that repeated nothing knows of none.
func (c *Comparison) Noise() (of stats.Noise, known bool) {
	variance := c.prior.Dev * c.prior.Dev * c.prior.DOF
	dof := c.prior.DOF
	for i := range c.candidates {
		if ratios := c.candidates[i].ratios; len(ratios) >= 2 {
			_, dev := stats.MeanDev(ratios)
			variance += dev * dev * float64(len(ratios)-1)
			dof += float64(len(ratios) - 1)
		}
	}
	return stats.Noise{Dev: math.Sqrt(variance / dof), DOF: dof}, dof > c.prior.DOF
}

// noise is the scatter of one ratio, pooled over the candidates.
func (c *Comparison) noise() stats.Noise {
	groups := make([][]float64, 0, len(c.candidates))
	for i := range c.candidates {
		groups = append(groups, c.candidates[i].ratios)
	}
	return stats.Pool(c.prior, groups...)
}

// decided reports that the best candidate is known, or that none is worth more rounds.
func (c *Comparison) decided() bool {
	if c.rounds < fewestRounds {
		return false
	}
	if _, ok := c.Best(); ok {
		return true
	}
	return !slices.ContainsFunc(c.candidates, func(r candidate) bool {
		return !r.out && (len(r.ratios) == 0 || // it waits
			stats.Middle(r.ratios)+c.noise().Error(len(r.ratios)) > math.Log(c.worthwhile(&r)))
	})
}

// fewestRounds are what a comparison takes to see that nothing helps, fewestPicked what it
// takes to see that something may: of two runs of the baseline one may have stalled.
const (
	fewestRounds = 2
	fewestPicked = 3
)

// Gain is candidate i's factor over the baseline, with an interval at the level that one look
// at one candidate has so that the whole comparison keeps ComparisonError; fewer than three rounds
// have none, for of two runs of the baseline one may have stalled.
func (c *Comparison) Gain(i int) stats.Interval { return c.gain(i, ComparisonError) }

func (c *Comparison) gain(i int, wrong float64) stats.Interval {
	r := &c.candidates[i-1]
	if len(r.ratios) == 0 {
		return stats.Interval{Low: 0, Mid: math.NaN(), High: math.Inf(1)}
	}
	mid := stats.Middle(r.ratios)
	if len(r.ratios) < fewestPicked {
		return stats.Interval{Low: 0, Mid: math.Exp(mid), High: math.Inf(1)}
	}
	noise := c.noiseOf(r)
	half := stats.Student(1-wrong/c.looks(), math.Floor(noise.DOF)) * noise.Error(len(r.ratios))
	return stats.Interval{Low: math.Exp(mid - half), Mid: math.Exp(mid), High: math.Exp(mid + half)}
}

// above reports by ranks that a candidate seems to be better: goodput under loss has no
// deviation that few runs could show, but a candidate that was the faster each time needs none.
func (c *Comparison) above(i int) bool {
	r := &c.candidates[i-1]
	return len(r.own) >= fewestPicked &&
		stats.Shift(r.baseline, r.own, 1-2*pickError/rankLooks/float64(c.tried())).Low > 1
}

// tried returns the number of candidates that ran.
func (c *Comparison) tried() (n int) {
	for i := range c.candidates {
		if len(c.candidates[i].ratios) > 0 {
			n++
		}
	}
	return n
}

// rankLooks are as many looks at a candidate's ranks as chance counts them: runs that were the
// faster once more say little new.
const rankLooks = 2

// noiseOf returns the scatter that counts for one candidate.
func (c *Comparison) noiseOf(r *candidate) stats.Noise {
	noise := c.noise()
	if own := stats.Pool(c.prior, r.ratios); own.Dev > noise.Dev {
		return own // a control that reacts to loss scatters more than one that does not
	}
	return noise
}

func (c *Comparison) looks() float64 { return float64(len(c.candidates) * c.most) }

// Needs returns how many more rounds candidate i takes to be picked, if its factor is as estimated
// so far; 0 where it is no gain.
func (c *Comparison) Needs(i int) int {
	r := &c.candidates[i-1]
	if len(r.ratios) == 0 || stats.Middle(r.ratios) <= 0 {
		return 0
	}
	noise := c.noiseOf(r)
	t := stats.Student(1-pickError/c.looks(), math.Max(noise.DOF, manyTrials))
	rounds := math.Pow(t*trimmed*noise.Dev/stats.Middle(r.ratios), 2)
	return int(math.Ceil(math.Min(math.Max(rounds, fewestPicked), 1e4))) - len(r.ratios)
}

// Decided reports that the comparison ended because it was decided, not because it was broken off.
func (c *Comparison) Decided() bool {
	return c.rounds >= c.most || len(c.running()) == 0 || c.decided()
}

// Rounds returns the number of observed rounds.
func (c *Comparison) Rounds() int { return c.rounds }

// Runs returns how often candidate i was compared with the baseline.
func (c *Comparison) Runs(i int) int { return len(c.candidates[i-1].ratios) }
