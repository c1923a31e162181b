package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Connections go to the listener that was chosen for their address, and to the first
// one where none was.
func TestChooseListener(t *testing.T) {
	for _, c := range []struct{ listen, chosen, other string }{
		{"127.0.0.1:0", "127.0.0.2", "127.0.0.3"},
		{"[::]:0", "127.0.0.2", "127.0.0.3"},
		{"[::]:0", "::1", "127.0.0.3"},
	} {
		first := must.Get(Listen(t.Context(), c.listen, Options{SharePort: true}))(t)
		defer first.Close()
		group := []*net.TCPListener{first}
		for range 2 {
			l := must.Get(Listen(t.Context(), first.Addr().String(), Options{SharePort: true}))(t)
			defer l.Close()
			group = append(group, l)
		}
		must.Do(t, ChooseListener(first, []Choice{{netip.MustParseAddr("192.0.2.1"), nil, 1},
			{netip.MustParseAddr("2001:db8::1"), nil, 1},
			{netip.MustParseAddr(c.chosen), nil, 2}}))
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

// A choice may be for some of a host's ports only.
func TestChooseListenerByPort(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		first := must.Get(Listen(t.Context(), net.JoinHostPort(host, "0"), Options{SharePort: true}))(t)
		defer first.Close()
		second, err := Listen(t.Context(), first.Addr().String(), Options{SharePort: true})
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		// A port that was free may be somebody else's by the time it is used.
		for err = syscall.EADDRINUSE; errors.Is(err, syscall.EADDRINUSE); {
			err = chosenByPort(t, netip.MustParseAddr(host), first, second)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func chosenByPort(t *testing.T, host netip.Addr, first, second *net.TCPListener) error {
	ports, release, err := ReservePorts(host, MostPorts)
	if err != nil {
		return err
	}
	defer release()
	chosen, other := ports[:MostPorts-1], ports[MostPorts-1]
	if err := ChooseListener(first, []Choice{{host, chosen, 1}}); err != nil {
		return err
	}
	for port, l := range map[uint16]*net.TCPListener{chosen[0]: second, chosen[60]: second, chosen[MostPorts-2]: second,
		other: first} {
		conn, err := Dial(t.Context(), first.Addr().String(), Options{LocalPort: port})
		if err != nil {
			return err
		}
		defer conn.Close()
		l.SetDeadline(time.Now().Add(2 * time.Second))
		came, err := l.Accept()
		if err != nil {
			return fmt.Errorf("%s from port %d: %w", host, port, err)
		}
		came.Close()
	}
	return nil
}

// TestSetListener checks that connections begin with what a listener was given after listen().
func TestSetListener(t *testing.T) {
	l := must.Get(Listen(t.Context(), "127.0.0.1:0", Options{}))(t)
	defer l.Close()
	given := Options{Socket: transfer.Socket{ReceiveBuffer: 30_000, Clamp: 20_000, MSS: 600}}
	must.Do(t, SetListener(l, given))
	conn := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer conn.Close()
	accepted := must.Get(l.AcceptTCP())(t)
	defer accepted.Close()
	raw, err := accepted.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var buffer, clamp, mss int
	var errs [3]error
	raw.Control(func(fd uintptr) {
		buffer, errs[0] = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
		clamp, errs[1] = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP)
		mss, errs[2] = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
	})
	err = errors.Join(errs[:]...)
	if err != nil || buffer != 2*given.ReceiveBuffer || clamp > given.Clamp || mss > given.MSS {
		t.Errorf("buffer %d, clamp %d, MSS %d: %v", buffer, clamp, mss, err)
	}
}
