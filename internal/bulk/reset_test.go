package bulk

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// dialed returns a stream with the connection at its far end.
func dialed(t *testing.T) (*socket.Stream, *net.TCPConn) {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	near := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	far := must.Get(l.Accept())(t)
	t.Cleanup(func() { far.Close() })
	s := must.Get(socket.NewStream(near.(*net.TCPConn), socket.Options{}))(t)
	t.Cleanup(func() { s.Close() })
	return s, far.(*net.TCPConn)
}

// TestDrain_EndsByMessage checks that a sender whose protocol ends a timed transfer by a message does not wait for the
// acknowledgements of its buffered data: the receiver would count that time.
func TestDrain_EndsByMessage(t *testing.T) {
	s, _ := dialed(t)
	for {
		n := must.Get(s.Write(socket.BestWrite))(t)
		if n == 0 { // both buffers are full: nobody reads
			break
		}
	}
	l := loop{account: account{clock: clock{time.Now()}}, stream: s, keepOpen: true, end: time.Minute}
	err := l.drain(time.Minute)
	if outstanding, _ := s.Outstanding(); err != nil || outstanding == 0 || l.clock.now() >= time.Minute {
		t.Errorf("%v, %d bytes outstanding after %s", err, outstanding, l.clock.now())
	}
}

// TestDrain_ReportsReset checks that a reset that arrives before the last byte is
// acknowledged counts as closed by the far end, whichever system call meets it.
func TestDrain_ReportsReset(t *testing.T) {
	s, far := dialed(t)
	must.Get(s.Write(1000))(t)
	far.SetLinger(0)
	far.Close()
	if reset, err := s.WaitClosed(time.Minute); !reset {
		t.Fatalf("no reset: %v", err)
	}
	drain := loop{account: account{clock: clock{time.Now()}}, stream: s}
	var gone *ClosedError
	if err := closed(drain.drain(0)); !errors.As(err, &gone) {
		t.Errorf("%v, want %v", err, &ClosedError{})
	}
}
