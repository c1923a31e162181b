// Package drops follows the TCP packets that this host's kernel drops and retransmits, by eBPF
// programs at the tracepoints kfree_skb and tcp_retransmit_skb. Package lost matches them.
//
// One kernel reports the drops of all its network namespaces. Those of this process's own namespace
// and of the connection's socket count as this host's.
//
// It needs Linux 5.17 with BTF, and CAP_BPF and CAP_PERFMON or root.
package drops

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/lost"
)

// Counts are the retransmissions of a flow, and the places of this host that dropped its packets.
type Counts struct {
	// Retransmits reports that the sending socket is on this host, so that Segments and Bytes are
	// known.
	Retransmits     bool
	Segments, Bytes int64 // retransmitted
	Places          []Place
	// NamespaceOnly reports that packets of the flow may pass network namespaces of this host that
	// do not count: those between a container and the host's devices.
	NamespaceOnly bool
	// Missed is the number of records that did not fit into a buffer, of all flows.
	Missed int64
}

// AnyNamespace is the home of a connection that is known to have a socket on this host.
const AnyNamespace = ^uint32(0)

// Sum returns the counts of several flows together, such as the streams of a transfer.
func Sum(flows []Counts) (sum Counts) {
	for _, c := range flows {
		sum.Retransmits = sum.Retransmits || c.Retransmits
		sum.Segments += c.Segments
		sum.Bytes += c.Bytes
		sum.Missed = max(sum.Missed, c.Missed)
		sum.NamespaceOnly = sum.NamespaceOnly || c.NamespaceOnly
		for _, p := range c.Places {
			i := slices.IndexFunc(sum.Places, func(q Place) bool {
				return q.Reason == p.Reason && q.Device == p.Device && q.Forwarded == p.Forwarded
			})
			if i < 0 {
				sum.Places = append(sum.Places, p)
				continue
			}
			q := &sum.Places[i]
			q.Packets += p.Packets
			q.Dropped += p.Dropped
			q.Segments += p.Segments
			q.Bytes += p.Bytes
		}
	}
	return sum
}

// Place is a place of this host that dropped packets of a flow.
type Place struct {
	Kind   lost.Kind
	Reason string // the kernel's, without SKB_DROP_REASON_
	Device string // empty: not known
	Qdisc  string // of the device, for Kind Queue; empty: not known
	// Forwarded reports that the packets were dropped in another network namespace than the
	// socket's.
	Forwarded        bool
	Packets, Dropped int64 // packets and their bytes of sequence space
	// Segments and Bytes are retransmissions that these drops explain.
	Segments, Bytes int64
}
