package audit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

const (
	maxSocketMinimum = 1 << 20 // bytes; many sockets with a larger minimum or default exhaust the memory
	minEvents        = 10      // events since boot; fewer are chance
	routeMSS         = 1460    // bytes of payload in a segment on Ethernet
)

// numbers returns the three fields of a value such as tcp_rmem.
func (j *judge) numbers(name string) (n [3]int64, ok bool) {
	fields := strings.Fields(j.Values[name])
	if len(fields) != 3 {
		return n, false
	}
	for i, field := range fields {
		v, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return n, false
		}
		n[i] = v
	}
	return n, true
}

func (j *judge) number(name string) (int64, bool) {
	v, err := strconv.ParseInt(j.Values[name], 0, 64)
	return v, err == nil
}

// maxWindow returns the largest window of a receive buffer.
func (j *judge) maxWindow(buffer int64) int64 {
	mss := plan.DefaultMSS - model.TimestampBytes
	if j.Values["net.ipv4.tcp_timestamps"] == "0" {
		mss = plan.DefaultMSS
	}
	return int64(plan.LinuxWindow(j.Version, j.Values["net.ipv4.tcp_adv_win_scale"], int(buffer), mss))
}

func (j *judge) linux() {
	j.linuxWindows()
	j.linuxMemory()
	j.linuxRoutes()
	j.linuxSockets()
	j.linuxCounters()
	j.linuxNamespaces()
	j.linuxDatagrams()
	j.linuxContainer()
	control := j.Values["net.ipv4.tcp_congestion_control"]
	qdisc := j.Values["net.core.default_qdisc"]
	// TCP paces by timers of its own since 4.13 (net/ipv4/tcp_bbr.c).
	if control == "bbr" && qdisc != "fq" && !catalog.AtLeast(j.Version, "4.13") {
		j.add(Finding{Grade: Risk, Code: BBRWithoutFQ, Parameter: "net.ipv4.tcp_congestion_control", Value: control,
			Args: []any{qdisc}, Command: "sysctl -w net.core.default_qdisc=fq"})
	}
}

// linuxNamespaces judges the host's other network namespaces. Each has its own values since its creation
// (net/ipv4/tcp_ipv4.c tcp_sk_init()).
func (j *judge) linuxNamespaces() {
	for _, n := range j.Namespaces {
		inside := &judge{Snapshot: &Snapshot{System: j.System, Version: j.Version, Values: n.Values}, path: j.path}
		inside.linuxWindows()
		for _, f := range inside.found {
			if f.Grade != Limits || j.Values[f.Parameter] == n.Values[f.Parameter] {
				continue
			}
			j.add(Finding{Grade: Risk, Code: OtherNamespace, Parameter: f.Parameter, Value: f.Value,
				Source: "kernel: net/ipv4/tcp_ipv4.c tcp_sk_init()", Confirmed: true, Args: []any{n.Program, n.PID, f},
				Command: fmt.Sprintf("nsenter -t %d -n fullpipe audit", n.PID)})
		}
	}
}

func (j *judge) linuxWindows() {
	const rmemName, wmemName = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
	command := j.planCommand()
	rmem, haveRmem := j.numbers(rmemName)
	if haveRmem {
		window := j.maxWindow(rmem[2])
		f := Finding{Code: ReceiveMax, Parameter: rmemName, Value: j.Values[rmemName],
			Args: []any{units.Size(rmem[2]), units.Size(window)}, Command: command}
		j.limit(window, f)
		if j.Values["net.ipv4.tcp_moderate_rcvbuf"] == "0" {
			j.limit(j.maxWindow(rmem[1]), Finding{Code: ReceiveAutotuningOff, Parameter: "net.ipv4.tcp_moderate_rcvbuf",
				Value: "0", Args: []any{units.Size(rmem[1])}, Command: "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1"})
		}
	}
	wmem, haveWmem := j.numbers(wmemName)
	if haveWmem {
		j.limitSend(int64(model.LinuxAutomaticInFlight(int(wmem[2]))), Finding{Code: SendMax, Parameter: wmemName,
			Value: j.Values[wmemName],
			Args:  []any{units.Size(wmem[2])}, Command: command})
	}
	if j.Values["net.ipv4.tcp_window_scaling"] == "0" {
		j.limit(model.MaxUnscaled, Finding{Code: NoWindowScaling, Parameter: "net.ipv4.tcp_window_scaling", Value: "0",
			Command: "sysctl -w net.ipv4.tcp_window_scaling=1"})
	}
	if haveRmem {
		j.largeDefaults(rmemName, rmem, 131072)
	}
	if haveWmem {
		j.largeDefaults(wmemName, wmem, 16384)
	}
	j.programWindows("net.core.rmem_max", "SO_RCVBUF")
	j.programWindows("net.core.wmem_max", "SO_SNDBUF")
}

