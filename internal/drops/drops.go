// Package drops follows the TCP packets that this host's kernel drops and retransmits, by eBPF
// programs at the tracepoints kfree_skb and tcp_retransmit_skb. Package lost matches them.
//
// One kernel reports the drops of all its network namespaces. Those of this process's own namespace
// and of the connection's socket count as this host's.
//
// It needs Linux 5.17 with BTF, and CAP_BPF and CAP_PERFMON or root.
package drops

// AnyNamespace is the home of a connection that is known to have a socket on this host.
const AnyNamespace = ^uint32(0)
