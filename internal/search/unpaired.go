package search

import (
	"math"
	"math/rand/v2"
	"sort"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Unpaired compares one candidate with the baseline where losses scatter single runs, by unequal numbers of runs: few
// of a steady candidate, many of a scattered baseline (optimal allocation: Neyman, J. R. Stat. Soc. 97-4, 1934).
// Welch's t test on the logarithms of the goodputs decides (Biometrika 34, 1947).
//
//  1. pilot: a few runs of both, in alternation.
//  2. plan: from the scatter of both and the gain, the number of runs that show the gain.
//  3. runs: each is made where it reduces the variance of the gain the most.
//  4. look: the gain is shown, ruled out or planned again.
type Unpaired struct {
	runs    [2][]float64 // logarithms of goodputs: of the baseline and of the candidate
	least   float64      // the smallest standard deviation that is believed
	looks   int
	planned int // runs in total before the next look
	outcome Verdict
	rng     *rand.Rand
}

const (
	// pilotBaseline and pilotCandidate are the runs before the first look.
	pilotBaseline, pilotCandidate = 3, 4
	// maxLooks is how often an Unpaired is looked at.
	maxLooks = 3
	// power is the probability of showing the gain with the planned runs, if it is what it seems to be.
	power = 0.8
	// lookLevel is the probability of one bound at one look: all of them together keep ComparisonError (simulated).
	lookLevel = 1 - ComparisonError/4
	// assumedScatter is the candidate's scatter, as a share of the baseline's, that counts as one run of its own: a few
	// runs that happen to agree, or that all reach the link's rate, do not show a steady candidate.
	assumedScatter = 0.5
	// maxPlanned bounds the runs of a plan.
	maxPlanned = 400
	// beyondReach is how many times the runs that are left a plan may need, which is a guess, to be followed.
	beyondReach = 4
)

// NewUnpaired returns an Unpaired. Noise is the standard deviation, as a share, that a run has at the least.
func NewUnpaired(noise float64, seed uint64) *Unpaired {
	return &Unpaired{least: noise, planned: pilotBaseline + pilotCandidate, outcome: Inconclusive,
		rng: rand.New(rand.NewPCG(seed, 3))}
}

// Next returns what to run now: 0 is the baseline, 1 the candidate. left is how many runs may still be made. It returns
// false when the comparison is decided, or the runs that are left would not decide it.
func (u *Unpaired) Next(left int) (number int, more bool) {
	if u.outcome != Inconclusive || u.looks >= maxLooks {
		return 0, false
	}
	if u.total() < u.planned && left > 0 {
		return u.pick(), true
	}
	u.look()
	if u.outcome != Inconclusive || left <= 0 || u.looks >= maxLooks {
		return 0, false
	}
	needs := u.Needs()
	if needs > beyondReach*left {
		return 0, false
	}
	u.planned = u.total() + max(1, min(needs, left))
	return u.pick(), true
}

// Observe takes a run's goodput in bit/s: of the baseline as number 0, of the candidate as 1.
func (u *Unpaired) Observe(number int, goodput float64) {
	u.runs[number] = append(u.runs[number], math.Log(max(goodput, 1)))
}

func (u *Unpaired) total() int { return len(u.runs[0]) + len(u.runs[1]) }

// pick returns the side of the next run.
func (u *Unpaired) pick() int {
	n := [2]int{len(u.runs[0]), len(u.runs[1])}
	switch {
	case n[0] >= pilotBaseline && n[1] >= pilotCandidate:
		return allocate(u.dev(0), u.dev(1), n)
	case n[0] == n[1]:
		return u.rng.IntN(2)
	case n[0] > n[1]:
		return 1
	}
	return 0
}

// allocate returns the side whose next run reduces the variance of the difference the most.
func allocate(baseline, candidate float64, n [2]int) int {
	reduces := func(dev float64, n int) float64 { return dev * dev / float64(n*(n+1)) }
	if reduces(candidate, n[1]) > reduces(baseline, n[0]) {
		return 1
	}
	return 0
}

// dev returns the standard deviation of a single run of a side (0 baseline, 1 candidate), estimated from its runs.
func (u *Unpaired) dev(number int) float64 { return u.devOf(number, len(u.runs[number])) }

// devOf returns the standard deviation of a single run as if the side had n runs with the scatter so far.
func (u *Unpaired) devOf(number, n int) float64 {
	_, dev := stats.MeanDev(u.runs[number])
	if number == 1 && n > 0 {
		assumed := assumedScatter * u.dev(0)
		dev = math.Sqrt((assumed*assumed + float64(n-1)*dev*dev) / float64(n))
	}
	return max(dev, u.least)
}

// look decides by the runs so far.
func (u *Unpaired) look() {
	u.looks++
	if min(len(u.runs[0]), len(u.runs[1])) < 2 {
		return
	}
	gain := u.Gain()
	switch mid := math.Log(gain.Mid); {
	case gain.Low > 1:
		u.outcome = Change
	case mid+u.standardError() < math.Log(worthwhile):
		u.outcome = NoChange
	}
}

// Outcome returns the decision: Change where a gain is shown, NoChange where none that matters is likely.
func (u *Unpaired) Outcome() Verdict { return u.outcome }

// Gain returns the candidate's factor over the baseline, with an interval at the level of one look.
func (u *Unpaired) Gain() stats.Interval { return u.welch(lookLevel) }

// Interval returns the same factor with its interval at a confidence.
func (u *Unpaired) Interval(confidence float64) stats.Interval { return u.welch((1 + confidence) / 2) }

// welch bounds the factor on each side with a probability.
func (u *Unpaired) welch(probability float64) stats.Interval {
	if len(u.runs[0]) == 0 || len(u.runs[1]) == 0 {
		return stats.Interval{Low: 0, Mid: math.NaN(), High: math.Inf(1)}
	}
	base, _ := stats.MeanDev(u.runs[0])
	mean, _ := stats.MeanDev(u.runs[1])
	mid := mean - base
	n := [2]int{len(u.runs[0]), len(u.runs[1])}
	if min(n[0], n[1]) < 2 {
		return stats.Interval{Low: 0, Mid: math.Exp(mid), High: math.Inf(1)}
	}
	e, dof := welchError(u.dev(0), u.dev(1), n)
	half := stats.Student(probability, dof) * e
	return stats.Interval{Low: math.Exp(mid - half), Mid: math.Exp(mid), High: math.Exp(mid + half)}
}

func (u *Unpaired) standardError() float64 {
	e, _ := welchError(u.dev(0), u.dev(1), [2]int{len(u.runs[0]), len(u.runs[1])})
	return e
}

// welchError returns the standard error of a difference of two means, and its degrees of freedom by Welch and
// Satterthwaite.
func welchError(baseline, candidate float64, n [2]int) (standard, dof float64) {
	b := baseline * baseline / float64(n[0])
	c := candidate * candidate / float64(n[1])
	return math.Sqrt(b + c), math.Floor((b + c) * (b + c) / (b*b/float64(n[0]-1) + c*c/float64(n[1]-1)))
}

// Needs returns how many more runs show the gain with the probability power, given the gain and scatter so far. For a
// gain smaller than the one that matters it returns the runs that would show that one. Before each side has two runs it
// returns the rest of the pilot runs.
func (u *Unpaired) Needs() int {
	if min(len(u.runs[0]), len(u.runs[1])) < 2 {
		return pilotBaseline + pilotCandidate - u.total()
	}
	sought := math.Max(math.Log(u.Gain().Mid), math.Log(worthwhile))
	first := max(0, pilotBaseline+pilotCandidate-u.total())
	// A deviation of few runs is more often too small than too large.
	scatter := u.dev(0) * (1 + 1/float64(len(u.runs[0])-1))
	return first + sort.Search(maxPlanned, func(more int) bool {
		n := u.split(u.total() + first + more)
		e, dof := welchError(scatter, u.devOf(1, n[1]), n)
		return (stats.Student(lookLevel, dof)+stats.Student(power, dof))*e <= sought
	})
}

// split divides a number of runs in proportion to the scatter of the sides, and takes none away that was made.
func (u *Unpaired) split(total int) (n [2]int) {
	n[1] = len(u.runs[1])
	for range 2 { // the candidate's scatter depends on its runs
		dev := u.devOf(1, n[1])
		n[1] = int(math.Round(float64(total) * dev / (u.dev(0) + dev)))
		n[1] = min(max(n[1], len(u.runs[1]), pilotCandidate), total-max(len(u.runs[0]), pilotBaseline))
	}
	n[0] = total - n[1]
	return n
}

// Runs returns how many runs a side has had.
func (u *Unpaired) Runs(number int) int { return len(u.runs[number]) }
