package sockdiag

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func short(t testing.TB, l net.Listener, n, bytes int) {
	t.Helper()
	for range n {
		c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Write(make([]byte, bytes))
		c.Close()
		for b := make([]byte, 4096); err == nil; {
			_, err = s.Read(b)
		}
		s.Close()
	}
}

func TestEnds_ReportedOrCounted(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	for _, c := range []struct{ room, n int }{{8 << 20, 300}, {4 << 10, 300}} {
		ends, err := OpenEnds(c.room)
		if err != nil {
			t.Fatal(err)
		}
		defer ends.Close()
		short(t, l, c.n, 1000)
		reported, counted := 0, int64(0)
		count := func(s *Socket) {
			if s.State == Closed && (s.Local.Port() == port || s.Remote.Port() == port) {
				reported++
				var sample transfer.Sample
				socket.DecodeLinux(s.Info, &sample)
				counted += sample.Received
			}
		}
		// The kernel's worker sends the last ones a moment later.
		dropped := uint64(0)
		for deadline := time.Now().Add(10 * time.Second); reported+int(dropped) < 2*c.n && time.Now().Before(deadline); {
			poll := []unix.PollFd{{Fd: int32(ends.FD()), Events: unix.POLLIN}}
			unix.Poll(poll, 50)
			must.Do(t, ends.Take(count))
			dropped, err = ends.Dropped()
			if err != nil {
				t.Fatal(err)
			}
		}
		if reported+int(dropped) != 2*c.n {
			t.Errorf("room %d: %d reported and %d dropped of %d", c.room, reported, dropped, 2*c.n)
		}
		if c.room > 1<<20 && (dropped != 0 || counted != int64(c.n)*1001) { // with the FIN
			t.Errorf("room %d: %d dropped, %d bytes of %d", c.room, dropped, counted, c.n*1001)
		}
		if c.room < 1<<20 && dropped == 0 {
			t.Errorf("room %d: nothing was dropped", c.room)
		}
	}
}
