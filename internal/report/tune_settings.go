package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// settings returns the settings for the chosen setup as recipes. Each recipe suffices by itself:
// first the program's, as it was measured, then the wider scopes, last several connections instead
// of larger windows.
func settings(d *tune.Direction, near, far *System) (all []record.TuneSetting) {
	nearRole := plan.Sender
	farRole := plan.Receiver
	if d.Direction == transfer.Down {
		nearRole, farRole = farRole, nearRole
	}
	var parts []settingsPart
	for _, end := range []*settingsEnd{{d, "near", near, nearRole}, {d, "far", far, farRole}} {
		parts = append(parts, end.windows()...)
		if end.role == plan.Sender {
			parts = append(parts, end.senderParts()...)
		}
	}
	if d.Chosen.MSS > 0 {
		parts = append(parts, segmentSize(d, near, far, nearRole))
	}
	recipe := 0
	for _, by := range []record.SettingBy{record.ByProgram, record.ByRoute, record.ByHost,
		record.ByStreams} {
		if !slices.ContainsFunc(parts, func(p settingsPart) bool { return len(p.ways[by]) > 0 }) {
			continue
		}
		recipe++
		for _, p := range parts {
			for _, s := range p.in(by, d) {
				s.Recipe = recipe
				s.By = by
				s.Of = p.of
				all = append(all, s)
			}
		}
	}
	return all
}

// settingsPart is one change at one end, with the settings of each scope that make it.
type settingsPart struct {
	of     advice.Action
	ways   map[record.SettingBy][]record.TuneSetting
	always []record.TuneSetting // that every way needs
	// planned reports that the host's settings are known: where they have none, none is needed.
	planned bool
}

// in returns the part's settings in the recipe of a scope: the program's where that scope has none.
func (p *settingsPart) in(by record.SettingBy, d *tune.Direction) []record.TuneSetting {
	ofWindow := p.of == advice.LargerWindows || p.of == advice.WindowOfBDP
	switch {
	case by == record.ByStreams && ofWindow:
		return p.ways[by]
	case by == record.ByHost && p.of == advice.ParallelFlows && d.Clipped:
		return nil // one connection has the path's window then
	case len(p.ways[by]) > 0 || by == record.ByHost && p.planned:
		return slices.Concat(p.always, p.ways[by])
	}
	return slices.Concat(p.always, p.ways[record.ByProgram])
}

// settingsEnd is one end of a direction, with its system.
type settingsEnd struct {
	*tune.Direction
	host   string
	target *System // nil: not known
	role   plan.Role
}

func (e *settingsEnd) linux() bool {
	return e.target != nil && strings.HasPrefix(e.target.Name, "linux")
}

// windows returns the ways to the chosen window at this end: the program's buffers with what those
// need, the host's settings, or several connections.
func (e *settingsEnd) windows() []settingsPart {
	c := e.Chosen
	if c.Window == 0 {
		return nil
	}
	part := settingsPart{of: advice.LargerWindows,
		ways:    map[record.SettingBy][]record.TuneSetting{},
		planned: e.target != nil}
	if e.Narrows() {
		part.of = advice.WindowOfBDP
	}
	add := func(by record.SettingBy, name string, value int) {
		if value > 0 {
			part.ways[by] = append(part.ways[by], e.setting(name, strconv.Itoa(value)))
		}
	}
	switch {
	case e.role == plan.Sender:
		add(record.ByProgram, "SO_SNDBUF", c.SendBuffer)
	case c.ReceiveBuffer > 0:
		add(record.ByProgram, "SO_RCVBUF", c.ReceiveBuffer)
	default:
		add(record.ByProgram, "TCP_WINDOW_CLAMP", c.Clamp)
	}
	if e.target != nil {
		for _, s := range e.target.plan(e.windowPath(), e.role, e.limits(), e.present()) {
			setting := record.TuneSetting{Host: e.host, Target: e.target.Name, Setting: s}
			if slices.Contains(scalingSettings, s.Name) { // a program's buffer needs it too
				part.always = append(part.always, setting)
			} else {
				part.ways[record.ByHost] = append(part.ways[record.ByHost], setting)
			}
		}
	}
	if name := e.forced(); name != "" {
		add(record.ByProgram, name, max(c.SendBuffer, c.ReceiveBuffer))
	}
	if n := e.streamsInstead(); e.role == plan.Sender && n > 0 {
		add(record.ByStreams, "connections at once", n)
	}
	return []settingsPart{part}
}

// limits reports that this end's window or buffer limits today: its settings are then not its
// system's defaults, which would allow more.
func (e *settingsEnd) limits() bool {
	names := []verdict.Name{e.Before.Verdict.Limiter}
	if advice.Open(names[0]) {
		names = e.Before.Verdict.Candidates
	}
	if e.role == plan.Sender {
		return slices.Contains(names, verdict.SendBuffer)
	}
	return slices.Contains(names, verdict.ReceiverWindow)
}

// present returns the values of this end's settings: those that were read, else what its window shows of them.
func (e *settingsEnd) present() map[string]string {
	if e.target.Values == nil && e.role == plan.Receiver && e.linux() &&
		e.Before.Verdict.Subtype == verdict.AutotuneOff {
		return map[string]string{"net.ipv4.tcp_moderate_rcvbuf": "0"}
	}
	return e.target.Values
}

// scalingSettings switch window scaling on, which every window above 64 KiB needs, however it is set.
var scalingSettings = []string{"Tcp1323Opts", "rfc1323", "net.inet.tcp.rfc1323", "net.ipv4.tcp_window_scaling"}

