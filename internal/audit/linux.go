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

// large is a minimum or default, in bytes, that many sockets cannot share a host with.
const large = 1 << 20

// numbers are a value's three fields, as tcp_rmem has them.
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

// windowOf returns the largest window of a receive buffer.
func (j *judge) windowOf(buffer int64) int64 {
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
	if qdisc := j.Values["net.core.default_qdisc"]; control == "bbr" && qdisc != "fq" && !catalog.AtLeast(j.Version,
		"4.20") {
		j.add(Finding{Grade: Risk, Parameter: "net.ipv4.tcp_congestion_control", Value: control,
			Text: "bbr needs fq to pace before 4.20; new interfaces get " + qdisc, Fix: "sysctl -w net.core.default_qdisc=fq"})
	}
}

// linuxNamespaces speaks of the host's other network namespaces: each copied its values
// when it was made (net/ipv4/tcp_ipv4.c tcp_sk_init()), and none follows the host's since.
func (j *judge) linuxNamespaces() {
	for _, n := range j.Namespaces {
		inside := &judge{Snapshot: &Snapshot{System: j.System, Version: j.Version, Values: n.Values}, path: j.path}
		inside.linuxWindows()
		for _, f := range inside.found {
			if f.Grade != Limits || j.Values[f.Parameter] == n.Values[f.Parameter] {
				continue
			}
			j.add(Finding{Grade: Risk, Parameter: f.Parameter, Value: f.Value,
				Source: "kernel: net/ipv4/tcp_ipv4.c tcp_sk_init()", Confirmed: true,
				Text: fmt.Sprintf("in the network namespace of %s (pid %d), whose sysctls are its own: %s", n.Program, n.PID,
					f.Text),
				Fix: fmt.Sprintf("nsenter -t %d -n fullpipe audit, then apply there", n.PID)})
		}
	}
}

func (j *judge) linuxWindows() {
	fix := ""
	if j.path.stated() {
		fix = j.planFix()
	}
	rmem, haveRmem := j.numbers("net.ipv4.tcp_rmem")
	if haveRmem {
		ceiling := "tcp_rmem max " + units.Size(rmem[2]).String()
		window := j.windowOf(rmem[2])
		if window < rmem[2] {
			ceiling += fmt.Sprintf(", a window of %s,", units.Size(window))
		}
		j.caps("net.ipv4.tcp_rmem", j.Values["net.ipv4.tcp_rmem"], window, ceiling, fix)
		if j.Values["net.ipv4.tcp_moderate_rcvbuf"] == "0" {
			j.caps("net.ipv4.tcp_moderate_rcvbuf", "0", j.windowOf(rmem[1]),
				"autotuning is off: every receive buffer stays at "+units.Size(rmem[1]).String()+", which",
				"sysctl -w net.ipv4.tcp_moderate_rcvbuf=1")
		}
	}
	wmem, haveWmem := j.numbers("net.ipv4.tcp_wmem")
	if haveWmem {
		j.caps("net.ipv4.tcp_wmem", j.Values["net.ipv4.tcp_wmem"], int64(model.LinuxAutomaticInFlight(int(wmem[2]))),
			"tcp_wmem max "+units.Size(wmem[2]).String(), fix)
	}
	if j.Values["net.ipv4.tcp_window_scaling"] == "0" {
		j.caps("net.ipv4.tcp_window_scaling", "0", model.MaxUnscaled, "no window scaling: 65,535 bytes, which",
			"sysctl -w net.ipv4.tcp_window_scaling=1")
	}
	for _, b := range []struct {
		name  string
		have  bool
		n     [3]int64
		usual int64
	}{{"net.ipv4.tcp_rmem", haveRmem, rmem, 131072}, {"net.ipv4.tcp_wmem", haveWmem, wmem, 16384}} {
		for i, word := range []string{"minimum", "default"} {
			if b.have && b.n[i] >= large {
				j.add(Finding{Grade: Harmful, Parameter: b.name, Value: j.Values[b.name],
					Text: fmt.Sprintf("a %s of %s belongs to every socket, idle ones and under memory pressure too; only the "+
						"maximum makes one transfer fast", word, units.Size(b.n[i])),
					Fix: fmt.Sprintf("sysctl -w %s='4096 %d %d'", b.name, b.usual, b.n[2])})
				break
			}
		}
	}
	for _, b := range []struct{ name, option string }{{"net.core.rmem_max", "SO_RCVBUF"},
		{"net.core.wmem_max", "SO_SNDBUF"}} {
		name := b.name
		option := b.option
		bound, ok := j.number(name)
		if !ok || !j.path.stated() || model.Rate(int(bound), j.path.RTT) >= j.path.RateBps {
			continue
		}
		j.add(Finding{Grade: Risk, Parameter: name, Value: j.Values[name],
			Text: fmt.Sprintf("programs that set %s get a window of at most %s, %s here; others are not concerned", option,
				units.Size(bound), units.Rate(model.Rate(int(bound), j.path.RTT))),
			Fix: fmt.Sprintf("leave %s out of the program, or sysctl -w %s=%d", option, name,
				int64(model.BDP(j.path.RateBps, j.path.RTT)))})
	}
}

