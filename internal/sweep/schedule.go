package sweep

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Rules set how often cells are measured and when a sweep ends.
type Rules struct {
	// Precision is the maximum half-width of a cell's 95 % interval as a share of its middle; 0: each cell gets MinRuns
	// runs.
	Precision float64
	MinRuns   int // runs of each cell before its interval counts; 0 is 3
	MaxRuns   int // runs of a cell that does not reach the precision; 0 is 10
	// Budget is the maximum time of all runs together; 0: unlimited.
	Budget time.Duration
	Seed   uint64 // of the random order
}

// maxFailures is the number of failures after which a cell is dropped.
const maxFailures = 3

// Schedule selects the next cell to measure. It has no clock, and its order depends only on the seed and the runs.
//
// Cells are measured in rounds, each in another random order, so that slow drift does not appear as a pattern of the
// grid. The corners of the grid come first, because they show the path; then all other cells; then repeats of cells
// with a wide interval.
type Schedule struct {
	cells     []record.SweepSetup
	rules     Rules
	logs      [][]float64       // of the good runs' goodputs
	intervals []*stats.Interval // of the same; nil: not computed since the last run
	failures  []int
	refused   []string // the reason why a cell is impossible; "": it is possible
	rank      map[int][]int
	first     []bool // measured before the others
	runs      []Trial
	elapsed   time.Duration
}

// NewSchedule returns a Schedule without runs.
func NewSchedule(axes Axes, rules Rules) *Schedule {
	cells := axes.Cells()
	if rules.MinRuns <= 0 {
		rules.MinRuns = 3
	}
	if rules.MaxRuns <= 0 {
		rules.MaxRuns = 10
	}
	rules.MinRuns = min(rules.MinRuns, rules.MaxRuns)
	s := &Schedule{cells: cells, rules: rules, logs: make([][]float64, len(cells)), intervals: make([]*stats.Interval,
		len(cells)), failures: make([]int, len(cells)),
		refused: make([]string, len(cells)), first: make([]bool, len(cells)), rank: map[int][]int{}}
	for i, c := range cells {
		s.first[i] = extreme(axes.Send, c.Send) && extreme(axes.Receive, c.Receive)
	}
	return s
}

// extreme reports whether a value is at either end of its axis. Automatic sizing may be anywhere, so the value before
// it counts too.
func extreme(axis []int, value int) bool {
	last := len(axis) - 1
	return value == axis[0] || value == axis[last] || axis[last] == 0 && last > 0 && value == axis[last-1]
}

// Refuse removes an impossible cell.
func (s *Schedule) Refuse(cell int, why string) { s.refused[cell] = why }

// Observe adds one run.
func (s *Schedule) Observe(r Trial) {
	s.runs = append(s.runs, r)
	s.elapsed += r.Elapsed
	if r.Problem != "" {
		s.failures[r.Cell]++
		return
	}
	s.intervals[r.Cell] = nil
	s.logs[r.Cell] = append(s.logs[r.Cell], math.Log(r.GoodputBps))
}

// Next returns the cell to measure, or false if no cell is left or the budget is spent.
func (s *Schedule) Next() (int, bool) {
	if s.rules.Budget > 0 && len(s.runs) > 0 && s.elapsed+s.typical() > s.rules.Budget {
		return 0, false
	}
	best := [3]int{}
	found := -1
	for i := range s.cells {
		if s.Done(i) {
			continue
		}
		round := len(s.logs[i]) + s.failures[i]
		key := [3]int{round, 1, s.place(round, i)}
		if s.first[i] {
			key[1] = 0
		}
		if found < 0 || slices.Compare(key[:], best[:]) < 0 {
			best = key
			found = i
		}
	}
	return found, found >= 0
}

// place returns a cell's position in a round's random order.
func (s *Schedule) place(round, cell int) int {
	order, known := s.rank[round]
	if !known {
		order = rand.New(rand.NewPCG(s.rules.Seed, uint64(round))).Perm(len(s.cells))
		s.rank[round] = order
	}
	return order[cell]
}

// typical returns the mean time of a run.
func (s *Schedule) typical() time.Duration { return s.elapsed / time.Duration(len(s.runs)) }

// Done reports whether a cell needs no further run.
func (s *Schedule) Done(cell int) bool {
	n := len(s.logs[cell])
	return s.refused[cell] != "" || n == 0 && s.failures[cell] >= maxFailures || n >= s.rules.MaxRuns ||
		n+s.failures[cell] >= s.rules.MaxRuns+maxFailures ||
		s.precise(cell)
}

// precise reports whether a cell's interval is within the requested precision.
func (s *Schedule) precise(cell int) bool {
	return len(s.logs[cell]) >= s.rules.MinRuns &&
		(s.rules.Precision == 0 || s.Interval(cell).Within(s.rules.Precision))
}

// Interval returns the 95 % confidence interval of a cell's goodput.
func (s *Schedule) Interval(cell int) stats.Interval {
	if s.intervals[cell] == nil {
		goodputs := make([]float64, len(s.logs[cell]))
		for i, l := range s.logs[cell] {
			goodputs[i] = math.Exp(l)
		}
		interval := stats.Estimate(goodputs, 0.95)
		s.intervals[cell] = &interval
	}
	return *s.intervals[cell]
}

// mid returns a cell's goodput.
func (s *Schedule) mid(cell int) float64 { return s.Interval(cell).Mid }

// Progress returns the number of finished cells, and the share (0 to 1) of the runs that are certainly needed, or of
// the budget if that ends first.
func (s *Schedule) Progress() (done int, share float64) {
	var made, needed int
	for i := range s.cells {
		if s.refused[i] != "" {
			done++
			continue
		}
		n := len(s.logs[i])
		if s.Done(i) {
			done++
			made = made + n
			needed = needed + n
			continue
		}
		made = made + n
		needed = needed + max(s.rules.MinRuns, n+1)
	}
	share = 1
	if needed > 0 {
		share = float64(made) / float64(needed)
	}
	if s.rules.Budget > 0 {
		share = math.Max(share, math.Min(1, float64(s.elapsed)/float64(s.rules.Budget)))
	}
	return done, share
}