// forced returns the ceiling that the chosen buffer passed with privilege, which clips a program
// without; "" where none was passed.
func (e *settingsEnd) forced() string {
	if e.After == nil || e.After.Typical == nil || e.host != "near" {
		return ""
	}
	near := e.After.Typical.Near
	if near == nil || len(near.Streams) == 0 {
		return ""
	}
	s := &near.Streams[0]
	switch {
	case e.role == plan.Sender && s.SendBuffer.Forced:
		return "net.core.wmem_max"
	case e.role == plan.Receiver && s.ReceiveBuffer.Forced:
		return "net.core.rmem_max"
	}
	return ""
}

// maxStreamsInstead is the most connections that are offered instead of a larger window.
const maxStreamsInstead = 16

// streamsInstead returns the number of connections whose present windows add up to the chosen one. It returns 0 if
// no window limits one connection, or if too many would be needed.
func (e *settingsEnd) streamsInstead() int {
	today := 0
	for _, t := range e.Trials {
		if t.Automatic {
			today = max(today, t.Effective)
		}
	}
	limiter := e.Before.Verdict.Limiter
	if today == 0 || e.Chosen.Streams > 1 || e.Goal != tune.Throughput ||
		limiter != verdict.ReceiverWindow && limiter != verdict.SendBuffer {
		return 0
	}
	n := int(math.Ceil(float64(e.Chosen.Window) / float64(today)))
	if n < 2 || n > maxStreamsInstead {
		return 0
	}
	return n
}

// plan returns the end's settings for a path. It returns nil if that cannot be planned. A setting
// that is in force changes nothing: where present values are not known, those are the system's
// defaults, except at an end that limits.
func (s *System) plan(path plan.Path, role plan.Role, limits bool, present map[string]string) []plan.Setting {
	p, err := plan.New(path, s.Target, plan.Options{Role: role, Values: present})
	if err != nil {
		return nil
	}
	if limits {
		return p.Settings
	}
	return s.Target.WithoutDefaults(p.Settings, s.Values)
}

// windowPath returns the path that the chosen window is planned for; where ceilings clipped it, the
// window is the path's, with raised ceilings.
func (e *settingsEnd) windowPath() plan.Path {
	window := e.Chosen.Window
	if e.Clipped {
		window = max(window, e.Path.Window)
	}
	return plan.Path{RateBps: e.Path.BottleneckBps, RTT: e.Path.RTT, Jitter: e.Path.Jitter,
		MSS:           e.Path.MSS,
		ReceiveWindow: model.Window(float64(window), e.Path.MSS), SendBuffer: window}
}

// senderParts returns the sender's changes other than a window and the segment size.
func (e *settingsEnd) senderParts() (parts []settingsPart) {
	c := e.Chosen
	add := func(of advice.Action, names map[record.SettingBy]string, value string) {
		part := settingsPart{of: of, ways: map[record.SettingBy][]record.TuneSetting{}}
		for by, name := range names {
			part.ways[by] = []record.TuneSetting{e.setting(name, value)}
		}
		parts = append(parts, part)
	}
	if c.Congestion != "" {
		names := map[record.SettingBy]string{record.ByProgram: "TCP_CONGESTION"}
		if e.linux() {
			names[record.ByRoute] = "congctl"
			names[record.ByHost] = "net.ipv4.tcp_congestion_control"
		}
		add(advice.OtherControl, names, c.Congestion)
	}
	if c.Streams > 1 {
		add(advice.ParallelFlows,
			map[record.SettingBy]string{record.ByProgram: "connections at once"},
			strconv.Itoa(c.Streams))
	}
	if c.PacingBps > 0 {
		add(advice.PaceBelow, map[record.SettingBy]string{record.ByProgram: "SO_MAX_PACING_RATE"},
			strconv.FormatInt(int64(c.PacingBps/8), 10))
	}
	return parts
}

// segmentSize returns the ways to smaller segments: in the sending program, or on one route, this
// host's if it can be either.
func segmentSize(d *tune.Direction, near, far *System, nearRole plan.Role) settingsPart {
	sender := settingsEnd{d, "near", near, plan.Sender}
	receiver := settingsEnd{d, "far", far, plan.Receiver}
	if nearRole == plan.Receiver {
		sender = settingsEnd{d, "far", far, plan.Sender}
		receiver = settingsEnd{d, "near", near, plan.Receiver}
	}
	mss := d.Chosen.MSS
	part := settingsPart{of: advice.SmallerSegment,
		ways: map[record.SettingBy][]record.TuneSetting{}}
	if sender.target == nil || d.Sender.Has("TCP_MAXSEG") {
		part.ways[record.ByProgram] = []record.TuneSetting{sender.setting("TCP_MAXSEG",
			strconv.Itoa(mss))}
	}
	headers := []int{model.IPHeaders, model.IPHeaders + 20}
	// the packets that were seen to pass
	bySender := sender.linux() && slices.Contains(headers, d.Path.MTU-mss)
	switch {
	case receiver.linux() && (nearRole == plan.Receiver || !bySender):
		part.ways[record.ByRoute] = []record.TuneSetting{receiver.setting("advmss",
			strconv.Itoa(mss))}
	case bySender:
		part.ways[record.ByRoute] = []record.TuneSetting{sender.setting("mtu",
			strconv.Itoa(d.Path.MTU))}
	}
	return part
}

// setting returns a setting of this end by its name.
func (e *settingsEnd) setting(name, value string) record.TuneSetting {
	s := record.TuneSetting{Host: e.host, Setting: text.TuneSetting(e.role, name, value)}
	if e.target != nil {
		s.Target = e.target.Name
	}
	return s
}
