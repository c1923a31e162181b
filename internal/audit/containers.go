package audit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// hostSysctls are limits of the host that its other network namespaces lack or cannot change.
var hostSysctls = []string{"net.core.rmem_max", "net.core.wmem_max", "net.core.rmem_default", "net.core.wmem_default",
	"net.core.netdev_max_backlog", "net.core.default_qdisc", "net.ipv4.tcp_mem", "net.ipv4.udp_mem"}

// linuxContainer reports the limits that are not visible inside a container.
func (j *judge) linuxContainer() {
	if j.Namespace {
		var hidden, fixed []string
		for _, name := range hostSysctls {
			switch {
			case j.Values[name] == "":
				hidden = append(hidden, name)
			case strings.HasPrefix(name, "net.core."): // newer kernels let a namespace read it, not change it
				fixed = append(fixed, name)
			}
		}
		j.add(Finding{Grade: Unknown, Code: NamespaceSettings, Parameter: "namespace", Args: []any{hidden, fixed},
			Source: "kernel: net/core/sysctl_net_core.c", Confirmed: true})
	}
	if !j.Container && !j.Namespace {
		return
	}
	for i := range j.Interfaces {
		f := &j.Interfaces[i]
		if !f.Default || f.MTUBytes <= 0 {
			continue
		}
		value := fmt.Sprintf("MTU %d", f.MTUBytes)
		if overlay := overlays[f.MTUBytes]; overlay != "" {
			j.addInterface(f, Finding{Grade: Unknown, Code: OverlayMTU, Value: value, Args: []any{overlay}})
		} else {
			j.addInterface(f, Finding{Grade: Unknown, Code: OverlayUnknown, Value: value})
		}
	}
	if j.Container && j.LimitBytes == 0 {
		j.add(Finding{Grade: Unknown, Code: MemoryLimitHidden, Parameter: "memory.max", Confirmed: true,
			Source: "kernel: Documentation/admin-guide/cgroup-v2.rst (cgroup namespaces)"})
	}
}

// overlays are the tunnels by the MTU that they leave of Ethernet's 1500 bytes; geneve without options.
var overlays = map[int]string{1450: "vxlan or geneve", 1480: "ipip", 1440: "WireGuard over IPv4",
	1420: "WireGuard over IPv6"}

// datagramCounters count UDP datagrams that found a full buffer.
var datagramCounters = []struct {
	name, option, limit string
	code                Code
}{
	{"UdpRcvbufErrors", "SO_RCVBUF", "net.core.rmem_max", DatagramsDropped},
	{"UdpSndbufErrors", "SO_SNDBUF", "net.core.wmem_max", DatagramsUnsent},
}

// linuxDatagrams judges the limits of UDP sockets' buffers, QUIC's included. No system sizes them automatically.
func (j *judge) linuxDatagrams() {
	for _, c := range datagramCounters {
		if n := j.Counters[c.name]; n >= minEvents {
			j.add(Finding{Grade: Risk, Code: c.code, Parameter: c.name, Value: strconv.FormatInt(n, 10), Confirmed: true,
				Source: "kernel: Documentation/networking/snmp_counter.rst", Args: []any{n}})
		}
	}
	for i, requested := range []int64{j.path.ReceiveDatagrams, j.path.SendDatagrams} {
		c := datagramCounters[i]
		allowed, known := j.number(c.limit)
		// math.MaxInt32 requests as much as the system allows.
		if requested <= 0 || requested == math.MaxInt32 || known && allowed >= requested {
			continue
		}
		f := Finding{Grade: Risk, Code: DatagramBufferSmall, Parameter: c.limit, Value: j.Values[c.limit],
			Args:    []any{j.path.Program, Bytes(requested), c.option, Bytes(allowed)},
			Command: fmt.Sprintf("sysctl -w %s=%d", c.limit, requested)}
		switch {
		case !known:
			f.Grade = Unknown
			f.Code = DatagramBufferHidden
			f.Args = f.Args[:3]
			f.Source = "kernel: net/core/sysctl_net_core.c"
			f.Confirmed = true
		case j.Namespace:
			f.Code = DatagramBufferOfHost
		}
		j.add(f)
	}
}
