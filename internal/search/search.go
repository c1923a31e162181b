// Package search finds the smallest window that carries a path at full rate, by noisy trials: a state machine without a
// clock. Next returns the trial to make, Observe takes its outcome, Answer returns the conclusion.
//
// The axis is the effective window. Three facts of TCP spare most trials. No window w carries more than w per round
// trip, so no window below 98 % of the best goodput times the least round trip can be enough. Goodput per window never
// rises with the window, so a trial bounds all windows up to the next one. No goodput exceeds the path's capacity. The
// search tries the windows that these bounds leave open and repeats them in random order until one is shown to be
// enough, one-sided at 95 %, or the budget is spent.
package search

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Enough is the share of the best goodput that a window has to reach.
const Enough = 0.98

// modelShare is the model's window over the knee: a little beyond it, so that a knee
// that is estimated 1 or 2 % low still fills the path.
const modelShare = 1.03

// mostTrials ends a search whatever its trials cost.
const mostTrials = 200

// Config describes the path as one unrestricted transfer showed it. Rates count payload.
type Config struct {
	MSS         int
	RTT         time.Duration // the least round trip
	CapacityBps float64       // the most that the path seemed to carry
	// Knee is the window that should just fill the path, in bytes: rate × (RTT + jitter) and the aggregated data.
	Knee float64
	// Noise is the standard deviation, as a share, that one trial is expected to have;
	// 0: 1 %. It counts little once trials were repeated.
	Noise   float64
	Largest int           // the largest window that may be tried; 0: 8 × Knee
	Time    time.Duration // the search's limit; 0: its Share of Budget
	Bytes   int64         // 0: its Share of Budget
	Seed    uint64        // of the random order
	// Rounds is how many round trips a transfer lasts for at least after slow start; 0: FewRounds.
	Rounds int
	// Burst is how long the path lets more through at first than later, as a policer's bucket does.
	Burst time.Duration
}

// Trial is one transfer to make: with automatic sizing as the systems have it, or with
// the effective window limited to Window bytes.
type Trial struct {
	Automatic bool
	Window    int
	Time      time.Duration
	Bytes     int64 // unspent: the transfer ends there if that comes first
	Purpose   Purpose
}

// Purpose is why a trial is made, as a code; package text has its words.
type Purpose string

// Purposes of a search's trials.
const (
	AutomaticSizing Purpose = "automatic"
	ModelWindow     Purpose = "model"
	WideWindow      Purpose = "wide"
	SuspectedStall  Purpose = "stall"
	MoreRoom        Purpose = "room"
	LessEnough      Purpose = "less-enough"
	OnceMore        Purpose = "once-more"
	AutomaticAsGood Purpose = "automatic-as-good"
	WindowEnough    Purpose = "window-enough"
)

// Outcome is what a trial gave.
type Outcome struct {
	GoodputBps float64 // without slow start
	// Window is the effective window that the trial reached; 0: not known, as asked.
	Window  int
	Clipped bool // the system gave less than was asked
	// Lossless says that nothing was retransmitted: then no smaller window can be better.
	Lossless bool
	Elapsed  time.Duration
	Bytes    int64
}

// Search is one direction's search. Make it with New.
type Search struct {
	cfg       Config
	rng       *rand.Rand
	automatic *arm
	windows   []*arm // by window, ascending
	ceiling   int    // the limit that clipped requests got; MaxWindow while none was clipped
	asked     []int  // every window that was asked for
	time      time.Duration
	bytes     int64
	trials    int
	probes    int
	resumed   bool // More was asked for
	student   map[int]float64
}

// arm is one candidate and the logarithms of its goodputs.
type arm struct {
	window int // effective
	asked  int // the request that gave it
	logs   []float64
	lossy  bool
}

func (a *arm) mid() float64 { return stats.Middle(a.logs) }

// New starts a search.
func New(cfg Config) *Search {
	cfg.MSS = max(cfg.MSS, 1)
	smallest := 2 * float64(cfg.MSS)
	cfg.Knee = math.Min(math.Max(cfg.Knee, smallest), model.MaxWindow)
	if cfg.Largest == 0 {
		cfg.Largest = int(math.Min(8*cfg.Knee, model.MaxWindow))
	}
	if cfg.Noise == 0 {
		cfg.Noise = 0.01
	}
	cfg.Largest = max(cfg.Largest, int(smallest))
	budget := cfg.Budget()
	if cfg.Time == 0 {
		cfg.Time = time.Duration(Share * float64(budget.Time))
	}
	if cfg.Bytes == 0 {
		cfg.Bytes = int64(Share * float64(budget.Bytes))
	}
	return &Search{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0)), automatic: &arm{}, ceiling: model.MaxWindow,
		student: map[int]float64{}}
}

