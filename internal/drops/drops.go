// Package drops follows the TCP packets that this host's kernel drops and retransmits, by eBPF programs at the
// tracepoints kfree_skb and tcp_retransmit_skb. Package lost matches them.
//
// One kernel reports the drops of all its network namespaces. Those of this process's own namespace and of the
// connection's socket count as this host's.
//
// It needs Linux 5.17 with BTF, and CAP_BPF and CAP_PERFMON or root.
package drops

import "github.com/fullpipe-net/fullpipe/internal/lost"

// Counts are the retransmissions of a flow, and the places of this host that dropped its packets.
type Counts struct {
	// Retransmits reports that the sending socket is on this host, so that Segments and Bytes are known.
	Retransmits     bool
	Segments, Bytes int64 // retransmitted
	Places          []Place
	// Missed is the number of records that did not fit into a buffer, of all flows.
	Missed int64
}

// Place is a place of this host that dropped packets of a flow.
type Place struct {
	Kind   lost.Kind
	Reason string // the kernel's, without SKB_DROP_REASON_
	Device string // empty: not known
	Qdisc  string // of the device, for Kind Queue; empty: not known
	// Forwarded reports that the packets were dropped in another network namespace than the socket's.
	Forwarded        bool
	Packets, Dropped int64 // packets and their bytes of sequence space
	// Segments and Bytes are retransmissions that these drops explain.
	Segments, Bytes int64
}
