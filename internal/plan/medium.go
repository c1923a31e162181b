package plan

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Shared is what one window for several paths gives on one of them, and what it costs there.
type Shared struct {
	RateBps float64        `json:"rate_bps"`
	RTT     units.Duration `json:"rtt_s"`
	Window  int            `json:"window_bytes"` // that the path alone would want
	// Goodput is the share of the path's rate that the one window fills, Lost the rest.
	Goodput float64 `json:"goodput_ratio"`
	// Full is the round trip once a window that is too large stands in the path's queue, and
	// Delay what that adds.
	Full   units.Duration `json:"full_rtt_s"`
	Lost   float64        `json:"lost_goodput_ratio"`
	Delay  units.Duration `json:"added_delay_s"`
	Memory int            `json:"unused_memory_bytes"` // of each connection's window
}

// HappyMedium is the one window for all paths that does least harm on the worst: too small
// by a factor costs goodput by that factor, too large lengthens the round trip by it. Equal
// factors at both ends make it the geometric mean of the smallest and the largest need. It
// is an even number of segments.
func HappyMedium(paths []Path) int {
	mss := paths[0].mss()
	needs := make([]float64, len(paths))
	for i, p := range paths {
		needs[i] = math.Max(p.received().fit(), float64(2*mss))
	}
	least := slices.Min(needs)
	most := slices.Max(needs)
	worst := func(window int) float64 { return math.Max(most/float64(window), float64(window)/least) }
	window := model.Window(math.Sqrt(least*most), mss)
	if less := window - 2*mss; less > 0 && worst(less) < worst(window) {
		window = less
	}
	return window
}

// shares are what one window gives on each of several paths.
func shares(paths []Path, window int) (all []Shared) {
	for _, p := range paths {
		p = p.received()
		p.MSS = p.mss()
		fit := p.fit()
		empty := p.round()
		full := max(empty, time.Duration(math.Min(float64(empty)*float64(window)/fit, math.MaxInt64/2)))
		alone := p.window()
		goodput := math.Min(1, p.Fills(window))
		all = append(all, Shared{RateBps: p.RateBps, RTT: units.Duration(p.RTT), Window: alone,
			Memory: max(window-alone, 0), Goodput: goodput, Lost: 1 - goodput, Full: units.Duration(full),
			Delay: units.Duration(full - empty)})
	}
	return all
}

func (p Path) mss() int {
	if p.MSS > 0 {
		return p.MSS
	}
	return DefaultMSS
}

// needs is the larger bandwidth-delay product of both ways.
func (p Path) needs() float64 { return model.BDP(max(p.RateBps, p.BackBps), p.RTT+p.Jitter) }

// round is the round trip of a window that just fills the path.
func (p Path) round() time.Duration {
	line := p.service()
	line.RTT += p.Jitter
	round, _ := line.Round(4*p.MSS, p.MSS)
	return round
}

// fit is how many bytes of window just fill the path.
func (p Path) fit() float64 {
	p.MSS = p.mss()
	return math.Min(p.service().Capacity(p.MSS)/8*p.round().Seconds(), model.MaxWindow)
}

// NewForAll plans one set of settings for several paths. Where the target has one fixed
// window it is the happy medium; where it sizes windows by itself the ceilings follow the
// path that needs most, and each path takes what it needs.
func NewForAll(paths []Path, target Target, opt Options) (*Plan, error) {
	most := 0
	for i, p := range paths {
		if err := p.check(); err != nil {
			return nil, err
		}
		if p.needs() > paths[most].needs() {
			most = i
		}
	}
	path := paths[most]
	path.MSS = paths[0].MSS
	path.Connections = paths[0].Connections
	path.MemoryBytes = paths[0].MemoryBytes
	window := HappyMedium(paths)
	fixed := target.Family == catalog.Windows9x || target.Family == catalog.Windows2000
	if fixed {
		path.ReceiveWindow = window
	}
	p, err := New(path, target, opt)
	if err != nil {
		return nil, err
	}
	p.SharedWindow = window
	if fixed {
		if now := wholeSegments(p.presentWindow, p.Path.MSS); now > p.WindowBytes && !p.bounded {
			p.note(PresentWindowLarger, units.Size(window).Exact(), units.Size(now).Exact())
			window = now
		} else {
			p.note(OneWindowFitsWorst)
			window = p.WindowBytes
		}
		p.SharedWindow = window
	}
	p.Shared = shares(paths, window)
	if fixed {
		return p, nil
	}
	p.note(CeilingsFollowLargest, p.Shared)
	if target.Family == catalog.Linux {
		p.note(RouteClamp)
	}
	return p, nil
}