// Next is the trial to make now; false when everything is decided or the budget is
// spent.
func (s *Search) Next() (Trial, bool) {
	for _, step := range []func() (Trial, bool){s.begin, s.doubt, s.explore, s.refine, s.confirm} {
		if t, ok := step(); ok {
			t.Time = s.cfg.Length(t.Window)
			t.Bytes = s.cfg.Bytes - s.bytes
			return t, s.affords(t)
		}
	}
	return Trial{}, false
}

// More lets the search spend that much from now on, beyond what it has spent.
func (s *Search) More(b Budget) {
	s.cfg.Time = s.time + b.Time
	s.cfg.Bytes = s.bytes + b.Bytes
	s.resumed = true
}

// Observe takes the outcome of a trial. It is counted as the window that was effective,
// never as the one that was asked for.
func (s *Search) Observe(t Trial, o Outcome) {
	s.trials++
	s.time += o.Elapsed
	s.bytes += o.Bytes
	if !(o.GoodputBps > 0) {
		o.GoodputBps = 1 // nothing arrived
	}
	a := s.automatic
	switch {
	case t.Automatic && o.Window > 0:
		a.window = o.Window
	case !t.Automatic:
		window := t.Window
		if o.Window > 0 {
			window = o.Window
		}
		if o.Clipped {
			s.ceiling = min(s.ceiling, window)
		}
		a = s.arm(window)
		a.asked = t.Window
		s.asked = append(s.asked, t.Window)
	}
	a.logs = append(a.logs, math.Log(o.GoodputBps))
	a.lossy = a.lossy || !o.Lossless
}

// arm finds the candidate of a window, or makes it; two windows closer than a segment
// or 2 % are one.
func (s *Search) arm(window int) *arm {
	i, _ := slices.BinarySearchFunc(s.windows, window, func(a *arm, w int) int { return a.window - w })
	for _, j := range []int{i - 1, i} {
		if j >= 0 && j < len(s.windows) && s.same(s.windows[j].window, window) {
			return s.windows[j]
		}
	}
	a := &arm{window: window}
	s.windows = slices.Insert(s.windows, i, a)
	return a
}

func (s *Search) same(a, b int) bool {
	apart := max(a, b) - min(a, b)
	return apart < s.cfg.MSS || float64(apart) < 0.02*float64(a)
}

// begin tries what the search starts from, in random order: automatic sizing, the
// model's window, and a window far above it where none was tried.
func (s *Search) begin() (Trial, bool) {
	var first []Trial
	if len(s.automatic.logs) == 0 {
		first = append(first, Trial{Automatic: true, Purpose: AutomaticSizing})
	}
	if knee := s.whole(modelShare * s.cfg.Knee); !s.tried(knee) {
		first = append(first, Trial{Window: knee, Purpose: ModelWindow})
	}
	above := func(a *arm) bool { return float64(a.window) > 2*s.cfg.Knee }
	if wide := s.whole(4 * s.cfg.Knee); !s.tried(wide) && !slices.ContainsFunc(s.windows, above) {
		first = append(first, Trial{Window: wide, Purpose: WideWindow})
	}
	switch {
	case len(first) == 0:
		return Trial{}, false
	case s.cfg.Time < 8*s.cfg.Length(0):
		return first[0], true // the most important one, for it may be the last
	}
	return first[s.rng.IntN(len(first))], true
}

// tried says that a window was reached, or asked for and not reached.
func (s *Search) tried(window int) bool {
	return slices.ContainsFunc(s.asked, func(w int) bool { return s.same(w, window) }) ||
		slices.ContainsFunc(s.windows, func(a *arm) bool { return s.same(a.window, window) })
}

// whole rounds a window to whole segments, up to an even number where that is a small
// step, within what may be tried.
func (s *Search) whole(bytes float64) int {
	limit := min(s.cfg.Largest, s.ceiling)
	window := model.Window(bytes, s.cfg.MSS)
	if bytes < 64*float64(s.cfg.MSS) {
		window = int(math.Round(bytes/float64(s.cfg.MSS))) * s.cfg.MSS
	}
	return min(max(window, 2*s.cfg.MSS), limit)
}

// affords reports whether the budget allows another trial, with some bytes to spare
// because nobody knows what it will carry.
func (s *Search) affords(t Trial) bool {
	bytes := 1.1 * s.cfg.CapacityBps / 8 * t.Time.Seconds()
	if !t.Automatic {
		bytes = math.Min(bytes, float64(t.Window)*t.Time.Seconds()/s.cfg.RTT.Seconds())
	}
	return s.trials < mostTrials && s.time+t.Time <= s.cfg.Time && float64(s.bytes)+bytes <= float64(s.cfg.Bytes)
}
