package audit

import (
	"slices"
	"strings"
	"testing"
)

// found returns the finding on a parameter, or the zero Finding.
func found(all []Finding, parameter string) Finding {
	for _, f := range all {
		if f.Parameter == parameter {
			return f
		}
	}
	return Finding{}
}

// TestJudge_Container checks the limits that are hidden in a container, on kernels that hide net.core from a namespace
// and on those that let it be read.
func TestJudge_Container(t *testing.T) {
	s := linux("6.1", nil)
	s.Namespace, s.Container = true, true
	delete(s.Values, "net.core.rmem_max")
	delete(s.Values, "net.ipv4.tcp_mem")
	s.Interfaces = []Interface{{Name: "eth0", Default: true, MTUBytes: 1450}}
	quic := Path{Program: "quic-go", ReceiveDatagrams: 7 << 20, SendDatagrams: 7 << 20}
	all := Judge(s, quic)
	namespace := found(all, "namespace").Args
	hidden := namespace[0].([]string)
	fixed := namespace[1].([]string)
	if !slices.Contains(hidden, "net.core.rmem_max") || !slices.Contains(hidden, "net.ipv4.tcp_mem") ||
		!slices.Contains(fixed, "net.core.wmem_max") {
		t.Error(namespace...)
	}
	if f := found(all, "net.core.rmem_max"); f.Code != DatagramBufferHidden || !strings.Contains(f.Command, "7340032") {
		t.Errorf("%+v", f)
	}
	if f := found(all, "net.core.wmem_max"); f.Grade != "" {
		t.Errorf("64 MiB are not enough: %+v", f)
	}
	if f := found(all, "eth0"); f.Code != OverlayMTU {
		t.Errorf("%+v", f)
	}
	if f := found(all, "memory.max"); f.Grade != Unknown {
		t.Errorf("%+v", f)
	}
}

// TestJudge_Datagrams checks UDP's buffers: the kernel's counters and a program's request.
func TestJudge_Datagrams(t *testing.T) {
	s := linux("6.6", map[string]string{"net.core.rmem_max": "212992"})
	s.Counters = map[string]int64{"UdpRcvbufErrors": 4711, "UdpSndbufErrors": 3}
	all := Judge(s, Path{Program: "quic-go", ReceiveDatagrams: 7 << 20})
	if f := found(all, "UdpRcvbufErrors"); f.Code != DatagramsDropped || f.Args[0] != int64(4711) {
		t.Errorf("%+v", f)
	}
	if f := found(all, "UdpSndbufErrors"); f.Grade != "" {
		t.Errorf("three are found: %+v", f)
	}
	if f := found(all, "net.core.rmem_max"); f.Code != DatagramBufferSmall || f.Args[3] != Bytes(212992) {
		t.Errorf("%+v", f)
	}
}
