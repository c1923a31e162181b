package audit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// shapers are qdiscs whose purpose is to limit a rate.
var shapers = map[string]bool{"tbf": true, "htb": true, "hfsc": true, "cbq": true}

const (
	minOffloadRate = 1e9  // bit/s at which segmentation by the CPU may limit
	minErrorRatio  = 1e-6 // share of packets below which errors are chance
	minIPv6MTU     = 1280 // bytes (RFC 8200 section 5)
)

// interfaces judges what every system has: speed, duplex, errors, offloads.
func (j *judge) interfaces() {
	for i := range j.Interfaces {
		f := &j.Interfaces[i]
		j.interfaceRate(f)
		j.interfaceErrors(f)
		j.interfaceSettings(f)
	}
}

// addInterface appends a finding about an interface.
func (j *judge) addInterface(i *Interface, f Finding) {
	f.Parameter = i.Name
	f.Confirmed = true
	f.Source = "the interface's own counters and settings"
	j.add(f)
}

// interfaceRate judges the limits of the path's rate: the link's speed and this host's shaper.
func (j *judge) interfaceRate(i *Interface) {
	limit := func(bps float64, f Finding) {
		f.Parameter = i.Name
		f.Args = []any{units.Rate(bps), j.path}
		f.Confirmed = true
		f.Source = "the interface's own settings"
		j.addLimit(bps, j.path.RateBps, f)
	}
	if speed := float64(i.SpeedBps); i.Default && speed > 0 && plan.Limits(speed, j.path.RateBps) {
		limit(speed, Finding{Code: LinkRate, Value: units.Rate(speed).String()})
	}
	show := "tc -s qdisc show dev " + shellWord(i.Name, "NAME")
	switch shape := float64(i.ShapeBps); {
	case i.Default && shape > 0 && plan.Limits(shape, j.path.RateBps):
		limit(shape, Finding{Code: ShaperRate, Value: i.Qdisc + " " + units.Rate(shape).String(), Command: show})
	case shapers[i.Qdisc]:
		j.addInterface(i, Finding{Grade: Risk, Code: ShaperConfigured, Value: i.Qdisc, Command: show})
	}
}

// packetErrors are the counters of lost packets and the counters of all packets.
var packetErrors = []struct {
	name, packets string
	code          Code
}{
	{"rx_errors", "rx_packets", PacketsDamaged},
	{"rx_missed_errors", "rx_packets", PacketsMissed},
	{"rx_fifo_errors", "rx_packets", PacketsOverrun},
	{"tx_errors", "tx_packets", PacketsUnsent},
	{"tx_dropped", "tx_packets", PacketsDropped},
	{"qdisc_dropped", "qdisc_packets", PacketsDroppedQueued},
	{"collisions", "tx_packets", Collisions},
}

func (j *judge) interfaceErrors(i *Interface) {
	for _, c := range packetErrors {
		n := i.Counters[c.name]
		total := i.Counters[c.packets]
		if n <= 0 || total > 0 && float64(n)/float64(total) < minErrorRatio {
			continue
		}
		f := Finding{Grade: Risk, Code: c.code, Value: c.name + " " + strconv.FormatInt(n, 10),
			Args: []any{Packets{n, total}}}
		if r := i.Ring; c.code == PacketsMissed && r != nil && r.RX < r.RXMax {
			f.Code = PacketsMissedByRing
			f.Args = append(f.Args, r.RX)
			f.Command = fmt.Sprintf("ethtool -G %s rx %d", shellWord(i.Name, "NAME"), r.RXMax)
		}
		j.addInterface(i, f)
	}
}

// interfaceSettings judges duplex, offloads, MTU and the transmit queue.
func (j *judge) interfaceSettings(i *Interface) {
	name := shellWord(i.Name, "NAME")
	if i.Duplex == "half" {
		j.addInterface(i, Finding{Grade: Harmful, Code: HalfDuplex, Value: "half duplex"})
	}
	for _, o := range []struct {
		name string
		code Code
	}{{"tso", TSOOff}, {"gro", GROOff}} {
		on, known := i.Offloads[o.name]
		if known && !on && (j.path.RateBps >= minOffloadRate || float64(i.SpeedBps) >= minOffloadRate) {
			j.addInterface(i, Finding{Grade: Risk, Code: o.code, Value: o.name + " off",
				Command: "ethtool -K " + name + " " + o.name + " on"})
		}
	}
	if i.MTUBytes > 0 && i.MTUBytes < minIPv6MTU {
		j.addInterface(i, Finding{Grade: Risk, Code: LinkMTUSmall, Value: fmt.Sprintf("MTU %d", i.MTUBytes),
			Args: []any{headerPercent(i.MTUBytes)}, Command: j.mtuCommand(i.Name)})
	}
	if (i.Qdisc == "pfifo_fast" || i.Qdisc == "pfifo") && i.TxQueueLen > 0 && i.TxQueueLen < 100 {
		j.addInterface(i, Finding{Grade: Risk, Code: TransmitQueueShort, Value: fmt.Sprintf("txqueuelen %d", i.TxQueueLen),
			Args: []any{i.TxQueueLen}, Command: "ip link set " + name + " txqueuelen 1000"})
	}
}

// mtuCommand returns the command that gives an interface Ethernet's MTU.
func (j *judge) mtuCommand(name string) string {
	name = shellWord(name, "NAME")
	switch j.System {
	case catalog.Linux:
		return fmt.Sprintf("ip link set %s mtu %d", name, ethernetMTU)
	case catalog.Windows:
		if strings.Contains(name, "_") { // the collector writes a space so
			name = "NAME"
		}
		return fmt.Sprintf(`netsh interface ipv4 set subinterface "%s" mtu=%d store=persistent`, name, ethernetMTU)
	case catalog.MacOS:
		return fmt.Sprintf("networksetup -setMTU %s %d", name, ethernetMTU)
	}
	return fmt.Sprintf("ifconfig %s mtu %d", name, ethernetMTU)
}

// headerPercent returns the share of a full packet that IPv4 and TCP headers without options take.
func headerPercent(mtu int) float64 { return 100 * 40 / float64(mtu) }
