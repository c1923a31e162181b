package sockdiag

import (
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestMoved: an idle socket is not reported. One that has sent, received, or has unread data is, under the ID that a
// dump has for it.
func TestMoved(t *testing.T) {
	testenv.Need(t, testenv.BPF)
	m := must.Get(OpenMoved(Connected | Of(FinWait2)))(t)
	defer m.Close()
	conn := asking(t)
	for name, ends := range map[string][2]string{"IPv4": {"127.0.0.1:0", "127.0.0.1"}, "IPv6": {"[::1]:0", "::1"},
		"IPv4 in IPv6": {"[::]:0", "127.0.0.1"}} {
		client, server := pair(t, ends[0], ends[1])
		port := uint16(server.LocalAddr().(*net.TCPAddr).Port)
		reported := func() (n int) {
			t.Helper()
			if err := m.Each(func(id ID) {
				local, remote := id.Ends()
				if local.Port() != port && remote.Port() != port {
					return
				}
				n++
				found := 0
				if gone, err := conn.Look([]ID{id}, AskInfo, func(s *Socket) {
					if found++; s.ID() != id || s.Local != local || s.Remote != remote {
						t.Errorf("%s: %v is reported as %v, %v to %v", name, id, s.ID(), s.Local, s.Remote)
					}
				}); err != nil || gone != 0 || found != 1 {
					t.Errorf("%s: %v is not found: %d gone, %d found, %v", name, id, gone, found, err)
				}
			}); err != nil {
				t.Fatal(err)
			}
			return n
		}
		if n := reported(); n != 2 {
			t.Errorf("%s: %d of 2 ends are reported when they are new", name, n)
		}
		still := func(when string, want int) {
			t.Helper()
			n := 0
			for end := time.Now().Add(5 * time.Second); time.Now().Before(end); { // until the clock's next ticks
				n = reported()
				if n == want {
					return
				}
			}
			t.Errorf("%s: %d are reported %s, want %d", name, n, when, want)
		}
		still("while nothing moves", 0)
		must.Get(client.Write(make([]byte, 1000)))(t)
		if n := reported(); n != 2 {
			t.Errorf("%s: %d of 2 ends are reported after a write", name, n)
		}
		still("while something is unread", 1)
		must.Get(server.Read(make([]byte, 2000)))(t)
		still("when it has been read", 0)
		server.CloseWrite()
		if n := reported(); n != 2 {
			t.Errorf("%s: %d of 2 ends are reported when one closes", name, n)
		}
	}
	for range 2 {
		if err := m.Close(); err != nil {
			t.Errorf("it cannot be closed twice: %v", err)
		}
	}
}

// TestMoved_UnacceptedSockets: somebody may, and the kernel keeps no time of that.
func TestMoved_UnacceptedSockets(t *testing.T) {
	testenv.Need(t, testenv.BPF)
	m := must.Get(OpenMoved(Connected))(t)
	defer m.Close()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	c := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer c.Close()
	port := uint16(l.Addr().(*net.TCPAddr).Port)
	until := func(want int) {
		t.Helper()
		n := 0
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			n = 0
			must.Do(t, m.Each(func(id ID) {
				if local, remote := id.Ends(); local.Port() == port || remote.Port() == port {
					n++
				}
			}))
			if n == want {
				return
			}
		}
		t.Errorf("%d are reported, want %d", n, want)
	}
	until(1)
	s := must.Get(l.Accept())(t)
	defer s.Close()
	until(0)
}

// BenchmarkMoved is what a look at 10,000 sockets costs that all lie still.
func BenchmarkMoved(b *testing.B) {
	testenv.Need(b, testenv.BPF)
	m := must.Get(OpenMoved(Connected))(b)
	defer m.Close()
	const n = 5000
	crowd(b, n)
	b.ReportAllocs()
	before := cpu()
	for b.Loop() {
		must.Do(b, m.Each(func(ID) {}))
	}
	b.ReportMetric(float64(cpu()-before)/float64(b.N*2*n), "cpu-ns/socket")
}

// TestMovedBegins: Begin discards earlier activity.
func TestMovedBegins(t *testing.T) {
	testenv.Need(t, testenv.BPF)
	m := must.Get(OpenMoved(Connected))(t)
	defer m.Close()
	client, _ := pair(t, "127.0.0.1:0", "127.0.0.1")
	port := uint16(client.LocalAddr().(*net.TCPAddr).Port)
	reported := func() (n int) {
		must.Do(t, m.Each(func(id ID) {
			if local, remote := id.Ends(); local.Port() == port || remote.Port() == port {
				n++
			}
		}))
		return n
	}
	still := -1
	for end := time.Now().Add(5 * time.Second); still != 0 && time.Now().Before(end); { // until the clock's next ticks
		must.Do(t, m.Begin())
		still = reported()
	}
	if still != 0 {
		t.Errorf("%d that are idle are reported", still)
	}
	must.Do(t, m.Begin())
	must.Get(client.Write(make([]byte, 1000)))(t)
	if n := reported(); n != 2 {
		t.Errorf("%d of 2 ends are reported after a write", n)
	}
}
