package plan

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Route narrows a Linux plan to one destination. An empty Prefix is the whole host.
type Route struct {
	Prefix string `json:"prefix"` // "10.2.0.0/16", "2001:db8::/32" or "default"
	// Via and Dev are as the route has them now; either may be empty.
	Via        string `json:"via,omitempty"`
	Dev        string `json:"dev,omitempty"`
	InitCwnd   int    `json:"-"` // segments; 0 leaves it
	InitRwnd   int    `json:"-"` // segments; 0 leaves it
	Congestion string `json:"-"` // "" leaves it
	Clamp      bool   `json:"-"` // bound the window to the plan's
}

// grain rounds Linux maxima up, so that plans for like paths agree.
const grain = 64 << 10

// maxBuffer is the largest maximum that tcp_rmem and tcp_wmem accept. They are ints; a larger value is refused with
// EINVAL (net/ipv4/sysctl_net_ipv4.c).
const maxBuffer = math.MaxInt32

func (p *Plan) linux(v present, opt Options) error {
	if opt.Route.Prefix != "" {
		return p.linuxRoute(v, opt.Route)
	}
	raise := func(role Role, name string, needed int, keepsInFlight func(buffer int) int) {
		fields := strings.Fields(v.value(name))
		if len(fields) != 3 {
			p.warn(NotThreeNumbers, name, v.value(name))
			return
		}
		if largest := v.largestBuffer(name); keepsInFlight(largest) >= needed {
			if p.Role.has(role) {
				p.note(MaximumSuffices, name, units.Size(largest))
			}
			return
		}
		largest := min((p.bufferFor(needed)+grain-1)/grain*grain, maxBuffer)
		p.set(v, role, name, fmt.Sprintf("%s %s %d", fields[0], fields[1], largest))
	}
	raise(Receiver, "net.ipv4.tcp_rmem", p.WindowBytes, func(buffer int) int { return v.linuxWindow(buffer, p.Path.MSS) })
	raise(Sender, "net.ipv4.tcp_wmem", p.SendBytes, model.LinuxAutomaticInFlight)
	for _, on := range []struct {
		role Role
		name string
	}{
		{Receiver, "net.ipv4.tcp_moderate_rcvbuf"}, {Both, "net.ipv4.tcp_window_scaling"},
		{Both, "net.ipv4.tcp_sack"}, {Both, "net.ipv4.tcp_timestamps"},
	} {
		if v.value(on.name) == "0" {
			p.set(v, on.role, on.name, "1")
		}
	}
	p.datagrams(v, opt.ReceiveDatagrams, opt.SendDatagrams)
	p.note(BuffersTwiceWindow)
	if p.Path.MSS == DefaultMSS && v.value("net.ipv4.tcp_timestamps") != "0" {
		p.note(TimestampsInSegments, DefaultMSS, DefaultMSS-model.TimestampBytes)
	}
	p.note(ProgramBuffersBounded)
	if p.Path.Connections > 1 {
		p.note(MaximumIsCeiling)
	}
	return nil
}

// check refuses values that are not allowed in a command or a file.
func (r Route) check() error {
	if r.Prefix == "" {
		if r != (Route{}) {
			return &ArgumentError{"--route", "nothing says which route", "--route 10.2.0.0/16 or --route default"}
		}
		return nil
	}
	if r.Prefix != "default" {
		if _, err := netip.ParsePrefix(r.Prefix); err != nil {
			return &ArgumentError{"--route", fmt.Sprintf("%q is not a prefix", r.Prefix),
				"--route 10.2.0.0/16 or --route default"}
		}
	}
	if r.Via != "" {
		if _, err := netip.ParseAddr(r.Via); err != nil {
			return &ArgumentError{"--via", fmt.Sprintf("%q is not an address", r.Via), "--via 192.0.2.1"}
		}
	}
	for _, word := range []struct{ argument, text string }{{"--dev", r.Dev}, {"--congestion", r.Congestion}} {
		if strings.ContainsFunc(word.text, notInAName) || len(word.text) > 15 {
			return &ArgumentError{word.argument, fmt.Sprintf("%q is not a name", word.text),
				"at most 15 letters, digits, _ . - @"}
		}
	}
	return nil
}

func (p *Plan) linuxRoute(v present, r Route) error {
	for argument, n := range map[string]int{"--initcwnd": r.InitCwnd, "--initrwnd": r.InitRwnd} {
		if n < 0 || n > model.MaxWindow/p.Path.MSS {
			return &ArgumentError{argument, fmt.Sprintf("%d segments", n), argument + " 10"}
		}
	}
	number := func(role Role, name string, n int) {
		if n > 0 {
			p.set(v, role, name, strconv.Itoa(n))
		}
	}
	number(Sender, "initcwnd", r.InitCwnd)
	number(Receiver, "initrwnd", r.InitRwnd)
	if r.Clamp {
		number(Receiver, "window", p.WindowBytes)
	}
	if r.Congestion != "" {
		p.set(v, Sender, "congctl", r.Congestion)
	}
	if len(p.Settings) == 0 {
		return &ArgumentError{"--route", "a route can bound a window, not raise it", "--clamp, --initcwnd, --initrwnd or " +
			"--congestion with it; leave --route out to raise buffers"}
	}
	p.note(RouteOnlyLowers)
	return nil
}

func notInAName(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-@", r))
}
