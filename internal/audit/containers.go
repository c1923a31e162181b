package audit

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// ofHost are limits of a host that its other network namespaces have no value of, or one
// that they cannot change.
var ofHost = []string{"net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default",
	"net.core.netdev_max_backlog", "net.core.default_qdisc", "net.ipv4.tcp_mem", "net.ipv4.udp_mem"}

// linuxContainer says which limits cannot be seen from inside a container.
func (j *judge) linuxContainer() {
	if j.Namespace {
		var unseen, fixed []string
		for _, name := range ofHost {
			switch {
			case j.Values[name] == "":
				unseen = append(unseen, name)
			case strings.HasPrefix(name, "net.core."): // newer kernels let it be read here, not changed
				fixed = append(fixed, name)
			}
		}
		text := "these are a network namespace's own sysctls"
		if len(unseen) > 0 {
			text += "; not to be seen from here: " + strings.Join(unseen, ", ")
		}
		if len(fixed) > 0 {
			text += "; the host's, not to be changed from here: " + strings.Join(fixed, ", ")
		}
		j.add(Finding{Grade: Unknown, Parameter: "namespace", Source: "kernel: net/core/sysctl_net_core.c", Confirmed: true,
			Text: text + "; nor are the host's cards, their errors and queues, its connection tracking, or what " +
				"carries this namespace's packets on",
			Fix: "fullpipe audit on the host too"})
	}
	if !j.Container && !j.Namespace {
		return
	}
	for i := range j.Interfaces {
		if f := &j.Interfaces[i]; f.Default && f.MTUBytes > 0 {
			j.onInterface(f, Unknown, fmt.Sprintf("MTU %d", f.MTUBytes), overlaid(f.MTUBytes),
				"fullpipe tune probes the path's MTU")
		}
	}
	if j.Container && j.LimitBytes == 0 {
		j.add(Finding{Grade: Unknown, Parameter: "memory.max", Confirmed: true,
			Source: "kernel: Documentation/admin-guide/cgroup-v2.rst (cgroup namespaces)",
			Text:   "no memory limit is to be seen from inside; one of a cgroup further out counts socket buffers too"})
	}
}

// overlaid says which overlay an MTU tells of: what vxlan, geneve (its header without
// options), ipip and WireGuard (over IPv4 or IPv6) leave of Ethernet's 1500 bytes.
func overlaid(mtu int) string {
	names := map[int]string{1450: "vxlan or geneve", 1480: "ipip", 1440: "WireGuard over IPv4",
		1420: "WireGuard over IPv6"}
	if name := names[mtu]; name != "" {
		return "as beneath an overlay of " + name + ": the network outside has to carry 1500"
	}
	return "whether an overlay beneath takes bytes of that is not to be seen from here"
}

// datagramCounters are the kernel's of UDP datagrams that found a full buffer.
var datagramCounters = []struct{ name, option, bound, what, harm string }{
	{"UdpRcvbufErrors", "SO_RCVBUF", "net.core.rmem_max",
		"datagrams dropped because a UDP socket's receive buffer was full; QUIC takes them for lost",
		"datagrams that come in a burst are lost while it does not read"},
	{"UdpSndbufErrors", "SO_SNDBUF", "net.core.wmem_max",
		"datagrams not sent because a UDP socket's send buffer was full",
		"it waits, or loses datagrams, when it sends more at once"},
}

// linuxDatagrams judges what bounds the buffers of UDP sockets, QUIC's among them, which
// nothing sizes automatically.
func (j *judge) linuxDatagrams() {
	for _, c := range datagramCounters {
		if n := j.Counters[c.name]; n >= few {
			j.add(Finding{Grade: Risk, Parameter: c.name, Value: strconv.FormatInt(n, 10), Confirmed: true,
				Source: "kernel: Documentation/networking/snmp_counter.rst",
				Text:   fmt.Sprintf("%d %s, since the start", n, c.what),
				Fix: "a program that empties it sooner, or a larger " + c.option + ", which " + c.bound +
					" bounds (fullpipe plan --app quic-go)"})
		}
	}
	for i, want := range []int64{j.path.ReceiveDatagrams, j.path.SendDatagrams} {
		c := datagramCounters[i]
		has, known := j.number(c.bound)
		if want <= 0 || want == math.MaxInt32 || known && has >= want {
			continue // who asks for whatever there is has it
		}
		fix := fmt.Sprintf("sysctl -w %s=%d", c.bound, want)
		if j.Namespace {
			fix += " on the host"
		}
		if !known {
			j.add(Finding{Grade: Unknown, Parameter: c.bound, Confirmed: true, Source: "kernel: net/core/sysctl_net_core.c",
				Text: fmt.Sprintf("%s asks for %s by %s; whether it gets that is not to be seen from here", j.path.Program,
					units.Size(want).Exact(), c.option), Fix: fix})
			continue
		}
		j.add(Finding{Grade: Risk, Parameter: c.bound, Value: j.Values[c.bound], Fix: fix,
			Text: fmt.Sprintf("%s asks for %s by %s and gets %s: %s", j.path.Program, units.Size(want).Exact(), c.option,
				units.Size(has).Exact(), c.harm)})
	}
}
