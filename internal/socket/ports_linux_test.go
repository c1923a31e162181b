//go:build !portable

package socket

import (
	"net"
	"net/netip"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestReservePorts checks that no other program connects from a reserved port, and that it is free after its release.
func TestReservePorts(t *testing.T) {
	for _, host := range []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")} {
		l := must.Get(Listen(t.Context(), netip.AddrPortFrom(host, 0).String(), Options{}))(t)
		defer l.Close()
		ports, release, err := ReservePorts(host, 3)
		if err != nil {
			t.Fatal(err)
		}
		from := func(port uint16) error {
			d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(host, port))}
			conn, err := d.Dial("tcp", l.Addr().String())
			if err == nil {
				conn.Close()
			}
			return err
		}
		if err := from(ports[0]); err == nil {
			t.Errorf("%s: another program connects from port %d", host, ports[0])
		}
		for _, port := range ports {
			conn := must.Get(Dial(t.Context(), l.Addr().String(), Options{LocalPort: port}))(t)
			if got := conn.LocalAddr().(*net.TCPAddr).Port; got != int(port) {
				t.Errorf("a connection from %d instead of %d", got, port)
			}
			conn.SetLinger(0) // no TIME_WAIT
			conn.Close()
		}
		release()
		if err := from(ports[0]); err != nil {
			t.Errorf("after its release: %v", err)
		}
	}
}
