package watch

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// loop is a connection within this host: its client's and its server's end.
func loop(t *testing.T, l net.Listener) (client, server *net.TCPConn) {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// info is what the kernel says of a connection.
func info(t *testing.T, c *net.TCPConn) (i *unix.TCPInfo) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) { i, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return i
}

// TestHalfClosedAndCutOff: what is sent on a connection whose other direction is closed, and
// what a reset cuts off, is counted to the byte.
func TestHalfClosedAndCutOff(t *testing.T) {
	l := listen(t)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	views := make(chan View)
	done := make(chan error, 1)
	go func() {
		done <- Run(ctx, Config{Match: Match{Ports: []uint16{port}, Local: true}, Every: 100 * time.Millisecond,
			Sample: 20 * time.Millisecond}, func(v *View) error {
			select {
			case views <- *v:
			case <-ctx.Done():
			}
			return nil
		})
	}()
	until := func(what string, is func(v *View) bool) (v View) {
		t.Helper()
		for {
			select {
			case v = <-views:
				if is(&v) {
					return v
				}
			case err := <-done:
				t.Fatalf("%s: the watch ended: %v", what, err)
			}
		}
	}
	until("the first", func(*View) bool { return true })

	// The client has said all and listens: it is in FIN-WAIT-2, its server in CLOSE-WAIT.
	client, server := loop(t, l)
	if _, err := client.Write(make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, server); n != 1000 || err != nil {
		t.Fatal(n, err)
	}
	until("half closed", func(v *View) bool { return v.Standing == 2 && v.Totals.Sent == 1000 })
	const answer = int64(300_000)
	go server.Write(make([]byte, answer))
	if _, err := io.ReadFull(client, make([]byte, answer)); err != nil {
		t.Fatal(err)
	}
	half := until("an answer", func(v *View) bool { return v.Totals.Sent == 1000+answer })
	if half.Standing != 2 {
		t.Errorf("%d stand", half.Standing)
	}
	server.Close()
	client.Close()
	until("both ended", func(v *View) bool { return v.Standing == 0 })

	// A reset in the middle: what the server never took is not counted.
	client, server = loop(t, l)
	until("it stands", func(v *View) bool { return v.Standing == 2 })
	client.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := client.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the server reads nothing, and yet: %v", err)
	}
	acked := int64(info(t, client).Bytes_acked) - 1 // the SYN
	want := 1000 + answer + acked
	until("all that was taken is seen", func(v *View) bool { return v.Totals.Sent == want })
	client.SetLinger(0)
	client.Close()
	last := until("reset", func(v *View) bool { return v.Standing == 0 })
	// The client's socket was emptied when it was reset, and the server's is still open.
	if last.Totals.Sent != want || last.Totals.Closed != 2 || last.Totals.Unfinished != 2 || last.Lost != 0 {
		t.Errorf("%+v, %d lost; want %d sent", last.Totals, last.Lost, want)
	}
	received := last.Totals.Received
	server.Close() // what it took is not counted again
	for range 3 {
		last = until("closed", func(*View) bool { return true })
	}
	if last.Totals.Sent != want || last.Totals.Received != received || last.Totals.Opened != 4 {
		t.Errorf("after the server closed: %+v, before it had received %d", last.Totals, received)
	}
	stop()
	<-done
}

// TestWhySeesWhatBeginsJustAfter: of a whole span, a connection that begins after the first
// dump is sampled from then on, and is its program's.
func TestWhySeesWhatBeginsJustAfter(t *testing.T) {
	l := listen(t)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	ctx, stop := context.WithTimeout(t.Context(), 2500*time.Millisecond)
	defer stop()
	first, first2 := loop(t, l) // has the walk of /proc made before the other is there
	go io.Copy(io.Discard, first2)
	first.Write(make([]byte, 100_000))
	go func() {
		for a := time.NewTimer(150 * time.Millisecond); ; {
			select {
			case <-a.C:
			case <-ctx.Done():
				return
			}
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return
			}
			s, err := l.Accept()
			if err != nil {
				return
			}
			go io.Copy(io.Discard, s)
			go func() {
				<-ctx.Done()
				c.Close()
				s.Close()
			}()
			for block := make([]byte, 64<<10); ; {
				if _, err := c.Write(block); err != nil {
					return
				}
			}
		}
	}()
	var view View
	err := Run(ctx, Config{Match: Match{PIDs: []int{os.Getpid()}, Ports: []uint16{port}, Local: true}, Every: time.Second,
		Cumulative: true, Window: 3 * time.Second}, func(v *View) error { view = *v; return nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	for i := range view.Seen {
		s := &view.Seen[i]
		if s.Flows[0].Bytes > 1<<20 && s.Flows[0].Sampled && s.Owner.PID == os.Getpid() {
			return
		}
	}
	t.Errorf("the one that pours is not sampled: %+v", view.Seen)
}