// largeDefaults judges minimum and default of tcp_rmem or tcp_wmem. usual is the kernel's default.
func (j *judge) largeDefaults(name string, values [3]int64, usual int64) {
	for i, code := range []Code{LargeMinimum, LargeDefault} {
		if values[i] >= maxSocketMinimum {
			j.add(Finding{Grade: Harmful, Code: code, Parameter: name, Value: j.Values[name],
				Args:    []any{units.Size(values[i])},
				Command: fmt.Sprintf("sysctl -w %s='4096 %d %d'", name, usual, values[2])})
			return
		}
	}
}

// programWindows judges the limit of buffers that programs set themselves.
func (j *judge) programWindows(name, option string) {
	limit, ok := j.number(name)
	rate, _, limits := j.goodput(limit, limit)
	entry, _ := catalog.Get(catalog.Linux, name)
	if !ok || !limits || impossible(entry, j.Values[name]) {
		return
	}
	j.add(Finding{Grade: Risk, Code: ProgramWindowMax, Parameter: name, Value: j.Values[name],
		Args:    []any{option, units.Size(limit), units.Rate(rate)},
		Command: fmt.Sprintf("sysctl -w %s=%d", name, int64(model.BDP(j.path.RateBps, j.path.RTT)))})
}

// tcpMem is the memory of all TCP sockets, in pages.
const tcpMem = "net.ipv4.tcp_mem"

// page returns the size of a page of memory in bytes.
func (j *judge) page() int64 {
	if j.PageBytes <= 0 {
		return 4096
	}
	return j.PageBytes
}

func (j *judge) linuxMemory() {
	const name = tcpMem
	page := j.page()
	mem, ok := j.numbers(name)
	entry, _ := catalog.Get(catalog.Linux, name)
	ok = ok && !impossible(entry, j.Values[name])
	if ok && j.MemoryBytes > 0 && mem[2] > j.MemoryBytes/page {
		j.add(Finding{Grade: Harmful, Code: MemoryInPages, Parameter: name, Value: j.Values[name],
			Args:    []any{units.Size(float64(mem[2]) * float64(page)), units.Size(j.MemoryBytes)},
			Command: j.command(entry, j.safeValue(entry), "")})
		ok = false
	}
	if !j.path.stated() {
		return
	}
	need := 2 * model.BDP(j.path.RateBps, j.path.RTT) * float64(j.path.Connections)
	args := []any{Connections(j.path.Connections), units.Size(need)}
	if ok && need > float64(mem[1]*page)/2 {
		j.add(Finding{Grade: Risk, Code: MemoryForConnections, Parameter: name, Value: j.Values[name],
			Args:    append(args, units.Size(mem[1]*page)),
			Command: j.planCommand() + fmt.Sprintf(" --connections %d --memory %d", j.path.Connections, j.MemoryBytes)})
	}
	if j.LimitBytes > 0 && need > float64(j.LimitBytes)/2 {
		j.add(Finding{Grade: Risk, Code: CgroupForConnections, Parameter: "memory.max", Confirmed: true,
			Value:  strconv.FormatInt(j.LimitBytes, 10),
			Source: "kernel: Documentation/admin-guide/cgroup-v2.rst (sock)",
			Args:   append(args, units.Size(j.LimitBytes))})
	}
}

// MaxBuffers returns how many bytes full socket buffers may take together, and the parameter that bounds them: half of
// the memory at which TCP's buffers stop growing (net.ipv4.tcp_mem), half of the cgroup's memory.max, or 1/32 of the
// memory (""). It returns 0 if no bound is known.
func (s *Snapshot) MaxBuffers() (bytes int64, parameter string) {
	j := &judge{Snapshot: s}
	bytes = s.MemoryBytes / 32
	if mem, ok := j.numbers(tcpMem); ok && mem[1] > 0 && s.PageBytes > 0 {
		bytes = mem[1] * s.PageBytes / 2
		parameter = tcpMem
	}
	if s.LimitBytes > 0 && s.LimitBytes/2 < bytes {
		bytes = s.LimitBytes / 2
		parameter = "memory.max"
	}
	return bytes, parameter
}

