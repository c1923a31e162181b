// Package plan turns a path into windows and buffers, and those into the settings that
// an operating system needs for them, with the texts that make and take them back.
// It reads and changes nothing.
package plan

import (
	"math"
	"strconv"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// memoryShare is the part of the main memory that bulk connections may fill: half of
// tcp_mem's pressure mark, which Linux sets to a sixteenth of memory
// (net/ipv4/tcp.c tcp_init_mem()). Other systems are held to the same share.
const memoryShare = 1.0 / 32

// Role says at which end a setting belongs.
type Role string

const (
	Sender   Role = "sender"
	Receiver Role = "receiver"
	Both     Role = "both"
)

// has says that a plan for r needs what the other role needs.
func (r Role) has(other Role) bool { return r == Both || other == Both || r == other }

// Setting is one value to set. Scope is that of the catalog's entry; Confirmed says
// that a primary source states what the setting does.
type Setting struct {
	Role      Role   `json:"role"`
	Name      string `json:"name"`
	Where     string `json:"where"`
	Value     string `json:"value"`
	Type      string `json:"type,omitempty"`
	Unit      string `json:"unit,omitempty"`
	Restart   bool   `json:"restart"`
	Source    string `json:"source"`
	Confirmed bool   `json:"confirmed"`
	// Before is the value that holds now, where that is known.
	Before string `json:"before,omitempty"`
}

// Plan is the answer for one path and one target.
type Plan struct {
	Target       string
	Role         Role
	Path         Path
	Route        Route // empty: the whole host
	BDPBytes     float64
	WindowBytes  int // receive window, an even number of segments
	SendBytes    int // send buffer's payload
	Segments     int // in WindowBytes
	WindowScale  int
	LargeWindows bool  // more than 65,535 bytes: both ends have to scale
	MemoryBytes  int64 // of all connections with full buffers
	// ExpectedBps is the payload that one connection gets with these windows, of
	// CapacityBps that the line carries: of what the host sends, or receives if it is only
	// the receiver.
	ExpectedBps, CapacityBps float64
	Now                      *Now        // nil where the target's present limits are not known
	Directions               []Direction // where the two ways differ
	Settings                 []Setting
	Shared                   []Shared // what one window gives on several paths; nil: there is one path
	// SharedWindow is the one window in bytes that Shared is about.
	SharedWindow  int
	SharedSend    int         // the send buffer with it, bytes
	Warnings      []Statement // what the target cannot do, or what was bounded
	Notes         []Statement // what the settings do not say by themselves
	head          []string    // warnings in words, for the head of a text
	bufferPayload float64     // bytes of buffer for a byte of payload at the target
	// fixed says that the target has windows and buffers of one size, which every
	// connection gets; present are those that it has now.
	fixed                      bool
	presentWindow, presentSend int
	bounded                    bool // by memory or delay: what is larger now is lowered
}

// Direction is what one way of a path needs, where the ways differ: of the receiver a
// window, of the sender a buffer for as much. Up is what the host that is planned for sends.
type Direction struct {
	Direction   transfer.Direction `json:"direction"`
	RateBps     float64            `json:"rate_bps"`
	BDPBytes    int64              `json:"bdp_bytes"`
	WindowBytes int                `json:"window_bytes"`
	WindowScale int                `json:"window_scale"`
	ExpectedBps float64            `json:"expected_goodput_bps"`
	Fills       float64            `json:"fills_ratio"` // ExpectedBps as a share of what the line carries
}

// Options narrow a plan.
type Options struct {
	Role       Role // "" is Both
	Timestamps bool // ask for RFC 7323 timestamps where they are a setting of their own
	Route      Route
	// ReceiveDatagrams and SendDatagrams are what a program asks for by SO_RCVBUF and
	// SO_SNDBUF for its UDP socket, in bytes; math.MaxInt32 is whatever there is.
	ReceiveDatagrams, SendDatagrams int
	// Values are the target's present values by name; a setting that already holds is
	// left out. Where a name is missing the catalog's default stands in for it.
	Values map[string]string
	// MaxDelay bounds the queueing delay that a shared window adds to a path; 0: no bound.
	MaxDelay time.Duration
}

// New makes the plan. An error names the argument that is wrong.
func New(path Path, target Target, opt Options) (*Plan, error) {
	if err := path.check(); err != nil {
		return nil, err
	}
	if err := opt.Route.check(); err != nil {
		return nil, err
	}
	if path.MSS == 0 {
		path.MSS = DefaultMSS
	}
	path.Connections = max(path.Connections, 1)
	path.headers = model.IPHeaders
	if opt.Timestamps {
		path.MSS = max(path.MSS-model.TimestampBytes, leastMSS)
		path.headers += model.TimestampBytes
	}
	whole := path
	path = path.ofOneFlow()
	p := &Plan{Target: target.Name, Role: opt.Role, Path: path, Route: opt.Route, bufferPayload: target.bufferPayload()}
	if p.Role == "" {
		p.Role = Both
	}
	values := present{target: target, values: opt.Values}
	if most := max(whole.RateBps, whole.BackBps); whole.FlowCapBps > 0 && whole.FlowCapBps < most {
		p.warn(FlowCapped, units.Rate(whole.FlowCapBps),
			units.Rate(most), math.Ceil(most/whole.FlowCapBps))
	}
	p.holds(values)
	p.bounded = path.maxWindow > 0 && max(p.presentWindow, p.presentSend) > path.maxWindow
	p.size()
	p.judgeNow(values)
	p.fitMemory()
	if err := target.settings(p, values, opt); err != nil {
		return nil, err
	}
	return p, nil
}

// For is what a loop that measured a path prints for a target: its settings alone.
func For(path Path, target Target, role Role) []Setting {
	p, err := New(path, target, Options{Role: role})
	if err != nil {
		return nil
	}
	return p.Settings
}

// size computes the windows: the receive window for what the host receives, the send
// buffer for what it sends.
func (p *Plan) size() {
	sent := p.Path
	received := p.Path.received()
	p.SendBytes = sent.window()
	p.WindowBytes = received.window()
	for _, way := range []Path{sent, received} {
		if needed := model.BDP(way.RateBps, way.RTT+way.Jitter); needed > model.MaxWindow && p.Path.ReceiveWindow == 0 {
			p.warn(BeyondLargestWindow, units.Size(needed), units.Size(model.MaxWindow).Exact(),
				math.Ceil(needed/model.MaxWindow))
			break
		}
	}
	if p.Path.ReceiveWindow > 0 {
		p.WindowBytes = min(p.Path.ReceiveWindow, model.MaxWindow)
		p.SendBytes = max(p.WindowBytes, p.Path.SendBuffer)
	}
	p.BDPBytes = model.BDP(sent.RateBps, sent.RTT)
	if p.Role == Receiver {
		p.BDPBytes = model.BDP(received.RateBps, received.RTT)
	}
	if sent.RateBps != received.RateBps {
		p.Directions = []Direction{newDirection(transfer.Up, sent), newDirection(transfer.Down, received)}
	}
	p.derive()
}

func newDirection(d transfer.Direction, way Path) Direction {
	return Direction{Direction: d, RateBps: way.RateBps, BDPBytes: int64(math.Round(model.BDP(way.RateBps, way.RTT)))}
}

// holds notes what the target has now, where every connection gets the same.
func (p *Plan) holds(v present) {
	window := ""
	switch v.target.Family {
	case catalog.Windows2000:
		window = "TcpWindowSize"
		p.presentSend, _ = strconv.Atoi(v.value("DefaultSendWindow"))
	case catalog.Windows9x:
		window = "DefaultRcvWindow"
	default:
		return
	}
	p.fixed = true
	p.presentWindow, _ = strconv.Atoi(v.value(window))
}

// derive computes what follows from the windows.
func (p *Plan) derive() {
	p.Segments = p.WindowBytes / p.Path.MSS
	largest := p.largest()
	p.WindowScale = model.Scale(largest)
	p.LargeWindows = largest > model.MaxUnscaled
	window := p.WindowBytes
	send := p.SendBytes
	if !p.bounded { // nothing is lowered
		window = max(window, wholeSegments(p.presentWindow, p.Path.MSS))
		send = max(send, p.presentSend)
	}
	if len(p.Directions) == 0 {
		p.CapacityBps = p.Path.service().Capacity(p.Path.MSS)
		p.ExpectedBps = p.Path.Fills(min(window, send)) * p.CapacityBps
	}
	for i := range p.Directions {
		d := &p.Directions[i]
		way := p.Path
		d.WindowBytes = send
		if d.Direction == transfer.Down {
			way = way.received()
			d.WindowBytes = window
		}
		d.WindowScale = model.Scale(d.WindowBytes)
		capacity := way.service().Capacity(way.MSS)
		d.ExpectedBps = way.Fills(d.WindowBytes) * capacity
		d.Fills = d.ExpectedBps / capacity
		if (d.Direction == transfer.Up) == (p.Role != Receiver) {
			p.CapacityBps = capacity
			p.ExpectedBps = d.ExpectedBps
		}
	}
	p.MemoryBytes = p.memory(window, send)
}

// wholeSegments is a window of one size as the systems that have one round it: up to
// whole segments, where that needs no scaling.
func wholeSegments(window, mss int) int {
	if up := (window + mss - 1) / mss * mss; up <= model.MaxUnscaled || window > model.MaxUnscaled {
		return up
	}
	return window / mss * mss
}

// memory is what the buffers of all connections hold at most. Buffers of one size are
// filled by every program that writes, or does not read. Automatic ones follow what is in
// flight, and connections that share a link have no more of that than its bandwidth-delay
// product and a queue of as much.
func (p *Plan) memory(window, send int) int64 {
	each := 0.0
	if p.Role.has(Receiver) {
		each += float64(window)
	}
	if p.Role.has(Sender) {
		each += float64(send)
	}
	full := p.Path.Connections
	if !p.fixed {
		full = min(full, shareOfLink)
	}
	return int64(each * p.bufferPayload * float64(full))
}

// shareOfLink is how many bandwidth-delay products one link's connections have in flight:
// one, and one that waits in its queue.
const shareOfLink = 2

// fitMemory lowers the windows until all connections with full buffers fit into their
// share of the host's memory.
func (p *Plan) fitMemory() {
	share := float64(p.Path.MemoryBytes) * memoryShare
	if share <= 0 || float64(p.MemoryBytes) <= share {
		return
	}
	buffers := 1.0
	if p.Role == Both {
		buffers = 2
	}
	had := p.MemoryBytes
	pair := 2 * p.Path.MSS
	fitted := int(share/buffers/p.bufferPayload/float64(p.Path.Connections)) / pair * pair
	fitted = max(fitted, pair)
	needed := p.largest()
	full := p.ExpectedBps
	p.bounded = true
	p.WindowBytes = min(max(p.WindowBytes, p.presentWindow), fitted)
	p.SendBytes = min(max(p.SendBytes, p.presentSend),
		fitted)
	p.derive()
	now := 0
	if p.Role.has(Receiver) {
		now = p.presentWindow
	}
	if p.Role.has(Sender) {
		now = max(now, p.presentSend)
	}
	code := MemoryShort
	args := []any{p.Path.Connections, plural(p.Path.Connections), units.Size(had), units.Size(p.Path.MemoryBytes)}
	switch {
	case p.largest() < now:
		code = MemoryLowers
		args = append(args, units.Size(p.largest()), units.Size(now))
	case p.largest() < needed:
		code = MemoryBounds
		args = append(args, units.Size(p.largest()))
	}
	if loss := 1 - p.ExpectedBps/full; code != MemoryShort && loss >= 0.005 {
		code += belowPath
		args = append(args, units.Rate(p.ExpectedBps), 100*loss)
	}
	p.warn(code, args...)
	if fit := int64(share); p.MemoryBytes > fit {
		p.warn(MemoryTooSmall, units.Size(p.MemoryBytes),
			max(int(share/buffers/p.bufferPayload/float64(pair)), 1))
	}
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

func (p *Plan) warn(code Code, args ...any) { p.Warnings = append(p.Warnings, Statement{code, args}) }

func (p *Plan) note(code Code, args ...any) { p.Notes = append(p.Notes, Statement{code, args}) }

// bufferFor is the socket buffer that holds payload bytes at the target.
func (p *Plan) bufferFor(payload int) int {
	return int(math.Min(math.Ceil(float64(payload)*p.bufferPayload), math.MaxInt32))
}
