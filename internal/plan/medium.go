package plan

import (
	"math"
	"slices"
	"sort"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Shared is the effect of one window for several paths on one of them.
type Shared struct {
	RateBps float64        `json:"rate_bps"`
	RTT     units.Duration `json:"rtt_s"`
	Window  int            `json:"window_bytes"` // that the path alone would want
	// Goodput is the share of the path's rate that the window and the send buffer fill, Lost the rest.
	Goodput float64 `json:"goodput_ratio"`
	// Delay is the longest time that other packets wait for the window's segments in the path's queue. Full is the round
	// trip with it.
	Full   units.Duration `json:"full_rtt_s"`
	Lost   float64        `json:"lost_goodput_ratio"`
	Delay  units.Duration `json:"added_delay_s"`
	Memory int            `json:"unused_memory_bytes"` // of each connection's window
}

// LeastWindow returns the smallest window, an even number of segments, with which each path has 95 % of its rate.
func LeastWindow(paths []Path) int {
	window := 0
	for _, p := range paths {
		window = max(window, p.leastWindow())
	}
	return window
}

// leastWindow returns the smallest window, an even number of segments, that gives one connection 95 % of its rate in
// both directions.
func (p Path) leastWindow() int {
	p.MSS = p.mss()
	p = p.ofOneFlow()
	pair := 2 * p.MSS
	maxPairs := int(math.Ceil(max(p.fit(), p.received().fit())/float64(pair))) + 1
	pairs := sort.Search(maxPairs, func(n int) bool {
		return n > 0 && p.Fills(n*pair) >= enough && p.received().Fills(n*pair) >= enough
	})
	return max(pairs, 1) * pair
}

// windowWithin returns the largest window, an even number of segments, that adds no more than delay to the round trip;
// 0: two segments add more.
func (p Path) windowWithin(delay time.Duration) int {
	p.MSS = p.mss()
	p = p.ofOneFlow()
	pair := 2 * p.MSS
	largest := math.MaxInt
	for _, way := range []Path{p, p.received()} {
		bytes := math.Min(model.BDP(way.RateBps, p.RTT+p.Jitter+delay)/p.onLine(), model.MaxWindow)
		largest = min(largest, int(bytes)/pair*pair)
	}
	return largest
}

// queueing returns the longest time that a window's bytes wait in the path's queue: their time at the path's rate that
// exceeds the round trip.
func (p Path) queueing(window int) time.Duration {
	return max(0, model.RTT(window, p.RateBps/p.onLine())-p.RTT-p.Jitter)
}

// onLine returns the bytes on the line for a byte of payload: headers take their time in the queue too.
func (p Path) onLine() float64 {
	return float64(p.mss()+max(p.headers, model.IPHeaders)+p.Overhead) / float64(p.mss())
}

// shares returns the rate and the delay of one window on each of several paths: the host receives at most window bytes
// a round trip and sends at most send bytes. The rate is the lower of both, the delay the longer.
func shares(paths []Path, role Role, window, send int) (all []Shared) {
	for _, p := range paths {
		p.MSS = p.mss()
		p = p.ofOneFlow()
		s := Shared{RateBps: p.received().RateBps, RTT: units.Duration(p.RTT), Window: p.received().window(), Goodput: 1}
		if role.has(Sender) {
			s.add(p, send)
		}
		if role.has(Receiver) {
			s.add(p.received(), window)
			s.Memory = max(window-s.Window, 0)
		}
		s.Lost = 1 - s.Goodput
		all = append(all, s)
	}
	return all
}

// add enters the rate and the delay of a window in one direction.
func (s *Shared) add(way Path, window int) {
	s.Goodput = min(s.Goodput, way.Fills(window))
	s.Delay = max(s.Delay, units.Duration(way.queueing(window)))
	s.Full = units.Duration(way.RTT+way.Jitter) + s.Delay
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

// NewForAll plans one set of settings for several paths. Where the target has one fixed window it is the least that
// costs no path more than 5 % of its rate. opt.MaxDelay bounds the delay that it adds to a round trip. Where the
// target sizes windows by itself the ceilings follow the path that needs most, and each path grows its own.
func NewForAll(paths []Path, target Target, opt Options) (*Plan, error) {
	largest := 0
	stated := paths
	paths = slices.Clone(paths)
	for i, p := range stated {
		if err := p.check(); err != nil {
			return nil, err
		}
		paths[i] = p.inSegments(opt.Timestamps)
	}
	for i, p := range paths {
		if p.needs() > paths[largest].needs() {
			largest = i
		}
	}
	path := stated[largest]
	path.MSS = stated[0].MSS
	path.Connections = stated[0].Connections
	path.MemoryBytes = stated[0].MemoryBytes
	needed := LeastWindow(paths)
	window := needed
	allowed := max(paths[narrowestOf(paths, opt.MaxDelay)].windowWithin(opt.MaxDelay), 2*paths[0].MSS)
	if opt.MaxDelay > 0 {
		window = min(window, allowed)
	}
	_, fixed := fixedSizes[target.Family]
	if fixed {
		path.ReceiveWindow = window
		path.maxWindow = allowed
		if opt.MaxDelay <= 0 {
			path.maxWindow = 0
		}
	}
	p, err := New(path, target, opt)
	if err != nil {
		return nil, err
	}
	send := window
	if fixed {
		now := WholeSegments(p.presentWindow, p.Path.MSS)
		if now > p.WindowBytes && !p.bounded {
			p.note(PresentWindowLarger, units.Size(window).Exact(), units.Size(now).Exact())
			window = now
		} else {
			window = p.WindowBytes // the target or the memory may bound it
			if window >= needed {
				p.note(LeastWindowForAll)
			}
		}
		send = p.SendBytes
		if !p.bounded {
			send = max(send, p.presentSend)
		}
	}
	p.SharedWindow = window
	p.SharedSend = send
	p.Shared = shares(paths, p.Role, window, send)
	p.warnDelay(paths, opt.MaxDelay)
	p.noteEachPath(paths, target)
	return p, nil
}

// maxUsualQueue is the queueing delay from which other programs' handshakes on the path time out (RFC 6298 section 2:
// 1 s for the first SYN).
const maxUsualQueue = time.Second

// warnDelay warns of paths whose queue no window keeps below maxDelay, and of those that need a larger window; 0: there
// is no bound.
func (p *Plan) warnDelay(paths []Path, maxDelay time.Duration) {
	if maxDelay <= 0 {
		for i, s := range p.Shared {
			if time.Duration(s.Delay) > maxUsualQueue {
				p.warn(LongQueue, units.Size(max(p.SharedWindow, p.SharedSend)).Exact(), paths[i],
					units.Time(time.Duration(s.Delay)))
			}
		}
		return
	}
	mss := paths[0].MSS
	narrowest := narrowestOf(paths, maxDelay)
	allowed := max(paths[narrowest].windowWithin(maxDelay), 2*mss)
	for i, least := range shares(paths, Both, 2*mss, 2*mss) {
		if paths[i].windowWithin(maxDelay) == 0 {
			p.warn(LeastWindowDelays, units.Time(maxDelay), paths[i], least.Delay)
		}
	}
	if needed := LeastWindow(paths); needed > allowed {
		widest := slices.IndexFunc(paths, func(p Path) bool { return p.leastWindow() == needed })
		p.warn(RateOrDelay, paths[widest], units.Size(needed).Exact(), units.Time(maxDelay),
			units.Size(allowed).Exact(), paths[narrowest], paths[widest], 100*p.Shared[widest].Goodput)
	}
	if !p.fixed {
		p.warn(DelayUnbounded)
	}
}

// narrowestOf returns the path on which delay allows the smallest window.
func narrowestOf(paths []Path, delay time.Duration) (narrowest int) {
	for i, p := range paths {
		if p.windowWithin(delay) < paths[narrowest].windowWithin(delay) {
			narrowest = i
		}
	}
	return narrowest
}

// noteEachPath notes the values of single paths where the target has them: of an interface, of a route.
func (p *Plan) noteEachPath(paths []Path, target Target) {
	if target.Family == catalog.Windows2000 && p.Role.has(Receiver) {
		own := slices.Clone(p.Shared)
		for i := range own {
			own[i].Window = paths[i].leastWindow()
		}
		p.Notes = slices.DeleteFunc(p.Notes, func(s Statement) bool { return s.Code == InterfaceWindowWins })
		p.note(InterfaceWindows, interfaceKey(target.Version), own)
	}
	if p.fixed {
		return
	}
	p.note(CeilingsFollowLargest, p.Shared)
	if target.Family == catalog.Linux {
		p.note(RouteWindows, p.Shared)
	}
}

// String names the path by its rate and round trip.
func (p Path) String() string { return units.Rate(p.RateBps).String() + " x " + units.Time(p.RTT) }
