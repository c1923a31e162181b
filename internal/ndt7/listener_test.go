package ndt7

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// arrivals are connections to a listener as it takes them, each from an address of its own.
func arrivals(t *testing.T, most, mostOfOne int) (l *Listener, dial func(from string) net.Conn) {
	t.Helper()
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	l = NewListener(tcp, most, mostOfOne)
	t.Cleanup(func() { l.Close() })
	return l, func(from string) net.Conn {
		d := net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 0))}
		c, err := d.DialContext(t.Context(), "tcp", tcp.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
}

// ends says whether the far end of a connection is gone within a time.
func ends(c net.Conn, within time.Duration) bool {
	c.SetReadDeadline(time.Now().Add(within))
	_, err := c.Read(make([]byte, 1))
	timeout, is := err.(net.Error)
	return err != nil && !(is && timeout.Timeout())
}

func TestConnectionsOfOneAddress(t *testing.T) {
	t.Parallel()
	l, dial := arrivals(t, 10, 2)
	accepted := make(chan net.Conn, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- c
		}
	}()
	dial("127.0.0.2")
	first := <-accepted
	dial("127.0.0.2")
	second := <-accepted
	began := time.Now()
	third := dial("127.0.0.2")
	dial("127.0.0.3")
	other := <-accepted // the third is not among them
	if got, _, _ := net.SplitHostPort(other.RemoteAddr().String()); got != "127.0.0.3" {
		t.Fatalf("%s was let in", got)
	}
	if !ends(third, time.Minute) || time.Since(began) < refusal {
		t.Errorf("the third was refused after %v", time.Since(began))
	}
	first.Close()
	first.Close() // gives back one place
	dial("127.0.0.2")
	fourth := <-accepted
	fifth := dial("127.0.0.2")
	dial("127.0.0.3")
	another := <-accepted
	l.Close()
	if _, open := <-accepted; open || !ends(fifth, time.Minute) {
		t.Error("a listener that is closed lets in, or keeps who is refused")
	}
	for _, c := range []net.Conn{second, fourth, other, another} {
		c.Close()
	}
	if l.all != 0 {
		t.Errorf("%d places are taken", l.all)
	}
}

// TestAFewAddressesKeepNobodyOut fills a listener: who comes from elsewhere takes the oldest place
// without a test of the address that has most, until all have as many.
func TestAFewAddressesKeepNobodyOut(t *testing.T) {
	l, dial := arrivals(t, 4, 4)
	come := func(from string) (*Conn, bool) {
		dial(from)
		tcp, err := l.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(tcp)
		c.listener = l
		t.Cleanup(func() { c.Close() })
		admitted, out := l.enter(c, time.Now())
		if out != nil {
			out.Close()
		}
		return c, admitted
	}
	var crowd []*Conn
	for range 4 {
		c, _ := come("127.0.0.2")
		crowd = append(crowd, c)
	}
	if err := crowd[0].begin(socket.Options{}); err != nil { // a test
		t.Fatal(err)
	}
	defer crowd[0].end()
	if _, admitted := come("127.0.0.2"); admitted {
		t.Error("a fifth of the crowd")
	}
	gone := func(c *Conn) bool {
		select {
		case <-c.gone:
			return true
		default:
			return false
		}
	}
	for n := 1; n <= 2; n++ {
		if _, admitted := come("127.0.0.3"); !admitted || !gone(crowd[n]) || gone(crowd[0]) || gone(crowd[3]) {
			t.Errorf("newcomer %d: %v", n, admitted)
		}
	}
	if _, admitted := come("127.0.0.3"); admitted {
		t.Error("a newcomer who would have more than those there")
	}
	if l.all != 4 {
		t.Errorf("%d places are taken", l.all)
	}
}

// TestWhoConnectsFastIsServedLater: a burst at once, the next ones by and by, and other addresses
// as ever.
func TestWhoConnectsFastIsServedLater(t *testing.T) {
	l, dial := arrivals(t, 10, 10)
	now := time.Now()
	come := func(from string) time.Time {
		dial(from)
		tcp, err := l.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		c := newConn(tcp)
		c.listener = l
		l.enter(c, now)
		c.Close()
		return c.due
	}
	for range burst {
		if due := come("127.0.0.2"); !due.IsZero() {
			t.Fatalf("due in %v", due.Sub(now))
		}
	}
	for n := range 3 {
		if due := come("127.0.0.2"); due.Sub(now) != time.Duration(n+1)*pace {
			t.Errorf("the %d. after the burst: due in %v", n+1, due.Sub(now))
		}
	}
	if due := come("127.0.0.3"); !due.IsZero() {
		t.Errorf("another address: due in %v", due.Sub(now))
	}
	if now = now.Add((burst + 3) * pace); !come("127.0.0.2").IsZero() {
		t.Error("later")
	}
	if l.forget(now.Add(time.Hour)); len(l.guests) != 0 {
		t.Errorf("%d addresses are kept", len(l.guests))
	}
}
