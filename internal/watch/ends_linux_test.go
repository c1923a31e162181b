package watch

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
)

// TestHalfClosedAndCutOff: bytes on a half-closed connection and before a reset are counted
// exactly.
func TestHalfClosedAndCutOff(t *testing.T) {
	t.Parallel()
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
		t.Errorf("%d open", half.Standing)
	}
	server.Close()
	client.Close()
	until("both ended", func(v *View) bool { return v.Standing == 0 })

	// A reset in the middle: bytes that the server never received are not counted.
	client, server = loop(t, l)
	until("it is open", func(v *View) bool { return v.Standing == 2 })
	client.SetWriteDeadline(time.Now().Add(200 * time.Millisecond))
	if _, err := client.Write(make([]byte, 64<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the server reads nothing, and yet: %v", err)
	}
	var want int64
	until("all that was taken is seen", func(v *View) bool { // which may be more than when it gave up
		want = 1000 + answer + int64(info(t, client).Bytes_acked) - 1 // the SYN
		return v.Totals.Sent == want
	})
	client.SetLinger(0)
	client.Close()
	last := until("reset", func(v *View) bool { return v.Standing == 0 })
	// The client's socket was emptied when it was reset, and the server's is still open.
	if last.Totals.Sent != want || last.Totals.Closed != 2 || last.Totals.Unfinished != 2 || last.Lost != 0 {
		t.Errorf("%+v, %d lost; want %d sent", last.Totals, last.Lost, want)
	}
	received := last.Totals.Received
	server.Close() // its bytes are not counted twice
	for range 3 {
		last = until("closed", func(*View) bool { return true })
	}
	if last.Totals.Sent != want || last.Totals.Received != received || last.Totals.Opened != 4 {
		t.Errorf("after the server closed: %+v, before it had received %d", last.Totals, received)
	}
	stop()
	<-done
}

// TestEndsToTheByte: connections that no dump saw, and that ended in every order, are counted to
// the byte of what their programs wrote, without SYN and FIN. Of what was received it may be a
// byte more for each end whose peer closed first.
func TestEndsToTheByte(t *testing.T) {
	l := listen(t)
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	views, done := make(chan View), make(chan error, 1)
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
	<-views
	const each = 20
	var written, connections int64
	read := func(c *net.TCPConn, n int) {
		t.Helper()
		if _, err := io.ReadFull(c, make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	all := func(c *net.TCPConn) { io.Copy(io.Discard, c) }
	for how, end := range map[string]func(client, server *net.TCPConn, n int){
		"the client closes first": func(c, s *net.TCPConn, n int) { c.Close(); all(s); s.Close() },
		"the server closes first": func(c, s *net.TCPConn, n int) { read(s, n); s.Close(); all(c); c.Close() },
		"the client says that it has written all": func(c, s *net.TCPConn, n int) {
			c.CloseWrite()
			all(s)
			s.Close()
			all(c)
			c.Close()
		},
		"the server's program closes before it has read the end": func(c, s *net.TCPConn, n int) {
			read(s, n)
			c.Close()
			s.Close()
		},
		"the server replies": func(c, s *net.TCPConn, n int) {
			read(s, n)
			s.Write(make([]byte, 3*n))
			written += int64(3 * n)
			read(c, 3*n)
			c.Close()
			all(s)
			s.Close()
		},
	} {
		for i := range each {
			client, server := loop(t, l)
			n := 1 + 997*i
			if _, err := client.Write(make([]byte, n)); err != nil {
				t.Fatalf("%s: %v", how, err)
			}
			written += int64(n)
			connections++
			end(client, server, n)
		}
	}
	// A listener's end is no connection's. The end that resets a connection has no ports any more: where a dump
	// came before, it is opened and unfinished, else it is not seen.
	client, server := loop(t, l)
	client.SetLinger(0)
	client.Close()
	server.Close()
	ends := 2*connections + 1
	l.Close()
	var last View
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); {
		last = <-views
		if last.Standing == 0 && last.Totals.Closed >= ends {
			break
		}
	}
	stop()
	<-done
	got := last.Totals
	if got.Sent != written || got.Received < written || got.Received > written+connections ||
		got.Opened < ends || got.Opened > ends+1 || got.Unfinished != got.Opened-ends || got.Closed != ends ||
		last.Lost != 0 {
		t.Errorf("%+v, %d lost; %d connections wrote %d bytes", got, last.Lost, connections, written)
	}
	t.Logf("%d bytes too many are received by %d ends", got.Received-written, ends)
}

// TestLostEndsAreCounted: each report of an end that the kernel drops for lack of room is counted as
// lost, without bytes.
func TestLostEndsAreCounted(t *testing.T) {
	const n, bytes = 300, 1000
	l := listen(t)
	w := newWatcher(Config{Match: Match{Local: true, Ports: []uint16{uint16(l.Addr().(*net.TCPAddr).Port)}}}.complete())
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.sockets.Ends.Close()
	var err error
	w.sockets.Ends, err = sockdiag.OpenEnds(4 << 10)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	for range n {
		client, server := loop(t, l)
		client.Write(make([]byte, bytes))
		client.Close()
		io.Copy(io.Discard, server)
		server.Close()
	}
	var last View
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); { // a kernel worker sends them
		if err := w.period(func(v *View) error { last = *v; return nil }, false); err != nil {
			t.Fatal(err)
		}
		if last.Totals.Closed+int64(last.Lost) >= 2*n {
			break
		}
	}
	// Other programs' ends may be among the lost ones.
	if got := last.Totals; got.Closed+int64(last.Lost) < 2*n || last.Lost == 0 || got.Closed >= 2*n ||
		got.Sent > got.Closed*bytes || got.Sent%bytes != 0 {
		t.Errorf("%+v, %d lost, of %d", got, last.Lost, 2*n)
	}
}
