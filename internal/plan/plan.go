// Package plan computes windows and buffers for a path, the settings that an operating system needs for them, and the
// texts that apply and undo them. It reads and changes nothing.
package plan

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Role is the end that a setting belongs to.
type Role string

const (
	Sender   Role = "sender"
	Receiver Role = "receiver"
	Both     Role = "both"
)

// has reports whether a plan for r includes the other role's settings.
func (r Role) has(other Role) bool { return r == Both || other == Both || r == other }

// Setting is one value to set. Confirmed means that a primary source documents its effect.
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
	// Before is the present value; "" if not known.
	Before string `json:"before,omitempty"`
}

// Plan has the windows and settings for one path and one target.
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
	// ExpectedBps is the goodput of one connection with these windows, and CapacityBps the line's: of the data that the
	// host sends, or receives if it is only the receiver.
	ExpectedBps, CapacityBps float64
	Now                      *Now        // nil where the target's present limits are not known
	Directions               []Direction // set if the two directions differ
	Settings                 []Setting
	Shared                   []Shared // the effect of one window on several paths; nil: there is one path
	// SharedWindow is the window of Shared, bytes.
	SharedWindow  int
	SharedSend    int         // the send buffer with it, bytes
	Warnings      []Statement // limits of the target, bounded values
	Notes         []Statement // remarks on the settings
	whole         Path        // of all connections
	head          []string    // warnings in words, for the head of a text
	savesValues   bool        // the text saves the present values for its undo
	bufferPayload float64     // bytes of buffer for a byte of payload at the target
	// fixed means that the target has windows and buffers of one size for every connection; presentWindow and presentSend
	// are the present sizes.
	fixed                      bool
	presentWindow, presentSend int
	neededWindow, neededSend   int  // bytes that the path needs, before memory bounds them
	bounded                    bool // by memory or delay: larger present values are lowered
}

// Direction has the window of one direction of a path whose directions differ: the receiver's window and the sender's
// buffer. Up is the data that the planned host sends.
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
	// Values are the target's present values by name. The plan leaves out settings that are in force already. The default
	// of a missing name is the catalog's.
	Values map[string]string
	// MaxDelay bounds the queueing delay that a shared window adds to a path; 0: no bound.
	MaxDelay time.Duration
}

// New returns the plan. An error names the wrong argument.
func New(path Path, target Target, opt Options) (*Plan, error) {
	if err := path.check(); err != nil {
		return nil, err
	}
	if err := opt.Route.check(); err != nil {
		return nil, err
	}
	path = path.inSegments(opt.Timestamps)
	path.Connections = max(path.Connections, 1)
	whole := path
	path = path.ofOneFlow()
	p := &Plan{Target: target.Name, Role: opt.Role, Path: path, Route: opt.Route, whole: whole,
		bufferPayload: target.bufferPayload()}
	if p.Role == "" {
		p.Role = Both
	}
	values := present{target: target, values: opt.Values, memory: path.MemoryBytes}
	if most := max(whole.RateBps, whole.BackBps); whole.FlowCapBps > 0 && whole.FlowCapBps < most {
		p.warn(FlowCapped, units.Rate(whole.FlowCapBps),
			units.Rate(most), math.Ceil(most/whole.FlowCapBps))
	}
	if way := path.RTT + path.Jitter; way > maxUsualRTT {
		p.warn(LongRoundTrip, units.Time(way))
	}
	p.readFixedSizes(values)
	p.bounded = path.maxWindow > 0 && max(p.presentWindow, p.presentSend) > path.maxWindow
	p.size()
	p.keepSizes(target)
	p.judgeNow(values)
	p.fitMemory(values)
	if err := target.settings(p, values, opt); err != nil {
		return nil, err
	}
	return p, nil
}

// maxUsualRTT is the largest round trip without a warning: TCP's handshake and its timers begin with 1 s (RFC 6298
// section 2), and paths by geostationary satellite have 0.6 s.
const maxUsualRTT = 3 * time.Second

// Total returns the goodput in bit/s that all connections together have if one of them alone has bps, and its share of
// what the line carries.
func (p *Plan) Total(bps float64) (sum, fills float64) {
	way := p.whole
	if p.Role == Receiver {
		way = way.received()
	}
	capacity := way.service().Capacity(way.MSS)
	sum = min(float64(p.Path.Connections)*bps, capacity)
	return sum, sum / capacity
}

// For returns the settings of a plan that differ from the system's defaults, nil if the path cannot
// be planned for.
func For(path Path, target Target, role Role) []Setting {
	p, err := New(path, target, Options{Role: role})
	if err != nil {
		return nil
	}
	return target.WithoutDefaults(p.Settings, nil)
}

