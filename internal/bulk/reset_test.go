package bulk

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// TestDrain_ReportsReset checks that a reset that arrives before the last byte is
// acknowledged counts as closed by the far end, whichever system call meets it.
func TestDrain_ReportsReset(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	near, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s, err := socket.NewStream(near.(*net.TCPConn), socket.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Write(1000); err != nil {
		t.Fatal(err)
	}
	far.(*net.TCPConn).SetLinger(0)
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
