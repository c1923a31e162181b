package record

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// LostAt is a place where packets of a transfer were dropped, by the kernel of a watched host.
type LostAt struct {
	// Confidence is high where drops were matched to retransmissions by sequence range, or to the
	// test's own connections. By counters of the whole host it is medium if their numbers fit the
	// retransmissions, else low. Absent in documents of versions without counters: high.
	Confidence verdict.Confidence `json:"confidence,omitempty"`
	// Counter moved: its name in nstat, ip, tc, nft or ethtool. Absent without one.
	Counter string `json:"counter,omitempty"`
	// Rule is nftables' that counted most of the drops: family, table, chain and handle.
	Rule string `json:"firewall_rule,omitempty"`
	// Place is firewall, filter, queue, device, backlog, socket, route, packet-size, invalid or
	// other; between-hosts if no place of both hosts dropped these packets; elsewhere if only one
	// host was watched, or not all of its packets; not-lost if they had arrived before (DSACK).
	Place string `json:"place"`
	// Side is sender-host or receiver-host; absent for the last three.
	Side string `json:"side,omitempty"`
	// Reason is the kernel's: a name of enum skb_drop_reason without its prefix.
	Reason string `json:"drop_reason,omitempty"`
	Dev    string `json:"dev,omitempty"`   // the network device, where the packet had one
	Qdisc  string `json:"qdisc,omitempty"` // the root queueing discipline of Dev, for a queue
	// Forwarded reports that the packets were dropped on their way through another network
	// namespace of the host.
	Forwarded bool `json:"forwarded,omitempty"`
	// Segments and Bytes are the retransmissions that the drops explain. On a receiver's host they
	// are the dropped bytes, and as many segments as they need.
	Segments int64 `json:"segments"`
	Bytes    int64 `json:"bytes"`
	// Share is that of all retransmitted bytes; absent if the sender's retransmissions are not
	// known.
	Share *float64 `json:"share,omitempty"`
	// DroppedPackets were freed by the kernel: one packet may have many segments. TCP keeps the
	// data of a packet that the host itself refuses to transmit, and sends it without a
	// retransmission.
	DroppedPackets int64 `json:"dropped_packets,omitempty"`
	DroppedBytes   int64 `json:"dropped_bytes,omitempty"`
	// the host that was watched: sender-host, receiver-host or both-hosts
	Watched string `json:"watched"`
	// NamespaceOnly reports that only network namespaces of a host were watched, a container's for
	// instance.
	NamespaceOnly bool `json:"namespace_only,omitempty"`
	// AddressesChange reports that the hosts see different addresses (NAT): drops of packets with
	// the others cannot be seen.
	AddressesChange bool `json:"addresses_change,omitempty"`
}

// Name returns a place as lists and --fail-on have it: SIDE/PLACE, or PLACE without a side.
func (l *LostAt) Name() string {
	if l.Side == "" {
		return l.Place
	}
	return l.Side + "/" + l.Place
}

// placesOf returns the names of the places that dropped packets, without those that are not known.
func placesOf(all []LostAt) (names []string) {
	for i := range all {
		l := &all[i]
		known := l.Place != Elsewhere && l.Place != NotLost
		if known && !slices.Contains(names, l.Name()) {
			names = append(names, l.Name())
		}
	}
	return names
}

// The values of LostAt's Side and Watched, and the Places that are no kinds of package lost.
const (
	SenderHost   = "sender-host"
	ReceiverHost = "receiver-host"
	BothHosts    = "both-hosts" // Watched only

	BetweenHosts = "between-hosts"
	Elsewhere    = "elsewhere"
	NotLost      = "not-lost"
)