// WithoutDefaults returns the settings without those that have the system's default, which is in
// force where the present value is not known.
func (t Target) WithoutDefaults(settings []Setting, values map[string]string) []Setting {
	defaults := present{target: t}
	return slices.DeleteFunc(slices.Clone(settings), func(s Setting) bool {
		_, known := values[s.Name]
		return !known && strings.EqualFold(defaults.value(s.Name), s.Value)
	})
}

// size computes the receive window for the data that the host receives and the send buffer for the data that it
// sends.
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
	p.neededWindow = p.WindowBytes
	p.neededSend = p.SendBytes
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

// readFixedSizes reads the present window and send buffer of systems with one size for every connection.
func (p *Plan) readFixedSizes(v present) {
	sizes, fixed := fixedSizes[v.target.Family]
	if !fixed {
		return
	}
	p.fixed = true
	p.presentWindow, _ = strconv.Atoi(v.value(sizes.window))
	p.presentSend, _ = strconv.Atoi(v.value(sizes.send))
}

// keepSizes leaves present windows and send buffers that limit nothing where a change needs a restart: a few percent
// are not worth one. Sizes that a measurement chose stay.
func (p *Plan) keepSizes(t Target) {
	if t.Family != catalog.Windows2000 && t.Family != catalog.Windows9x || p.bounded || p.Path.ReceiveWindow > 0 {
		return
	}
	window := WholeSegments(p.presentWindow, p.Path.MSS)
	if goodput, capacity := p.Path.received().Goodput(window, model.MaxWindow); window > 0 && window < p.WindowBytes &&
		!Limits(goodput, capacity) {
		p.WindowBytes = window
		p.presentWindow = window
	}
	if goodput, capacity := p.Path.Goodput(model.MaxWindow, p.presentSend); p.presentSend > 0 &&
		p.presentSend < p.SendBytes && !Limits(goodput, capacity) {
		p.SendBytes = p.presentSend
	}
	p.derive()
}

// fixedSizes has the names of the window and the send buffer that every connection of a family has; "" is none.
var fixedSizes = map[string]struct{ window, send string }{
	catalog.Windows9x:   {"DefaultRcvWindow", ""},
	catalog.Windows2000: {"TcpWindowSize", "DefaultSendWindow"},
	catalog.Solaris:     {"recv_buf", "send_buf"},
	catalog.AIX:         {"tcp_recvspace", "tcp_sendspace"},
}

// derive computes the values that follow from the windows.
func (p *Plan) derive() {
	p.Segments = p.WindowBytes / p.Path.MSS
	largest := p.largest()
	p.WindowScale = model.Scale(largest)
	p.LargeWindows = largest > model.MaxUnscaled
	window := p.WindowBytes
	send := p.SendBytes
	if !p.bounded { // nothing is lowered
		window = max(window, WholeSegments(p.presentWindow, p.Path.MSS))
		send = max(send, p.presentSend)
	}
	if len(p.Directions) == 0 {
		p.ExpectedBps, p.CapacityBps = p.Path.Goodput(window, send)
	}
	for i := range p.Directions {
		d := &p.Directions[i]
		way := p.Path
		receive := model.MaxWindow
		inFlight := send
		d.WindowBytes = send
		if d.Direction == transfer.Down {
			way = way.received()
			receive = window
			inFlight = model.MaxWindow
			d.WindowBytes = window
		}
		d.WindowScale = model.Scale(d.WindowBytes)
		capacity := 0.0
		d.ExpectedBps, capacity = way.Goodput(receive, inFlight)
		d.Fills = d.ExpectedBps / capacity
		if (d.Direction == transfer.Up) == (p.Role != Receiver) {
			p.CapacityBps = capacity
			p.ExpectedBps = d.ExpectedBps
		}
	}
	p.MemoryBytes = p.memory(window, send)
}

// WholeSegments returns a fixed window as Windows and Solaris round it: up to whole segments if that needs no window
// scaling, else down.
func WholeSegments(window, mss int) int {
	if up := (window + mss - 1) / mss * mss; up <= model.MaxUnscaled || window > model.MaxUnscaled {
		return up
	}
	return window / mss * mss
}

func (p *Plan) warn(code Code, args ...any) { p.Warnings = append(p.Warnings, Statement{code, args}) }

func (p *Plan) note(code Code, args ...any) { p.Notes = append(p.Notes, Statement{code, args}) }

// bufferFor returns the socket buffer for a window of payload bytes at the target.
func (p *Plan) bufferFor(payload int) int {
	return int(math.Min(math.Ceil(float64(payload)*p.bufferPayload), math.MaxInt32))
}
