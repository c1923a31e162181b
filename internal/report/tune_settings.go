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

// settings returns the settings of both ends for the chosen setup.
func settings(d *tune.Direction, near, far *System) (all []record.TuneSetting) {
	nearRole := plan.Sender
	farRole := plan.Receiver
	if d.Direction == transfer.Down {
		nearRole, farRole = farRole, nearRole
	}
	for _, end := range []*settingsEnd{{d, "near", near, nearRole}, {d, "far", far, farRole}} {
		all = append(all, end.windows()...)
		if end.role == plan.Receiver && d.Chosen.MSS > 0 && end.linux() {
			all = append(all, end.setting("advmss", strconv.Itoa(d.Chosen.MSS)))
		}
		if end.role == plan.Sender {
			all = append(all, end.senderSettings()...)
		}
	}
	return all
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

// windows lists the ways to the chosen window: the host's settings, or the program's buffers with what those need.
func (e *settingsEnd) windows() (all []record.TuneSetting) {
	c := e.Chosen
	if c.Window == 0 {
		return nil
	}
	of := advice.LargerWindows
	if c.SendBuffer == 0 && c.ReceiveBuffer == 0 {
		of = advice.WindowOfBDP
	}
	if e.target != nil {
		for _, s := range e.target.plan(windowPath(e.Direction), e.role) {
			setting := record.TuneSetting{Host: e.host, Target: e.target.Name, Of: of, By: record.ByHost, Setting: s}
			if slices.Contains(scalingSettings, s.Name) { // a program's buffer needs it too
				setting.Of = advice.WindowScaling
			}
			all = append(all, setting)
		}
	}
	if name, bytes := e.forced(); bytes > 0 {
		all = append(all, e.setting(name, strconv.Itoa(bytes)))
	}
	if e.role == plan.Receiver && c.ReceiveBuffer == 0 && c.Clamp > 0 {
		all = append(all, e.setting("TCP_WINDOW_CLAMP", strconv.Itoa(c.Clamp)))
	}
	if n := e.streamsInstead(); e.role == plan.Sender && n > 0 {
		streams := e.setting("connections at once", strconv.Itoa(n))
		streams.By = record.ByStreams
		streams.Where = text.StreamsInstead
		all = append(all, streams)
	}
	for i := range all {
		if all[i].Of == "" {
			all[i].Of = of
		}
	}
	return all
}

// scalingSettings switch window scaling on, which every window above 64 KiB needs, however it is set.
var scalingSettings = []string{"Tcp1323Opts", "rfc1323", "net.inet.tcp.rfc1323", "net.ipv4.tcp_window_scaling"}

// forced returns the ceiling that the chosen buffer passed with privilege, and how high it has to be for a program
// without. It returns 0 where none was passed.
func (e *settingsEnd) forced() (name string, bytes int) {
	if e.After == nil || e.After.Typical == nil || e.host != "near" {
		return "", 0
	}
	near := e.After.Typical.Near
	if near == nil || len(near.Streams) == 0 {
		return "", 0
	}
	s := &near.Streams[0]
	switch {
	case e.role == plan.Sender && s.SendBuffer.Forced:
		return "net.core.wmem_max", s.SendBuffer.Requested
	case e.role == plan.Receiver && s.ReceiveBuffer.Forced:
		return "net.core.rmem_max", s.ReceiveBuffer.Requested
	}
	return "", 0
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

// plan returns the end's settings for a path. It returns nil if that cannot be planned.
func (s *System) plan(path plan.Path, role plan.Role) []plan.Setting {
	p, err := plan.New(path, s.Target, plan.Options{Role: role, Values: s.Values})
	if err != nil {
		return nil
	}
	return p.Settings
}

// windowPath returns the path that the chosen window is planned for; where ceilings clipped it, the
// window is the path's, with raised ceilings.
func windowPath(d *tune.Direction) plan.Path {
	window := d.Chosen.Window
	if d.Clipped {
		window = max(window, d.Path.Window)
	}
	return plan.Path{RateBps: d.Path.BottleneckBps, RTT: d.Path.RTT, Jitter: d.Path.Jitter, MSS: d.Path.MSS,
		ReceiveWindow: model.Window(float64(window), d.Path.MSS), SendBuffer: window}
}

// senderSettings returns the sender's settings other than a window, the narrowest scope first.
func (e *settingsEnd) senderSettings() (all []record.TuneSetting) {
	c := e.Chosen
	add := func(of advice.Action, name, value string) {
		s := e.setting(name, value)
		s.Of = of
		all = append(all, s)
	}
	if c.Congestion != "" {
		add(advice.OtherControl, "TCP_CONGESTION", c.Congestion)
		if e.linux() {
			add(advice.OtherControl, "congctl", c.Congestion)
			add(advice.OtherControl, "net.ipv4.tcp_congestion_control", c.Congestion)
		}
	}
	if c.Streams > 1 {
		add(advice.ParallelFlows, "connections at once", strconv.Itoa(c.Streams))
	}
	if c.PacingBps > 0 {
		add(advice.PaceBelow, "SO_MAX_PACING_RATE", strconv.FormatInt(int64(c.PacingBps/8), 10))
	}
	if c.MSS > 0 {
		add(advice.SmallerSegment, "TCP_MAXSEG", strconv.Itoa(c.MSS))
		headers := []int{model.IPHeaders, model.IPHeaders + 20}
		if e.linux() && slices.Contains(headers, e.Path.MTU-c.MSS) { // the packets that were seen to pass
			add(advice.SmallerSegment, "mtu", strconv.Itoa(e.Path.MTU))
		}
	}
	return all
}

// setting returns a setting of this end by its name.
func (e *settingsEnd) setting(name, value string) record.TuneSetting {
	setting, by := text.TuneSetting(e.role, name, value)
	s := record.TuneSetting{Host: e.host, By: by, Setting: setting}
	if e.target != nil {
		s.Target = e.target.Name
	}
	return s
}
