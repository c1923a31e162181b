// Package plan turns a path into windows and buffers, and those into the settings that
// an operating system needs for them, with the texts that make and take them back.
// It reads and changes nothing.
package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Path is what a plan is made for.
type Path struct {
	RateBps     float64       // bottleneck, at the IP layer
	RTT         time.Duration // least round trip
	Jitter      time.Duration // p95 of the round trip less its minimum
	MSS         int           // payload bytes of a full segment; 0 is 1460
	Connections int           // that carry bulk at one time; 0 is 1
	// MemoryBytes is the host's main memory; 0 is not known and bounds nothing.
	MemoryBytes int64
	// ReceiveWindow and SendBuffer, when not 0, are the bytes of payload that a
	// measurement chose and take the place of the arithmetic.
	ReceiveWindow, SendBuffer int
}

// DefaultMSS is Ethernet's, without timestamps.
const DefaultMSS = 1460

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
	Settings     []Setting
	Shared       []Shared // what one window gives on several paths; nil: there is one path
	// SharedWindow is the one window in bytes that Shared is about.
	SharedWindow  int
	Warnings      []string // what the target cannot do, or what was bounded
	Notes         []string // what the settings do not say by themselves
	bufferPayload float64  // bytes of buffer for a byte of payload at the target
}

// Options narrow a plan.
type Options struct {
	Role       Role // "" is Both
	Timestamps bool // ask for RFC 7323 timestamps where they are a setting of their own
	Route      Route
	// Values are the target's present values by name; a setting that already holds is
	// left out. Where a name is missing the catalog's default stands in for it.
	Values map[string]string
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
	p := &Plan{Target: target.Name, Role: opt.Role, Path: path, Route: opt.Route, bufferPayload: target.bufferPayload()}
	if p.Role == "" {
		p.Role = Both
	}
	p.size()
	p.fitMemory(target)
	if err := target.settings(p, opt); err != nil {
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

// ArgumentError says which part of a Path is impossible.
type ArgumentError struct{ Argument, Message, Right string }

func (e *ArgumentError) Error() string { return e.Argument + ": " + e.Message }

// Try says what would be right.
func (e *ArgumentError) Try() string { return e.Right }

func (p Path) check() error {
	switch {
	case !(p.RateBps > 0) || math.IsInf(p.RateBps, 0):
		return &ArgumentError{"--rate", "a path has a rate above 0", "--rate 100mbit"}
	case p.RTT <= 0:
		return &ArgumentError{"--rtt", "a path has a round trip above 0", "--rtt 40ms"}
	case p.RTT > time.Hour, p.Jitter > time.Hour:
		return &ArgumentError{"--rtt", "more than an hour", "--rtt 40ms"}
	case p.Jitter < 0:
		return &ArgumentError{"--jitter", "below 0", "--jitter 20ms"}
	case p.MSS != 0 && (p.MSS < 48 || p.MSS > 65495):
		return &ArgumentError{"--mss", fmt.Sprintf("%d is not a segment's payload", p.MSS), "48 to 65495; 1460 on Ethernet, 1448 with timestamps"}
	case p.Connections < 0 || p.Connections > 1e6:
		return &ArgumentError{"--connections", fmt.Sprintf("%d connections", p.Connections), "1 to 1000000"}
	case p.MemoryBytes < 0:
		return &ArgumentError{"--memory", "below 0", "--memory 16GiB"}
	}
	return nil
}

// size is the arithmetic of RFC 6349 section 3.3.1, with the jitter on top and rounded
// up to an even number of segments.
func (p *Plan) size() {
	path := p.Path
	p.BDPBytes = model.BDP(path.RateBps, path.RTT)
	needed := model.BDP(path.RateBps, path.RTT+path.Jitter)
	p.WindowBytes = model.Window(needed, path.MSS)
	if path.ReceiveWindow > 0 {
		p.WindowBytes = min(path.ReceiveWindow, model.MaxWindow)
	}
	p.SendBytes = max(p.WindowBytes, path.SendBuffer)
	if needed > model.MaxWindow && path.ReceiveWindow == 0 {
		p.warn("the path holds %s, but no TCP window passes %s (RFC 7323): use at least %.0f connections",
			units.Size(needed), units.Size(model.MaxWindow).Exact(), math.Ceil(needed/model.MaxWindow))
	}
	p.derive()
}

// derive computes what follows from the windows.
func (p *Plan) derive() {
	p.Segments = p.WindowBytes / p.Path.MSS
	p.WindowScale = model.Scale(p.WindowBytes)
	p.LargeWindows = p.WindowBytes > model.MaxUnscaled
	perConnection := 0.0
	if p.Role.has(Receiver) {
		perConnection += float64(p.WindowBytes)
	}
	if p.Role.has(Sender) {
		perConnection += float64(p.SendBytes)
	}
	p.MemoryBytes = int64(perConnection * p.bufferPayload * float64(p.Path.Connections))
}

// fitMemory lowers the windows until all connections with full buffers fit into their
// share of the host's memory.
func (p *Plan) fitMemory(target Target) {
	share := float64(p.Path.MemoryBytes) * memoryShare
	if share <= 0 || float64(p.MemoryBytes) <= share {
		return
	}
	had := p.MemoryBytes
	pair := 2 * p.Path.MSS
	fitted := int(float64(p.WindowBytes)*share/float64(had)) / pair * pair
	fitted = max(fitted, pair)
	p.WindowBytes, p.SendBytes = min(p.WindowBytes, fitted), min(p.SendBytes, fitted)
	p.derive()
	rate := units.Rate(model.Rate(p.WindowBytes, p.Path.RTT+p.Path.Jitter))
	p.warn("%d connections with full buffers take %s, more than 1/32 of %s of memory: lowered to %s a connection, which allows %s each",
		p.Path.Connections, units.Size(had), units.Size(p.Path.MemoryBytes), units.Size(p.WindowBytes), rate)
}

func (p *Plan) warn(format string, args ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, args...))
}

func (p *Plan) note(format string, args ...any) {
	p.Notes = append(p.Notes, fmt.Sprintf(format, args...))
}

// bufferFor is the socket buffer that holds payload bytes at the target.
func (p *Plan) bufferFor(payload int) int {
	return int(math.Min(math.Ceil(float64(payload)*p.bufferPayload), math.MaxInt32))
}
