package lost

import "strings"

// Kind is the kind of a place of loss, as in documents.
type Kind string

const (
	Firewall   Kind = "firewall"    // netfilter: nftables or iptables
	Filter     Kind = "filter"      // an eBPF program, a security module or IPsec's policy
	Queue      Kind = "queue"       // a queueing discipline
	Device     Kind = "device"      // a network device or its driver
	Backlog    Kind = "backlog"     // the queue of received packets of a CPU
	Socket     Kind = "socket"      // the receiving socket's buffer, window or backlog
	Route      Kind = "route"       // no route, no neighbour, or the reverse path filter
	PacketSize Kind = "packet-size" // larger than the MTU, or fragments that did not fit together
	Invalid    Kind = "invalid"     // checksum, header or TCP option
	Other      Kind = "other"       // a reason that this table does not have
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Firewall, Filter, Queue, Device, Backlog, Socket, Route, PacketSize, Invalid,
		Other}
}

// reasons gives the kind of a place by the kernel's reason of a drop, without SKB_DROP_REASON_
// (include/net/dropreason-core.h, Linux 6.18).
var reasons = byName(map[Kind]string{
	Firewall: "NETFILTER_DROP",
	Filter: `
		BPF_CGROUP_EGRESS SOCKET_FILTER XDP TC_INGRESS TC_EGRESS TC_COOKIE_ERROR
		TC_CHAIN_NOTFOUND TC_RECLASSIFY_LOOP SECURITY_HOOK XFRM_POLICY PSP_INPUT PSP_OUTPUT`,
	Queue: `
		QDISC_DROP QDISC_OVERLIMIT QDISC_CONGESTED CAKE_FLOOD FQ_BAND_LIMIT FQ_HORIZON_LIMIT
		FQ_FLOW_LIMIT DUALPI2_STEP_DROP`,
	Device: `
		FULL_RING DEV_HDR DEV_READY NOMEM HDR_TRUNC TAP_FILTER TAP_TXFILTER SKB_GSO_SEG
		SKB_UCOPY_FAULT PFMEMALLOC NO_TX_TARGET TUNNEL_TXINFO VXLAN_INVALID_HDR
		VXLAN_VNI_NOT_FOUND MAC_INVALID_SOURCE BRIDGE_INGRESS_STP_STATE RECURSION_LIMIT`,
	Backlog: "CPU_BACKLOG",
	Socket: `
		SOCKET_RCVBUFF SOCKET_BACKLOG PROTO_MEM TCP_OFO_QUEUE_PRUNE TCP_OFO_DROP TCP_ZEROWINDOW
		TCP_OVERWINDOW TCP_INVALID_SEQUENCE TCP_INVALID_END_SEQUENCE TCP_LISTEN_OVERFLOW`,
	Route: `
		IP_OUTNOROUTES IP_INNOROUTES IP_RPFILTER IP_INADDRERRORS IP_LOCAL_SOURCE
		IP_INVALID_SOURCE IP_LOCALNET IP_INVALID_DEST NEIGH_CREATEFAIL NEIGH_FAILED
		NEIGH_QUEUEFULL NEIGH_DEAD NEIGH_HH_FILLFAIL IPV6DISABLED`,
	PacketSize: "PKT_TOO_BIG FRAG_REASM_TIMEOUT FRAG_TOO_FAR",
	Invalid: `
		TCP_CSUM UDP_CSUM IP_CSUM SKB_CSUM IP_INHDR PKT_TOO_SMALL TCP_RFC7323_PAWS TCP_RFC7323_TSECR
		TCP_MD5NOTFOUND TCP_MD5UNEXPECTED TCP_MD5FAILURE TCP_AUTH_HDR TCP_AONOTFOUND
		TCP_AOUNEXPECTED TCP_AOKEYNOTFOUND TCP_AOFAILURE TCP_MINTTL IPV6_BAD_EXTHDR
		TCP_INVALID_ACK_SEQUENCE IP_TUNNEL_ECN`,
})

// byName returns the kind of each name in the lists.
func byName(lists map[Kind]string) map[string]Kind {
	kinds := map[string]Kind{}
	for kind, names := range lists {
		for name := range strings.FieldsSeq(names) {
			kinds[name] = kind
		}
	}
	return kinds
}

// noise gives the reasons that are no loss of payload: where the kernel frees a packet although its
// data has arrived already, is not wanted any more, or arrives by another copy.
var noise = map[string]string{
	"NOT_SPECIFIED":        "also drivers that free transmitted packets with kfree_skb",
	"QUEUE_PURGE":          "skb_queue_purge: a socket or device that closes frees its queues",
	"NO_SOCKET":            "tcp_v4_rcv: the socket has closed",
	"SOCKET_CLOSE":         "the socket closes",
	"TCP_FLAGS":            "tcp_rcv_state_process: a segment without use in this state, as at the end",
	"TCP_CLOSE":            "tcp_rcv_state_process: the socket has closed",
	"TCP_RESET":            "tcp_reset",
	"TCP_ABORT_ON_DATA":    "tcp_rcv_state_process: data for a reader that has closed",
	"TCP_OLD_DATA":         "tcp_data_queue: the data had arrived before",
	"TCP_OLD_SEQUENCE":     "tcp_validate_incoming: the data had arrived before",
	"TCP_OFOMERGE":         "tcp_ofo_queue: the data had arrived before, out of order",
	"TCP_OLD_ACK":          "tcp_ack",
	"TCP_TOO_OLD_ACK":      "tcp_ack (RFC 5961)",
	"TCP_ACK_UNSENT_DATA":  "tcp_ack (RFC 5961)",
	"TCP_RFC7323_PAWS_ACK": "tcp_disordered_ack_check: a pure ACK",
	"TCP_RFC7323_TW_PAWS":  "tcp_timewait_state_process: the connection has ended",
	"TCP_INVALID_SYN":      "tcp_validate_incoming (RFC 5961)",
	"TCP_FASTOPEN":         "tcp_v4_rcv: the SYN's data goes on in another packet",
	"OTHERHOST":            "ip_rcv_core: a copy for a promiscuous device",
	"PACKET_SOCK_ERROR":    "packet_rcv: the copy for a packet capture",
	"DUP_FRAG":             "inet_frag_queue_insert: the fragment had arrived before",
	"UNHANDLED_PROTO":      "__netif_receive_skb_core: no TCP packet",
}

// CountsAsSent reports whether TCP may count a packet as sent that was dropped for a reason while
// it transmitted it: queues that signal congestion by a drop return NET_XMIT_CN (sch_red,
// sch_fq_codel).
func CountsAsSent(reason string) bool {
	return reason == "QDISC_CONGESTED" || reason == "QDISC_OVERLIMIT"
}

// KindOf returns the kind of a place by the name of a reason, without SKB_DROP_REASON_. It returns
// "" for a reason that is no loss of payload.
func KindOf(reason string) Kind {
	if kind, known := reasons[reason]; known {
		return kind
	}
	if _, is := noise[reason]; is {
		return ""
	}
	return Other
}