func (j *judge) linuxMemory() {
	page := j.PageBytes
	if page <= 0 {
		page = 4096
	}
	mem, ok := j.numbers("net.ipv4.tcp_mem")
	if ok && j.MemoryBytes > 0 && mem[2] > j.MemoryBytes/page {
		j.add(Finding{Grade: Harmful, Parameter: "net.ipv4.tcp_mem", Value: j.Values["net.ipv4.tcp_mem"],
			Text: fmt.Sprintf("its unit is pages: this lets TCP hold %s on a host of %s; it was probably meant in bytes",
				units.Size(float64(mem[2])*float64(page)), units.Size(j.MemoryBytes)),
			Fix: fmt.Sprintf("sysctl -w net.ipv4.tcp_mem='%d %d %d'", mem[0]/page, mem[1]/page, mem[2]/page)})
		ok = false
	}
	if !j.path.stated() {
		return
	}
	need := 2 * model.BDP(j.path.RateBps, j.path.RTT) * float64(j.path.Connections)
	what := fmt.Sprintf("%d connection%s with buffers of 2 x BDP need %s", j.path.Connections, plural(j.path.Connections),
		units.Size(need))
	if ok && need > float64(mem[1]*page)/2 {
		j.add(Finding{Grade: Risk, Parameter: "net.ipv4.tcp_mem", Value: j.Values["net.ipv4.tcp_mem"],
			Text: fmt.Sprintf("%s, more than half of the %s at which TCP's buffers stop growing", what, units.Size(mem[1]*page)),
			Fix:  j.planFix() + fmt.Sprintf(" --connections %d --memory %d", j.path.Connections, j.MemoryBytes)})
	}
	if j.LimitBytes > 0 && need > float64(j.LimitBytes)/2 {
		j.add(Finding{Grade: Risk, Parameter: "memory.max", Value: strconv.FormatInt(j.LimitBytes, 10), Confirmed: true,
			Source: "kernel: Documentation/admin-guide/cgroup-v2.rst (sock)",
			Text:   fmt.Sprintf("%s; the cgroup's limit of %s counts socket buffers too", what, units.Size(j.LimitBytes)),
			Fix:    "raise the container's memory limit, or use fewer connections"})
	}
}

// Crowds says why buffers of so many bytes, all full, are too much for the host; "" when
// they fit: half of the memory at which TCP's buffers stop growing, or of a cgroup's limit.
func (s *Snapshot) Crowds(bytes int64) string {
	j := &judge{Snapshot: s}
	share := s.MemoryBytes / 32
	what := "1/32 of the memory"
	if mem, ok := j.numbers("net.ipv4.tcp_mem"); ok && s.PageBytes > 0 {
		share = mem[1] * s.PageBytes / 2
		what = "half of tcp_mem's pressure mark"
	}
	if s.LimitBytes > 0 && s.LimitBytes/2 < share {
		share = s.LimitBytes / 2
		what = "half of the cgroup's memory limit"
	}
	if share <= 0 || bytes <= share {
		return ""
	}
	return fmt.Sprintf("full buffers would take %s, more than %s, %s", units.Size(bytes), what, units.Size(share))
}

