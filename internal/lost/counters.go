package lost

import "strings"

// Counter describes a counter of dropped packets.
type Counter struct {
	Kind Kind
	// Sends and Receives report whether it counts packets that the host transmits, or receives.
	Sends, Receives bool
	Merged          bool   // one counted packet may be several segments (GSO, GRO)
	Protocol        string // TCP or UDP; empty: any
}

// AllowanceExceeded is the kind of counters of packets beyond the allowance of a cloud's instance. They
// may be delayed or dropped: a hint, no place.
const AllowanceExceeded Kind = "allowance-exceeded"

// The protocols of counters.
const (
	TCP = "tcp"
	UDP = "udp"
)

// The counters of a host by their meaning.
var (
	both     = Counter{Sends: true, Receives: true, Merged: true}
	received = Counter{Kind: Device, Receives: true}
	sent     = Counter{Kind: Device, Sends: true, Merged: true}

	Qdisc      = Counter{Kind: Queue, Sends: true, Merged: true}
	CPUBacklog = Counter{Kind: Backlog, Receives: true, Merged: true}
	Classifier = both.of(Filter)   // the qdiscs ingress and clsact
	Netfilter  = both.of(Firewall) // connection tracking
	Allowance  = both.of(AllowanceExceeded)
)

func (c Counter) of(kind Kind) Counter { c.Kind = kind; return c }

func (c Counter) in(protocol string) Counter { c.Protocol = protocol; return c }

// protocolCounters are the kernel's counters of protocols by their names in nstat (net/ipv4/proc.c,
// net/ipv6/proc.c, Linux 6.18). Counters that also count packets of another row are left out.
var protocolCounters = byCounter(map[Counter]string{
	{Socket, false, true, true, TCP}: `
		TcpExtRcvPruned TcpExtOfoPruned TcpExtTCPRcvQDrop TcpExtTCPBacklogDrop TcpExtTCPOFODrop
		TcpExtTCPZeroWindowDrop`,
	received.of(Socket).in(UDP):  "UdpRcvbufErrors UdpMemErrors Udp6RcvbufErrors Udp6MemErrors",
	sent.of(Socket).in(UDP):      "UdpSndbufErrors Udp6SndbufErrors",
	received.of(Invalid).in(TCP): "TcpInCsumErrors TcpExtPAWSEstab TcpExtTCPMinTTLDrop",
	received.of(Invalid).in(UDP): "UdpInCsumErrors Udp6InCsumErrors",
	received.of(Invalid):         "IpInHdrErrors Ip6InHdrErrors",
	received:                     "TcpExtPFMemallocDrop",
	received.of(Route):           "TcpExtIPReversePathFilter IpInAddrErrors Ip6InAddrErrors Ip6InNoRoutes",
	sent.of(Route):               "IpOutNoRoutes Ip6OutNoRoutes",
	received.of(PacketSize):      "IpReasmFails Ip6ReasmFails Ip6InTooBigErrors",
	sent.of(PacketSize):          "IpFragFails Ip6FragFails",
})

func byCounter(lists map[Counter]string) map[string]Counter {
	all := map[string]Counter{}
	for counter, names := range lists {
		for name := range strings.FieldsSeq(names) {
			all[name] = counter
		}
	}
	return all
}

// ProtocolCounter returns the meaning of a protocol's counter by its name in nstat.
func ProtocolCounter(name string) (Counter, bool) {
	c, ok := protocolCounters[name]
	return c, ok
}

// linkCounters are the counters of every network device by their names in ip -s -s link.
var linkCounters = map[string]Counter{
	"rx_missed_errors": received, "rx_fifo_errors": received, "rx_over_errors": received,
	"rx_crc_errors": received.of(Invalid), "rx_frame_errors": received.of(Invalid),
	"rx_dropped": received, "tx_dropped": sent, "tx_errors": sent,
}

// LinkCounter returns the meaning of a network device's counter.
func LinkCounter(name string) Counter { return linkCounters[name] }

// driverCounters are the ends of names of drivers' counters in ethtool -S without digits, which
// number the queues. The sources are the drivers in Linux 6.18.
var driverCounters = map[Counter]string{
	received: `
		rx_missed_errors rx_no_buffer_count rx_no_dma_resources
		rx_out_of_buffer rx_discards_phy rx_buff_alloc_err
		rx_total_discard_pkts rx_oom_discards
		rx_queue_drop_cnt rx_no_buffers_posted
		rx_overruns rx_drops rx_queue__drops
		rx_no_memory rx_alloc_failed rx_alloc_fail port.rx_dropped pkts_rx_OOB
		drv_dropped_rx_total`,
	sent: `
		tx_discards_phy tx_queue_dropped tx_drops tx_queue__drops tx_no_memory
		drv_dropped_tx_total pkts_tx_discard`,
	sent.of(PacketSize): "tx_too_big",
}

// DriverCounter returns the meaning of a driver's counter: of e1000, igb, ixgbe, i40e and ice, mlx5,
// bnxt_en, gve, ena, virtio_net, veth, hv_netvsc and vmxnet3.
func DriverCounter(name string) (Counter, bool) {
	if strings.Contains(name, "xdp") { // packets of XDP programs
		return Counter{}, false
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= '0' && r <= '9' || r == '[' || r == ']':
			return -1
		case r == ' ':
			return '_'
		}
		return r
	}, strings.TrimSpace(name))
	for counter, ends := range driverCounters {
		for end := range strings.FieldsSeq(ends) {
			if strings.HasSuffix(plain, end) {
				return counter, true
			}
		}
	}
	return Counter{}, false
}

// IsAllowance reports whether a driver's counter has packets beyond the cloud's allowance for
// this instance (ena's for bandwidth, packets, connections and link-local services).
func IsAllowance(name string) bool { return strings.HasSuffix(name, "_allowance_exceeded") }
