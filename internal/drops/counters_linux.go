package drops

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/fullpipe-net/fullpipe/internal/lost"
)

// readCounters reads all counters that this process may read; slow also those that drivers and
// nftables need long for.
func readCounters(all snapshot, slow bool) {
	for _, name := range []string{"netstat", "snmp"} {
		if text, err := os.ReadFile("/proc/net/" + name); err == nil {
			readPairs(all, string(text))
		}
	}
	if text, err := os.ReadFile("/proc/net/snmp6"); err == nil {
		for line := range strings.Lines(string(text)) {
			if name, value, ok := strings.Cut(line, " "); ok {
				addProtocol(all, name, strings.TrimSpace(value))
			}
		}
	}
	if text, err := os.ReadFile("/proc/net/softnet_stat"); err == nil {
		addHex(all, counterKey{name: "softnet dropped"}, lost.CPUBacklog, text, false, 1)
	}
	if text, err := os.ReadFile("/proc/net/stat/nf_conntrack"); err == nil {
		const insertFailed, drop = 9, 10 // columns, after the heading
		addHex(all, counterKey{name: "nf_conntrack drop"}, lost.Netfilter, text, true, insertFailed, drop)
	}
	readDevices(all, slow)
	if slow {
		readRules(all)
	}
}

// readPairs reads pairs of lines as in /proc/net/netstat: names, then values in the same order.
func readPairs(all snapshot, text string) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || len(names) == 0 || names[0] != fields[0] {
			names = fields
			continue
		}
		prefix := strings.TrimSuffix(fields[0], ":")
		for i := 1; i < min(len(names), len(fields)); i++ {
			addProtocol(all, prefix+names[i], fields[i])
		}
		names = nil
	}
}

func addProtocol(all snapshot, name, value string) {
	c, is := lost.ProtocolCounter(name)
	n, err := strconv.ParseUint(value, 10, 64)
	if is && err == nil {
		all[counterKey{name: name}] = counter{Counter: c, packets: n}
	}
}

// addHex adds the sum of columns of hexadecimal numbers, a line for each processor.
func addHex(all snapshot, key counterKey, c lost.Counter, text []byte, heading bool, columns ...int) {
	sum := uint64(0)
	for line := range bytes.Lines(text) {
		if heading {
			heading = false
			continue
		}
		fields := bytes.Fields(line)
		for _, column := range columns {
			if column < len(fields) {
				n, err := strconv.ParseUint(string(fields[column]), 16, 64)
				if err == nil {
					sum += n
				}
			}
		}
	}
	all[key] = counter{Counter: c, packets: sum}
}

// readDevices reads the counters of this namespace's network devices and of their root queueing
// disciplines.
func readDevices(all snapshot, slow bool) {
	links, err := netlink.LinkList()
	if err != nil {
		return
	}
	names := map[int]string{}
	for _, l := range links {
		a := l.Attrs()
		names[a.Index] = a.Name
		s := a.Statistics
		if s == nil {
			continue
		}
		for name, n := range map[string]uint64{"rx_missed_errors": s.RxMissedErrors, "rx_fifo_errors": s.RxFifoErrors,
			"rx_over_errors": s.RxOverErrors, "rx_crc_errors": s.RxCrcErrors, "rx_frame_errors": s.RxFrameErrors,
			"rx_dropped": s.RxDropped, "tx_dropped": s.TxDropped, "tx_errors": s.TxErrors} {
			all[counterKey{name: name, device: a.Name}] = counter{Counter: lost.LinkCounter(name), packets: n}
		}
		if slow {
			readDriver(all, a.Name)
		}
	}
	qdiscs, err := netlink.QdiscList(nil)
	if err != nil {
		return
	}
	for _, q := range qdiscs {
		a := q.Attrs()
		c := counter{Counter: lost.Qdisc, qdisc: q.Type()}
		switch {
		case a.Statistics == nil || a.Statistics.Queue == nil:
			continue
		case a.Parent == netlink.HANDLE_INGRESS: // ingress or clsact
			c.Counter = lost.Classifier
		case a.Parent != netlink.HANDLE_ROOT:
			continue
		}
		c.packets = uint64(a.Statistics.Queue.Drops)
		all[counterKey{name: q.Type() + " dropped", device: names[a.LinkIndex]}] = c
	}
}

// readDriver reads a driver's own counters (ethtool -S).
func readDriver(all snapshot, device string) {
	for name, n := range driverStatistics(device) {
		c, is := lost.DriverCounter(name)
		if lost.IsAllowance(name) {
			c = lost.Allowance
			is = true
		}
		if is {
			all[counterKey{name: "ethtool " + strings.TrimSpace(name), device: device}] = counter{Counter: c, packets: n,
				slow: true}
		}
	}
}
