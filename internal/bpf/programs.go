// Package bpf loads every eBPF program of fullpipe: a table of them, capabilities, maps, the
// offsets of the kernel's structures, a ring buffer that counts its losses. A program's
// instructions stay with the package that uses it.
//
// Nothing is pinned: the kernel removes programs, maps and links with the process, also when it is
// killed.
package bpf

// Program describes an eBPF program.
type Program struct {
	Name string // as bpftool prog shows it, at most 15 bytes
	Hook string // its section name in libbpf's convention
	// Reads lists what the program reads of a packet, a socket or a call.
	Reads string
	// CostNS is the time of one run in ns by the kernel's statistics (kernel.bpf_stats_enabled) on
	// Linux 6.18, two cores; 0: not measured.
	CostNS int
	// License is the licence that it declares to the kernel. Helpers for tracing are lent to
	// GPL-compatible programs only.
	License string
	Needs   string // capabilities and the first Linux version
}

// The licences of programs. LICENSE says which licence applies to which program.
const (
	Apache = "Apache-2.0"
	Dual   = "Dual MIT/GPL"
)

const (
	tracing = "CAP_BPF, CAP_PERFMON"
	cgroups = "CAP_BPF, CAP_NET_ADMIN"
)

// The programs of fullpipe.
var (
	SetSockOpt = Program{"fullpipe_setopt", "cgroup/setsockopt", "SO_SNDBUF and SO_RCVBUF of the steered program", 0,
		Apache, cgroups + "; Linux 5.8"}
	GetSockOpt = Program{"fullpipe_getopt", "cgroup/getsockopt", "SO_SNDBUF and SO_RCVBUF of the steered program", 0,
		Apache, cgroups + "; Linux 5.8"}
	SockOps = Program{"fullpipe_sockop", "sockops", "addresses, ports and options of the steered program's connections",
		0, Apache, cgroups + "; Linux 5.8"}
	IterTCP = Program{"fullpipe_tcp", "iter/tcp", "addresses, ports, state and sequence numbers of TCP sockets", 264,
		Dual, tracing + "; Linux 5.12"}
	IterFiles = Program{"fullpipe_files", "iter/task_file", "the PID and the inode of open TCP sockets", 0,
		Dual, tracing + "; Linux 5.11"}
	Retransmissions = Program{"fullpipe_resent", "tp_btf/tcp_retransmit_skb",
		"addresses, ports, network namespace, sequence range and result of retransmitted segments", 590,
		Dual, tracing + "; Linux 5.17"}
	Drops = Program{"fullpipe_drops", "tp_btf/kfree_skb",
		"80 bytes from the IP header on, the length, device, " +
			"network namespace and reason of dropped packets of TCP, or of UDP; " +
			"the port, output device and first unsent range of the socket that sends one", 690, Dual, tracing + "; Linux 5.17"}
	Switches = Program{"fullpipe_switch", "tp_btf/sched_switch",
		"the number, state, system call and its first argument of threads of followed programs", 364, Dual,
		tracing + "; Linux 5.18"}
	RequestsIssued = Program{"fullpipe_issue", "tp_btf/block_rq_issue", "the address of a request of a block device", 865,
		Dual, tracing + "; Linux 5.18"}
	RequestsCompleted = Program{"fullpipe_compl", "tp_btf/block_rq_complete",
		"device, operation, length and time of a request of a block device", 877, Dual, tracing + "; Linux 5.18"}
	Arrivals = Program{"fullpipe_arrive", "tp_btf/tcp_probe", "the TCP header, 20 bytes before it and the length of " +
		"segments that arrive; their socket's cookie, least round trip and full segment", 650, Dual, tracing + "; Linux 5.12"}
	Departures = Program{"fullpipe_depart", "tp_btf/net_dev_queue", "the TCP header, 20 bytes before it, the length, " +
		"the socket's cookie and its recovery state of segments that leave", 880, Dual, tracing + "; Linux 5.12"}
)

// Programs returns all programs.
func Programs() []Program {
	return []Program{SetSockOpt, GetSockOpt, SockOps, IterTCP, IterFiles, Retransmissions, Drops, Switches,
		RequestsIssued, RequestsCompleted, Arrivals, Departures}
}
