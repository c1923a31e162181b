package socket

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"
)

// Connections go to the listener that was chosen for their address, and to the first
// one where none was.
func TestChooseListener(t *testing.T) {
	for _, c := range []struct{ listen, chosen, other string }{
		{"127.0.0.1:0", "127.0.0.2", "127.0.0.3"},
		{"[::]:0", "127.0.0.2", "127.0.0.3"},
		{"[::]:0", "::1", "127.0.0.3"},
	} {
		first, err := Listen(t.Context(), c.listen, Options{SharePort: true})
		if err != nil {
			t.Fatal(err)
		}
		defer first.Close()
		group := []*net.TCPListener{first}
		for range 2 {
			l, err := Listen(t.Context(), first.Addr().String(), Options{SharePort: true})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			group = append(group, l)
		}
		if err := ChooseListener(first, []Choice{{netip.MustParseAddr("192.0.2.1"), 1}, {netip.MustParseAddr("2001:db8::1"), 1},
			{netip.MustParseAddr(c.chosen), 2}}); err != nil {
			t.Fatal(err)
		}
		_, port, _ := net.SplitHostPort(first.Addr().String())
		for from, index := range map[string]int{c.chosen: 2, c.other: 0} {
			host := "127.0.0.1"
			if from == "::1" {
				host = "::1"
			}
			for range 8 {
				d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
				conn, err := d.DialContext(context.Background(), "tcp", net.JoinHostPort(host, port))
				if err != nil {
					t.Fatal(err)
				}
				group[index].SetDeadline(time.Now().Add(2 * time.Second))
				came, err := group[index].Accept()
				if err != nil {
					t.Fatalf("from %s on %s: listener %d: %v", from, c.listen, index, err)
				}
				came.Close()
				conn.Close()
			}
		}
	}
}
