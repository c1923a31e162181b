package watch

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// crowd opens n connections within this host until the test ends. It returns a watcher that has read them, and their
// ends: a client's, its server's, the next client's.
func crowd(t testing.TB, n int) (w *watcher, all []net.Conn) {
	t.Helper()
	testenv.Need(t, testenv.ManyFiles)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for range n {
		for _, open := range []func() (net.Conn, error){
			func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }, l.Accept} {
			c, err := open()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
			t.Cleanup(func() {
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
			})
		}
	}
	w = newWatcher(Config{Match: Match{Local: true, Ports: []uint16{uint16(l.Addr().(*net.TCPAddr).Port)}}}.complete())
	if err := w.open(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	if err := w.begin(); err != nil {
		t.Fatal(err)
	}
	if w.account.Len() != 2*n {
		t.Fatalf("%d of %d sockets open", w.account.Len(), 2*n)
	}
	return w, all
}

// TestStillSocketsTakeNoMemory: a period in which nothing moved leaves no garbage for each socket.
func TestStillSocketsTakeNoMemory(t *testing.T) {
	const n = 200
	w, _ := crowd(t, n)
	each := func(v *View) error {
		if v.Standing != 2*n || v.Matched != 2*n || len(v.Connections) != 0 {
			t.Errorf("%d open, %d match, %d moved", v.Standing, v.Matched, len(v.Connections))
		}
		return nil
	}
	if garbage := testing.AllocsPerRun(5, func() {
		if err := w.period(each, false); err != nil {
			t.Error(err)
		}
	}); garbage > n/2 {
		t.Errorf("%v pieces of garbage for %d sockets", garbage, 2*n)
	}
}

// BenchmarkPeriod measures a period of idle sockets without the fast tier.
func BenchmarkPeriod(b *testing.B) {
	for name, dumps := range map[string]bool{"of those that moved": false, "by dumps": true} {
		b.Run(name, func(b *testing.B) { period(b, dumps) })
	}
}

func period(b *testing.B, dumps bool) {
	const n = 5000
	w, _ := crowd(b, n)
	if dumps {
		w.activeSockets.close()
	}
	b.ReportAllocs()
	used := func() int64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	before := used()
	for b.Loop() {
		if err := w.period(func(*View) error { return nil }, false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(used()-before)/float64(b.N*2*n), "cpu-ns/socket")
}
