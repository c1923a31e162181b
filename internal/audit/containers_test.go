package audit

import (
	"strings"
	"testing"
)

// found is the finding on a parameter; its zero value where there is none.
func found(all []Finding, parameter string) Finding {
	for _, f := range all {
		if f.Parameter == parameter {
			return f
		}
	}
	return Finding{}
}

// TestInsideAContainer says which limits are not to be seen, on kernels that hide
// net.core's from a namespace and on those that let it be read.
func TestInsideAContainer(t *testing.T) {
	s := linux("6.1", nil)
	s.Namespace, s.Container = true, true
	delete(s.Values, "net.core.rmem_max")
	delete(s.Values, "net.ipv4.tcp_mem")
	s.Interfaces = []Interface{{Name: "eth0", Default: true, MTUBytes: 1450}}
	quic := Path{Program: "quic-go", ReceiveDatagrams: 7 << 20, SendDatagrams: 7 << 20}
	all := Judge(s, quic)
	namespace := found(all, "namespace").Text
	unseen, fixed, _ := strings.Cut(namespace, "; the host's, not to be changed")
	if !strings.Contains(unseen, "net.core.rmem_max") || !strings.Contains(unseen, "net.ipv4.tcp_mem") ||
		!strings.Contains(fixed, "net.core.wmem_max") {
		t.Error(namespace)
	}
	if f := found(all, "net.core.rmem_max"); f.Grade != Unknown || !strings.Contains(f.Fix, "7340032 on the host") {
		t.Errorf("%+v", f)
	}
	if f := found(all, "net.core.wmem_max"); f.Grade != "" {
		t.Errorf("64 MiB are not enough: %+v", f)
	}
	if f := found(all, "eth0"); !strings.Contains(f.Text, "vxlan") {
		t.Errorf("%+v", f)
	}
	if f := found(all, "memory.max"); f.Grade != Unknown {
		t.Errorf("%+v", f)
	}
}

// TestDatagrams holds UDP's buffers to what the kernel counted and a program asks for.
func TestDatagrams(t *testing.T) {
	s := linux("6.6", map[string]string{"net.core.rmem_max": "212992"})
	s.Counters = map[string]int64{"UdpRcvbufErrors": 4711, "UdpSndbufErrors": 3}
	all := Judge(s, Path{Program: "quic-go", ReceiveDatagrams: 7 << 20})
	if f := found(all, "UdpRcvbufErrors"); f.Grade != Risk || !strings.Contains(f.Text, "4711 datagrams dropped") {
		t.Errorf("%+v", f)
	}
	if f := found(all, "UdpSndbufErrors"); f.Grade != "" {
		t.Errorf("three are found: %+v", f)
	}
	if f := found(all, "net.core.rmem_max"); f.Grade != Risk || !strings.Contains(f.Text, "gets 212,992 bytes") {
		t.Errorf("%+v", f)
	}
}
