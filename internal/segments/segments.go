// Package segments follows the TCP segments of this host's connections by eBPF programs at the tracepoints tcp_probe
// and net_dev_queue, and separates their turns as package turns does for captures. The programs leave bulk transfers
// out. They copy headers, no payload.
//
// It needs Linux 5.12 with BTF, and CAP_BPF and CAP_PERFMON or root.
package segments