func (j *judge) linuxRoutes() {
	for _, r := range j.Routes {
		if window, err := strconv.ParseInt(r.Attributes["window"], 10, 64); err == nil {
			j.caps("window", r.Prefix+" window "+r.Attributes["window"], window, "the route to "+r.Prefix+
				" clamps the window to "+units.Size(window).String()+", which",
				"ip route change "+word(r.Prefix, "PREFIX")+" … without window")
		}
		if cwnd, err := strconv.ParseInt(r.Attributes["cwnd"], 10, 32); err == nil {
			j.caps("cwnd", r.Prefix+" cwnd "+r.Attributes["cwnd"], cwnd*1460,
				fmt.Sprintf("the route to %s clamps the congestion window to %d segments, which", r.Prefix, cwnd),
				"ip route change "+word(r.Prefix, "PREFIX")+" … without cwnd")
		}
		if mtu, err := strconv.Atoi(r.Attributes["mtu"]); err == nil && mtu < 1280 {
			j.add(Finding{Grade: Risk, Parameter: "mtu", Value: r.Prefix + " mtu " + r.Attributes["mtu"],
				Text: fmt.Sprintf("packets of %d bytes to %s: %.0f %% headers", mtu, r.Prefix, 4000/float64(mtu))})
		}
	}
}

// linuxSockets speaks of connections that are open now.
func (j *judge) linuxSockets() {
	for _, s := range j.Sockets {
		name := s.Program
		if name == "" {
			name = "a program"
		}
		between := s.Local
		if s.Remote != "" {
			between += " to " + s.Remote
		}
		for _, b := range []struct {
			option  string
			fixed   bool
			bytes   int64
			seconds float64
		}{{"SO_RCVBUF", s.RecvFixed, s.RecvBytes, s.RwndS}, {"SO_SNDBUF", s.SendFixed, s.SendBytes, s.SndbufS}} {
			if !b.fixed {
				continue
			}
			finding := Finding{Grade: Risk, Parameter: b.option, Value: strconv.FormatInt(b.bytes, 10),
				Text: fmt.Sprintf("%s (%s) set %s: its buffer stays at %s and autotuning is off", name, between, b.option,
					units.Size(b.bytes)),
				Fix: "take the setting out of the program, or: fullpipe exec --ignore-program-buffers -- PROGRAM"}
			if most := model.Rate(int(b.bytes/2), j.path.RTT); j.path.stated() && most < j.path.RateBps {
				finding.Grade = Limits
				finding.CapBps = most
				finding.CostBps = j.path.RateBps - most
				finding.Text += fmt.Sprintf("; half of it is payload, %s on %s", units.Rate(most), j.path)
			}
			j.add(finding)
		}
		for _, l := range []struct {
			parameter, what string
			seconds         float64
		}{{"net.ipv4.tcp_wmem", "its own send buffer", s.SndbufS}, {"receive window", "the other side's window", s.RwndS}} {
			if l.seconds > 0.2*s.BusyS && l.seconds > 0.5 {
				j.add(Finding{Grade: Risk, Parameter: l.parameter, Confirmed: true,
					Source: "kernel: include/uapi/linux/tcp.h tcp_info",
					Text: fmt.Sprintf("%s (%s) waited for %s in %.0f %% of its %s of sending", name, between, l.what,
						100*l.seconds/s.BusyS, seconds(s.BusyS))})
			}
		}
	}
}

// few events since the start say nothing.
const few = 10

// linuxCounters speaks of what the kernel counted since its start.
func (j *judge) linuxCounters() {
	for _, c := range []struct{ name, text, fix string }{
		{"TCPMemoryPressures", "times TCP ran into memory pressure (tcp_mem) and buffers shrank",
			"lower tcp_rmem and tcp_wmem's maxima, or raise tcp_mem"},
		{"PruneCalled", "times a receive queue was squeezed because its buffer was full",
			"a reader that is too slow, or tcp_rmem's maximum too small for what is in flight"},
		{"RcvPruned", "segments dropped from a full receive buffer", "a reader that is too slow, or tcp_rmem's maximum too " +
			"small for what is in flight"},
		{"TCPBacklogDrop", "segments dropped while a program held its socket", "raise the socket's receive buffer"},
		{"ListenOverflows", "connections refused because a listener's queue was full",
			"raise the program's backlog and net.core.somaxconn"},
		{"softnet_dropped", "packets dropped before TCP: a CPU's backlog was full", "raise net.core.netdev_max_backlog, or " +
			"spread the load (RPS, more queues)"},
	} {
		if n := j.Counters[c.name]; n >= few {
			j.add(Finding{Grade: Risk, Parameter: c.name, Value: strconv.FormatInt(n, 10), Confirmed: true,
				Source: "kernel: Documentation/networking/snmp_counter.rst",
				Text:   fmt.Sprintf("%d %s, since the start", n, c.text), Fix: c.fix})
		}
	}
}

func seconds(s float64) string {
	if s < 120 {
		return strconv.FormatFloat(s, 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(s/60, 'f', 0, 64) + " min"
}

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
