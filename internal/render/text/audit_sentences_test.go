package text

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/audit"
)

// auditedHosts are snapshots that have every finding.
func auditedHosts() []*audit.Snapshot {
	windows := func(system, version string, values map[string]string) *audit.Snapshot {
		return &audit.Snapshot{System: system, Version: version, Values: values}
	}
	sysctls := map[string]string{"net.ipv4.tcp_rmem": "4096 2097152 4194304",
		"net.ipv4.tcp_wmem":            "1048576 1048576 4194304",
		"net.ipv4.tcp_moderate_rcvbuf": "0", "net.ipv4.tcp_window_scaling": "0", "net.ipv4.tcp_timestamps": "0",
		"net.core.rmem_max": "212992", "net.core.wmem_max": "212992", "net.core.default_qdisc": "pfifo_fast",
		"net.ipv4.tcp_congestion_control": "bbr", "net.ipv4.tcp_mem": "1 2 3", "net.ipv4.tcp_sack": "7",
		"net.ipv4.tcp_low_latency": "1"}
	counters := map[string]int64{}
	for _, name := range []string{"TCPMemoryPressures", "PruneCalled", "RcvPruned", "TCPBacklogDrop", "ListenOverflows",
		"SyncookiesSent", "softnet_dropped", "UdpRcvbufErrors", "UdpSndbufErrors"} {
		counters[name] = 4711
	}
	interfaces := []audit.Interface{
		{Name: "eth0", Default: true, SpeedBps: 1e8, Duplex: "half", Qdisc: "tbf", ShapeBps: 1e7, MTUBytes: 576,
			Offloads: map[string]bool{"tso": false, "gro": false}, Ring: &audit.Ring{RX: 256, RXMax: 4096},
			Counters: map[string]int64{"rx_packets": 100, "tx_packets": 100, "rx_errors": 1, "rx_missed_errors": 1,
				"rx_fifo_errors": 1, "tx_errors": 1, "tx_dropped": 1, "qdisc_dropped": 1, "collisions": 1}},
		{Name: "eth1", Qdisc: "htb", Counters: map[string]int64{"rx_missed_errors": 1}},
		{Name: "eth2", Qdisc: "pfifo", TxQueueLen: 10}}
	old := &audit.Snapshot{System: "linux", Version: "4.12.1", Values: sysctls, Counters: counters, MemoryBytes: 1 << 30,
		LimitBytes: 1 << 20, Interfaces: interfaces,
		Routes: []audit.Route{{Prefix: "default",
			Attributes: map[string]string{"window": "65536", "cwnd": "10", "mtu": "576"}}},
		Sockets: []audit.Socket{{Local: "a:1", Remote: "b:2", Program: "httpd", SendFixed: true, SendBytes: 4096, BusyS: 9,
			RwndS: 5, SndbufS: 5}, {Local: "a:3", RecvFixed: true, RecvBytes: 1 << 30}},
		Configured: []audit.Configured{{File: "x.conf", Name: "net.ipv4.tcp_tw_recycle", Value: "1"},
			{File: "x.conf", Name: "net.ipv4.tcp_turbo", Value: "1"}, {File: "x.conf", Name: "net.ipv4.tcp_sack", Value: "0"},
			{File: "x.conf", Name: "net.core.rmem_max", Value: "65536"},
			{File: "x.conf", Name: "net.ipv4.tcp_rmem", Value: "4096 131072 8G"}},
		Namespaces: []audit.Namespace{{PID: 7, Program: "nginx",
			Values: map[string]string{"net.ipv4.tcp_wmem": "4096 16384 2097152"}}},
		Unread: []string{"sockets: permission denied"}}
	pages := *old
	pages.Version = "6.18"
	pages.Values = maps.Clone(sysctls)
	pages.Values["net.ipv4.tcp_mem"] = "8388608 12582912 16777216"
	pages.Namespace = true
	pages.Interfaces = []audit.Interface{{Name: "eth0", Default: true, MTUBytes: 1450}}
	hidden := &audit.Snapshot{System: "linux", Version: "6.1", Namespace: true, Container: true,
		Interfaces: []audit.Interface{{Name: "eth0", Default: true, MTUBytes: 1500}}}
	return []*audit.Snapshot{old, &pages, hidden, {System: "plan9"},
		windows("windows", "10.0.17763", map[string]string{"AutoTuningLevelLocal": "Normal", "winsock autotuning": "off",
			"AutoTuningLevelGroupPolicy": "Restricted", "AutoTuningLevelEffective": "GroupPolicy",
			"InternetCustom/AutoTuningLevelLocal": "Restricted", "Interfaces/{7A}/TcpAckFrequency": "1",
			"Interfaces/{7A}/TcpWindowSize": "8760", "Interfaces/{7A}/MTU": "1352", "Interfaces/{7B}/MTU": "9000"}),
		windows("windows", "6.2.9200", map[string]string{"AutoTuningLevelLocal": "Disabled"}),
		windows("windows", "6.2.9200", map[string]string{"AutoTuningLevelLocal": "Normal", "filters": "0",
			"Custom/AutoTuningLevelLocal": "Restricted"}),
		windows("windows", "10.0.20348", map[string]string{"AutoTuningLevelLocal": "Normal", "filters": "1",
			"InternetCustom/AutoTuningLevelLocal": "Restricted", "filter/InternetCustom/10.9.0.0/16": "TCP"}),
		windows("windows-2000", "5.2.3790", nil),
		windows("windows-2000", "5.0.2195", map[string]string{"TcpWindowSize": "1001560",
			"Interfaces/{7A}/TcpWindowSize": "100000"}),
		windows("windows-2000", "5.1.2600", map[string]string{"TcpWindowSize": "1001560", "Tcp1323Opts": "0",
			"GlobalMaxTcpWindowSize": "32768", "Interfaces/{7A}/TcpWindowSize": "8760"}),
		windows("windows-2000", "4.0.1381", map[string]string{"TcpWindowSize": "262800"}),
		windows("windows-2000", "", nil),
		windows("windows", "10.0.17763", map[string]string{"AutoTuningLevelLocal": "sometimes"}),
		windows("windows", "10.0.20348", map[string]string{"AutoTuningLevelLocal": "Experimental"}),
		windows("windows-9x", "", map[string]string{"DefaultRcvWindow": "131400"}),
		windows("macos", "14.1", map[string]string{"net.inet.tcp.autosndbufmax": "65536", "net.inet.tcp.rfc1323": "0",
			"kern.ipc.maxsockbuf": "65536", "net.inet.tcp.doautorcvbuf": "0", "net.inet.tcp.recvspace": "32768",
			"net.inet.tcp.sendspace": "128K"})}
}

