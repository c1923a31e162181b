package bulk

import (
	"strings"
	"testing"
	"time"
)

func TestPressure(t *testing.T) {
	netstat := func(times, ms string) string {
		return "TcpExt: SyncookiesSent TCPMemoryPressures TCPMemoryPressuresChrono TCPSACKDiscard\n" +
			"TcpExt: 7 " + times + " " + ms + " 3\nIpExt: InNoRoutes TCPMemoryPressures\nIpExt: 4 99\n"
	}
	before, after := parsePressure(netstat("2", "150")), parsePressure(netstat("5", "1350"))
	m := after.since(before, 10*time.Second)
	if m == nil || m.Times != 3 || m.Time != 1200*time.Millisecond {
		t.Errorf("%+v", m)
	}
	if m := after.since(before, time.Second); m == nil || m.Time != time.Second {
		t.Errorf("longer than the transfer: %+v", m)
	}
	if m := before.since(before, time.Second); m != nil {
		t.Errorf("none, and yet %+v", m)
	}
	if m := before.since(after, time.Second); m != nil {
		t.Errorf("counters that went back: %+v", m)
	}
	for _, text := range []string{"", "TcpExt:", "TcpExt: TCPMemoryPressures\nTcpExt:", netstat("-1", "x"),
		strings.Repeat("TcpExt: ", 9), "TcpExt: A\nTcpExt: 1 2 3\n"} {
		if p := parsePressure(text); p.known || after.since(p, time.Second) != nil {
			t.Errorf("%q: %+v", text, p)
		}
	}
}

func FuzzPressure(f *testing.F) {
	f.Add("TcpExt: TCPMemoryPressures TCPMemoryPressuresChrono\nTcpExt: 9223372036854775807 9223372036854775807\n")
	f.Fuzz(func(t *testing.T, text string) {
		if p := parsePressure(text); p.times < 0 || p.took < 0 {
			t.Errorf("%+v", p)
		}
	})
}