func (j *judge) linuxRoutes() {
	for _, r := range j.Routes {
		f := func(code Code, name string) Finding {
			return Finding{Code: code, Parameter: name, Value: r.Prefix + " " + name + " " + r.Attributes[name],
				Args: []any{r.Prefix}, Command: withoutAttribute(r.Prefix, name)}
		}
		if window, err := strconv.ParseInt(r.Attributes["window"], 10, 64); err == nil {
			clamped := f(RouteWindow, "window")
			clamped.Args = append(clamped.Args, units.Size(window))
			j.limit(window, clamped)
		}
		if cwnd, err := strconv.ParseInt(r.Attributes["cwnd"], 10, 32); err == nil {
			clamped := f(RouteCwnd, "cwnd")
			clamped.Args = append(clamped.Args, cwnd)
			j.limitSend(cwnd*routeMSS, clamped)
		}
		if mtu, err := strconv.Atoi(r.Attributes["mtu"]); err == nil && mtu > 0 && mtu < minIPv6MTU {
			small := f(RouteMTU, "mtu")
			small.Grade = Risk
			small.Args = append(small.Args, mtu, headerPercent(mtu))
			j.add(small)
		}
	}
}

// withoutAttribute returns the command that removes an attribute from the routes to a prefix.
func withoutAttribute(prefix, attribute string) string {
	return fmt.Sprintf("ip route show %s | sed -E 's/ %s( lock)? [0-9]+//' | while read -r r; do ip route change $r; done",
		shellWord(prefix, "PREFIX"), attribute)
}

// linuxSockets judges the open connections.
func (j *judge) linuxSockets() {
	for _, s := range j.Sockets {
		if s.RecvFixed {
			j.programBuffer(s, "SO_RCVBUF", s.RecvBytes)
		}
		if s.SendFixed {
			j.programBuffer(s, "SO_SNDBUF", s.SendBytes)
		}
		for _, wait := range []struct {
			parameter string
			code      Code
			seconds   float64
		}{{"net.ipv4.tcp_wmem", WaitedForSendBuffer, s.SndbufS}, {"receive window", WaitedForWindow, s.RwndS}} {
			if wait.seconds > 0.2*s.BusyS && wait.seconds > 0.5 && s.BusyS > 0 {
				j.add(Finding{Grade: Risk, Code: wait.code, Parameter: wait.parameter, Confirmed: true,
					Source: "kernel: include/uapi/linux/tcp.h tcp_info",
					Args:   []any{s, 100 * wait.seconds / s.BusyS, units.Seconds(s.BusyS)}})
			}
		}
	}
}

// programBuffer judges a buffer that a program set. About half of it is payload.
func (j *judge) programBuffer(s Socket, option string, bytes int64) {
	f := Finding{Grade: Risk, Code: ProgramBuffer, Parameter: option, Value: strconv.FormatInt(bytes, 10),
		Args: []any{s, option, units.Size(bytes)}}
	rate, capacity, limits := j.goodput(bytes/2, bytes/2)
	if limits {
		f.Code = ProgramBufferCaps
		f.Args = append(f.Args, j.path, units.Rate(rate))
		j.addLimit(rate, capacity, f)
		return
	}
	j.add(f)
}

// linuxCounters judges what the kernel counted since boot.
func (j *judge) linuxCounters() {
	for _, c := range []struct {
		name string
		code Code
	}{
		{"TCPMemoryPressures", MemoryPressure},
		{"PruneCalled", ReceiveQueuePruned},
		{"RcvPruned", SegmentsPruned},
		{"TCPBacklogDrop", BacklogDrops},
		{"ListenOverflows", AcceptQueueOverflows},
		{"SyncookiesSent", SYNCookies},
		{"softnet_dropped", CPUBacklogDrops},
	} {
		if n := j.Counters[c.name]; n >= minEvents {
			j.add(Finding{Grade: Risk, Code: c.code, Parameter: c.name, Value: strconv.FormatInt(n, 10), Confirmed: true,
				Source: "kernel: Documentation/networking/snmp_counter.rst", Args: []any{n}})
		}
	}
}
