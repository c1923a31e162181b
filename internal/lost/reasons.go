package lost

// Kind is the kind of a place of loss, as in documents.
type Kind string

const (
	Firewall   Kind = "firewall"    // netfilter: nftables or iptables
	Filter     Kind = "filter"      // an eBPF program, a security module or IPsec's policy
	Queue      Kind = "queue"       // a queueing discipline
	Device     Kind = "device"      // a network device or its driver
	Backlog    Kind = "backlog"     // the queue of received packets of a CPU
	Socket     Kind = "socket"      // the receiving socket's buffer or backlog
	Route      Kind = "route"       // no route, no neighbour, or the reverse path filter
	PacketSize Kind = "packet-size" // larger than the MTU, or fragments that did not fit together
	Invalid    Kind = "invalid"     // checksum, header or TCP option
	Other      Kind = "other"       // a reason that this table does not have
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{Firewall, Filter, Queue, Device, Backlog, Socket, Route, PacketSize, Invalid, Other}
}

// reasons gives the kind of a place by the kernel's reason of a drop, without SKB_DROP_REASON_
// (include/net/dropreason-core.h, Linux 6.18).
var reasons = map[string]Kind{
	"NETFILTER_DROP": Firewall,

	"BPF_CGROUP_EGRESS": Filter, "SOCKET_FILTER": Filter, "XDP": Filter, "TC_INGRESS": Filter, "TC_EGRESS": Filter,
	"TC_COOKIE_ERROR": Filter, "TC_CHAIN_NOTFOUND": Filter, "TC_RECLASSIFY_LOOP": Filter, "SECURITY_HOOK": Filter,
	"XFRM_POLICY": Filter, "PSP_INPUT": Filter, "PSP_OUTPUT": Filter,

	"QDISC_DROP": Queue, "QDISC_OVERLIMIT": Queue, "QDISC_CONGESTED": Queue, "CAKE_FLOOD": Queue,
	"FQ_BAND_LIMIT": Queue, "FQ_HORIZON_LIMIT": Queue, "FQ_FLOW_LIMIT": Queue, "DUALPI2_STEP_DROP": Queue,

	"FULL_RING": Device, "DEV_HDR": Device, "DEV_READY": Device, "NOMEM": Device, "HDR_TRUNC": Device,
	"TAP_FILTER": Device, "TAP_TXFILTER": Device, "SKB_GSO_SEG": Device, "SKB_UCOPY_FAULT": Device, "PFMEMALLOC": Device,
	"NO_TX_TARGET":  Device,
	"TUNNEL_TXINFO": Device, "VXLAN_INVALID_HDR": Device, "VXLAN_VNI_NOT_FOUND": Device, "MAC_INVALID_SOURCE": Device,
	"BRIDGE_INGRESS_STP_STATE": Device, "RECURSION_LIMIT": Device,

	"CPU_BACKLOG": Backlog,

	"SOCKET_RCVBUFF": Socket, "SOCKET_BACKLOG": Socket, "PROTO_MEM": Socket, "TCP_OFO_QUEUE_PRUNE": Socket,
	"TCP_OFO_DROP": Socket, "TCP_ZEROWINDOW": Socket, "TCP_OVERWINDOW": Socket, "TCP_LISTEN_OVERFLOW": Socket,

	"IP_OUTNOROUTES": Route, "IP_INNOROUTES": Route, "IP_RPFILTER": Route, "IP_INADDRERRORS": Route,
	"IP_LOCAL_SOURCE": Route, "IP_INVALID_SOURCE": Route, "IP_LOCALNET": Route, "IP_INVALID_DEST": Route,
	"NEIGH_CREATEFAIL": Route,
	"NEIGH_FAILED":     Route, "NEIGH_QUEUEFULL": Route, "NEIGH_DEAD": Route, "NEIGH_HH_FILLFAIL": Route,
	"IPV6DISABLED": Route,

	"PKT_TOO_BIG": PacketSize, "FRAG_REASM_TIMEOUT": PacketSize, "FRAG_TOO_FAR": PacketSize,

	"TCP_CSUM": Invalid, "IP_CSUM": Invalid, "SKB_CSUM": Invalid, "IP_INHDR": Invalid, "PKT_TOO_SMALL": Invalid,
	"TCP_RFC7323_PAWS": Invalid, "TCP_RFC7323_TSECR": Invalid, "TCP_MD5NOTFOUND": Invalid, "TCP_MD5UNEXPECTED": Invalid,
	"TCP_MD5FAILURE": Invalid, "TCP_AUTH_HDR": Invalid, "TCP_AONOTFOUND": Invalid, "TCP_AOUNEXPECTED": Invalid,
	"TCP_AOKEYNOTFOUND": Invalid, "TCP_AOFAILURE": Invalid, "TCP_MINTTL": Invalid, "IPV6_BAD_EXTHDR": Invalid,
	"TCP_INVALID_SEQUENCE": Invalid, "TCP_INVALID_END_SEQUENCE": Invalid, "TCP_INVALID_ACK_SEQUENCE": Invalid,
	"IP_TUNNEL_ECN": Invalid,
}

// noise gives the reasons that are no loss of payload: where the kernel frees a packet although its data has arrived
// already, is not wanted any more, or arrives by another copy.
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

// KindOf returns the kind of a place by the name of a reason, without SKB_DROP_REASON_. It returns ""
// for a reason that is no loss of payload.
func KindOf(reason string) Kind {
	if kind, known := reasons[reason]; known {
		return kind
	}
	if _, is := noise[reason]; is {
		return ""
	}
	return Other
}
