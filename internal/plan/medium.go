package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Shared is what one window, the same for several paths, gives on one of them.
type Shared struct {
	RateBps float64
	RTT     time.Duration
	Window  int // that this path alone would want
	// Goodput is the share of the path's rate that the one window fills; 1 is all.
	Goodput float64
	// Full is the round trip once a window that is too large stands in the path's queue, and
	// Delay what that adds.
	Full, Delay time.Duration
	Memory      int // bytes of each connection's window that this path has no use for
}

// HappyMedium is the one window for all paths that does least harm on the worst: too small
// by a factor costs goodput by that factor, too large lengthens the round trip by it. Equal
// factors at both ends make it the geometric mean of the smallest and the largest need. It
// is an even number of segments.
func HappyMedium(paths []Path) (window int, shares []Shared) {
	mss := DefaultMSS
	if paths[0].MSS > 0 {
		mss = paths[0].MSS
	}
	needs := make([]float64, len(paths))
	for i, p := range paths {
		needs[i] = math.Max(model.BDP(p.RateBps, p.RTT+p.Jitter), float64(2*mss))
	}
	least, most := slices.Min(needs), slices.Max(needs)
	worst := func(window int) float64 { return math.Max(most/float64(window), float64(window)/least) }
	window = model.Window(math.Sqrt(least*most), mss)
	if less := window - 2*mss; less > 0 && worst(less) < worst(window) {
		window = less
	}
	for i, p := range paths {
		over := math.Max(1, float64(window)/needs[i])
		full := math.Min(float64(p.RTT+p.Jitter)*over, float64(math.MaxInt64/2))
		alone := model.Window(needs[i], mss)
		shares = append(shares, Shared{RateBps: p.RateBps, RTT: p.RTT, Window: alone, Memory: max(window-alone, 0),
			Goodput: math.Min(1, float64(window)/needs[i]), Full: time.Duration(full), Delay: time.Duration(full) - p.RTT - p.Jitter})
	}
	return window, shares
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
		if model.BDP(p.RateBps, p.RTT+p.Jitter) > model.BDP(paths[most].RateBps, paths[most].RTT+paths[most].Jitter) {
			most = i
		}
	}
	path := paths[most]
	path.MSS, path.Connections, path.MemoryBytes = paths[0].MSS, paths[0].Connections, paths[0].MemoryBytes
	window, shares := HappyMedium(paths)
	fixed := target.Family == catalog.Windows9x || target.Family == catalog.Windows2000
	if fixed {
		path.ReceiveWindow = window
	}
	p, err := New(path, target, opt)
	if err != nil {
		return nil, err
	}
	p.Shared, p.SharedWindow = shares, window
	if fixed {
		p.note("one window serves all interfaces here: it is the one that costs least on the path that it fits worst")
		return p, nil
	}
	var wants []string
	for _, s := range shares {
		wants = append(wants, fmt.Sprintf("%s x %s takes %s", units.Rate(s.RateBps), units.Time(s.RTT), units.Size(s.Window)))
	}
	p.note("windows are automatic here: the ceilings follow the largest path, %s; the one window is for programs that set their own", strings.Join(wants, ", "))
	if target.Family == catalog.Linux {
		p.note("one route alone is bounded by --route PREFIX --clamp")
	}
	return p, nil
}