// TestAuditSentences checks that each code has a sentence that uses exactly the finding's values.
func TestAuditSentences(t *testing.T) {
	seen := map[audit.Code]bool{}
	datagrams := audit.Path{Program: "quic-go", ReceiveDatagrams: 7 << 20, SendDatagrams: 7 << 20}
	wan := datagrams
	wan.RateBps = 1e9
	wan.RTT = 100 * time.Millisecond
	for _, host := range auditedHosts() {
		for _, path := range []audit.Path{wan, datagrams} {
			for _, f := range AuditSentences(audit.Judge(host, path)) {
				seen[f.Code] = true
				for _, arg := range f.Args {
					if inner, ok := arg.(audit.Finding); ok {
						seen[inner.Code] = true
					}
				}
				if f.Text == "" || strings.Contains(f.Text+f.Fix, "%!") {
					t.Errorf("%s: %q, fix %q", f.Code, f.Text, f.Fix)
				}
				t.Logf("%s %s = %s\n    %s\n    try: %s", f.Grade, f.Parameter, f.Value, f.Text, f.Fix)
			}
		}
	}
	source, err := os.ReadFile("../../audit/codes.go")
	if err != nil {
		t.Fatal(err)
	}
	codes := regexp.MustCompile(`\bCode = "(.*)"`).FindAllSubmatch(source, -1)
	for _, m := range codes {
		if !seen[audit.Code(m[1])] {
			t.Errorf("no snapshot has the finding %s", m[1])
		}
	}
	if len(codes) != len(auditSentences) {
		t.Errorf("%d codes, %d sentences", len(codes), len(auditSentences))
	}
}
