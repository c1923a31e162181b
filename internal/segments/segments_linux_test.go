package segments

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// exchange sends requests to a server that responds to each, and returns the connection's two ends.
func exchange(t testing.TB, l net.Listener, requests int, size, response int64) {
	t.Helper()
	served := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			defer c.Close()
			for err == nil {
				_, err = io.CopyN(io.Discard, c, size)
				if err == nil {
					_, err = c.Write(make([]byte, response))
				}
			}
		}
		served <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for range requests {
		if _, err := c.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.CopyN(io.Discard, c, response); err != nil {
			t.Fatal(err)
		}
	}
	_ = c.Close()
	<-served
}

// TestWatch_SeparatesTurns follows both ends of a connection over loopback, over IPv4 and IPv6.
func TestWatch_SeparatesTurns(t *testing.T) {
	testenv.Need(t, testenv.BPF, testenv.NetworkNamespace)
	if !testenv.Inside(t, unix.CLONE_NEWNET) {
		return
	}
	for _, address := range []string{"127.0.0.1:0", "[::1]:0"} {
		w, err := Open()
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		const requests = 150
		exchange(t, l, requests, 200, 30_000)
		found, err := w.Take()
		if err != nil || found.Missed > 0 || found.OneOf != 1 {
			t.Fatal(found, err)
		}
		clients, servers := 0, 0
		for _, r := range found.Of {
			if r.Count < requests-1 { // of others
				continue
			}
			if r.Client {
				clients++
			} else {
				servers++
			}
			p := turns.ProfileOf(&r.Summary)
			t.Logf("%s client %v: %d turns, p50 %d µs, p99 %d µs, longest %d µs", address, r.Client, p.Count, p.P50/1000,
				p.P99/1000, p.Max/1000)
			if p.P50 <= 0 || p.P50 > 1e9 || r.Count > requests {
				t.Errorf("%+v", p)
			}
		}
		if clients != 1 || servers != 1 {
			t.Errorf("%s: %d clients and %d servers of %d connections", address, clients, servers, len(found.Of))
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		_ = l.Close()
	}
}

// BenchmarkWatch_Turn exchanges small requests over loopback, where both ends are on this host. It reports the time of
// both programs for one end, by the kernel's statistics.
func BenchmarkWatch_Turn(b *testing.B) {
	testenv.Need(b, testenv.BPF)
	const runTime = 0 // BPF_STATS_RUN_TIME
	stats, err := ebpf.EnableStats(runTime)
	if err != nil {
		b.Fatal(err)
	}
	defer stats.Close()
	w, err := Open()
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	b.ResetTimer()
	exchange(b, l, b.N, 200, 400)
	b.StopTimer()
	var spent time.Duration
	var runs uint64
	for _, name := range []string{bpf.Arrivals.Name, bpf.Departures.Name} {
		s := statsOf(b, name)
		b.ReportMetric(float64(s.Runtime)/float64(max(s.RunCount, 1)), "ns/"+name)
		spent += s.Runtime
		runs += s.RunCount
	}
	b.ReportMetric(float64(spent)/float64(2*b.N), "bpf-ns/turn")
	b.ReportMetric(float64(runs)/float64(2*b.N), "runs/turn")
}

// statsOf returns the kernel's statistics of the newest program with a name.
func statsOf(b *testing.B, name string) *ebpf.ProgramStats {
	var found *ebpf.ProgramStats
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if err != nil {
			break
		}
		id = next
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue
		}
		if info, err := p.Info(); err == nil && info.Name == name {
			found, err = p.Stats()
			if err != nil {
				b.Fatal(err)
			}
		}
		p.Close()
	}
	if found == nil {
		b.Fatal(name + " is not loaded")
	}
	return found
}
