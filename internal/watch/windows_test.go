package watch

import (
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// connection is one to a far end, born at a time, with a least round trip.
func connection(remote string, born, rtt time.Duration, ecn bool) *Connection {
	c := &Connection{FirstSeen: born, Born: true, Handshake: &transfer.Handshake{MSS: 1448, Timestamps: true,
		PathMTU: 1500,
		ECN:     ecn}}
	c.Remote = netip.MustParseAddrPort(remote)
	c.Sample.MinRTT = rtt
	return c
}

// A window has the least round trip of connections that began in it, not of older ones, and
// sums over its periods.
func TestWindowsOfPaths(t *testing.T) {
	var w Windows
	network := netip.MustParsePrefix("192.0.2.0/24")
	old := connection("192.0.2.1:443", 0, time.Millisecond, true)
	a := connection("192.0.2.2:443", 151*time.Second, 30*time.Millisecond, true)
	b := connection("192.0.2.3:443", 152*time.Second, 20*time.Millisecond, false)
	b.Handshake.MSS = 1348
	lone := connection("198.51.100.1:443", 151*time.Second, 9*time.Millisecond, true)
	signs := Symptoms{Segments: 100, Retransmitted: 2, Reordered: 1, Rate: 1e6}
	if got := w.Add(&View{At: 150 * time.Second, Length: 150 * time.Second,
		Connections: []Observed{{Connection: old, Symptoms: signs}}}); got != nil {
		t.Fatalf("%+v", got)
	}
	v := &View{At: 300 * time.Second, Length: 150 * time.Second, Connections: []Observed{{Connection: old,
		Symptoms: signs},
		{Connection: a, Symptoms: signs}, {Connection: b}, {Connection: lone}}}
	for i := range 9 {
		v.Connections = append(v.Connections, Observed{Connection: old, Symptoms: Symptoms{Rate: float64(i) * 1e5}})
	}
	got := w.Add(v)
	// The old connection began when the first window did: it is of that as well.
	one := got[network]
	if one.RTT != 0.001 || one.Segments != 300 || one.Retransmitted != 6 || one.Reordered != 3 || one.MTU != 1400 ||
		one.ECN != "some" || one.Rate != 1e6 {
		t.Errorf("%+v", one)
	}
	one = got[netip.MustParsePrefix("198.51.100.0/24")]
	if one.RTT != 0 || one.MTU != 0 || one.ECN != "" || one.Rate != 0 {
		t.Errorf("of one connection: %+v", one)
	}
	later := w.Add(&View{At: 600 * time.Second, Length: 300 * time.Second, Connections: []Observed{{Connection: a},
		{Connection: b}}})
	if one := later[network]; one.RTT != 0 || one.MTU != 0 {
		t.Errorf("of connections that began before: %+v", one)
	}
}

// TestWindows_NetworksOfOurOwn: a network that this host began a connection to is marked, and finds room among
// networks that came to this host.
func TestWindows_NetworksOfOurOwn(t *testing.T) {
	var w Windows
	var seen []Observed
	for i := range maxWindows + 1 {
		address := netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, byte(i >> 8), byte(i)})
		seen = append(seen, Observed{Connection: connection("["+address.String()+"]:443", 0, time.Millisecond, false)})
	}
	own := connection("192.0.2.1:443", 0, time.Millisecond, false)
	own.syn = 1
	got := w.Add(&View{At: 300 * time.Second, Length: 300 * time.Second, Connections: append(seen,
		Observed{Connection: own})})
	ours := 0
	for network, one := range got {
		if one.Own {
			ours++
		}
		if one.Own != network.Contains(own.Remote.Addr()) {
			t.Errorf("%v: %+v", network, one)
		}
	}
	if len(got) != maxWindows || ours != 1 {
		t.Errorf("%d networks, %d of our own", len(got), ours)
	}
}

// TestSymptoms computes a period's symptoms from the growth of the counters.
func TestSigns(t *testing.T) {
	c := connection("192.0.2.1:443", 0, time.Millisecond, true)
	c.Reordered = 2
	c.moves = &moves{mark: counters{Sent: 1000, Retransmitted: 5, Reordered: 1<<32 - 1}}
	c.Sample = transfer.Sample{Sent: 1000 + 100*1448, Retransmitted: 8, Have: transfer.HaveRate, DeliveryBps: 5e6,
		Busy: time.Second}
	if s := c.symptoms(); s != (Symptoms{100, 3, 3, 5e6}) {
		t.Errorf("%+v", s)
	}
	c.Sample.RwndLimited = 300 * time.Millisecond
	if s := c.symptoms(); s.Rate != 0 {
		t.Errorf("limited by the receiver: %+v", s)
	}
	c.Sample.RwndLimited, c.Sample.AppLimited = 0, true
	if s := c.symptoms(); s.Rate != 0 {
		t.Errorf("limited by its program: %+v", s)
	}
	c.Sample.Sent = 1000
	if s := c.symptoms(); s != (Symptoms{}) {
		t.Errorf("nothing sent: %+v", s)
	}
}
