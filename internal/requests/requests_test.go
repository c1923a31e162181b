package requests

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestMain(m *testing.M) { testenv.RunWithoutLeaks(m) }

// connected returns a worker whose server responds to each request.
func connected(t testing.TB, r transfer.Requests) *worker {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	arriving := make(chan *net.TCPConn)
	served := make(chan struct{})
	spec := transfer.Spec{Streams: 1, Time: time.Hour, Requests: r}
	go func() {
		defer close(served)
		Server{Spec: spec, Arriving: arriving}.Run(ctx)
	}()
	w := &worker{recorder: newRecorder(0, 1), shared: &shared{start: time.Now(), spec: r, end: time.Hour,
		dial: Native(l.Addr().String(), socket.Options{}, r, []string{""})}}
	if err := w.open(ctx); err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	w.conn.(*native).preface = "" // Native has sent its numbers
	var numbers [numberSize]byte
	if _, err := w.conn.TCP().Write(numbers[:]); err != nil {
		t.Fatal(err)
	}
	arriving <- far.(*net.TCPConn)
	t.Cleanup(func() {
		w.close()
		l.Close()
		cancel()
		<-served
	})
	return w
}

// TestWorker_AllocatesNothing checks the turn of a client, with its record.
func TestWorker_AllocatesNothing(t *testing.T) {
	w := connected(t, transfer.Requests{RequestBytes: 200, ResponseBytes: 1000})
	if n := testing.AllocsPerRun(2*maxSampled, func() {
		if err := w.turn(t.Context(), w.now(), w.now()); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a turn", n)
	}
	if len(w.recorder.sample) > maxSampled || w.recorder.histogram.TotalCount() != 2*maxSampled+1 {
		t.Errorf("%d of %d turns sampled", len(w.recorder.sample), w.recorder.histogram.TotalCount())
	}
}

// TestWorker_OpenLoad checks that a request which waited for the response before counts from when it was due.
func TestWorker_OpenLoad(t *testing.T) {
	w := connected(t, transfer.Requests{RequestBytes: 1, ResponseBytes: 1, PerSecond: 100})
	w.start = time.Now().Add(-time.Second) // 101 requests are due
	for i := range 100 {
		due, _, ok := w.next(t.Context())
		if want := time.Duration(i) * 10 * time.Millisecond; !ok || due != want {
			t.Fatalf("request %d is due at %v, want %v", i, due, want)
		}
	}
	w.wokeAt = 1050 * time.Millisecond // the host's timer was late by 50 ms
	if due, _, ok := w.next(t.Context()); !ok || due < w.wokeAt {
		t.Errorf("a request after a late timer counts from %v", due)
	}
	w.end = 0
	if _, _, ok := w.next(t.Context()); ok {
		t.Error("a request after the end")
	}
}

// TestWorker_ClosedLoad checks that no request waits for a free connection where each follows the response before.
func TestWorker_ClosedLoad(t *testing.T) {
	w := connected(t, transfer.Requests{RequestBytes: 1, ResponseBytes: 1})
	if due, began, ok := w.next(t.Context()); !ok || due != began {
		t.Errorf("due at %v and begun at %v", due, began)
	}
}

// TestRecorder_KeepsSlowTurns fills a recorder and looks for one turn in each thousand.
func TestRecorder_KeepsSlowTurns(t *testing.T) {
	w := connected(t, transfer.Requests{RequestBytes: 1, ResponseBytes: 1})
	r := &w.recorder
	for i := range 50_000 {
		took := 10 * time.Microsecond
		if i%1000 == 0 {
			took = 240 * time.Millisecond
		}
		r.number++
		r.record(w.conn, time.Duration(i)*time.Millisecond, took, 0, 0)
	}
	taken := collect([]*worker{w}, time.Minute)
	x := &taken.Exchanges
	if x.Count != 50_000 || len(x.Slow) != 50 || len(x.Sample) < maxSampled/2 || x.P50 > 11_000 || x.Max != 240e6 {
		t.Errorf("%d turns, %d slow, %d sampled, median %d, longest %d", x.Count, len(x.Slow), len(x.Sample), x.P50, x.Max)
	}
}

func BenchmarkTurn(b *testing.B) {
	w := connected(b, transfer.Requests{RequestBytes: 200, ResponseBytes: 1000})
	b.ReportAllocs()
	for b.Loop() {
		if err := w.turn(b.Context(), w.now(), w.now()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTurn_NewConnection takes a connection from its SYN to its end.
func BenchmarkTurn_NewConnection(b *testing.B) {
	r := transfer.Requests{RequestBytes: 200, ResponseBytes: 1000, NewConnections: true}
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	arriving := make(chan *net.TCPConn, 16)
	ctx, cancel := context.WithCancel(b.Context())
	served := make(chan struct{})
	spec := transfer.Spec{Streams: 1, Time: time.Hour, Requests: r}
	go func() {
		defer close(served)
		Server{Spec: spec, Options: socket.Options{Socket: transfer.Socket{NoDelay: true}}, Arriving: arriving}.Run(ctx)
	}()
	go func() {
		for {
			conn, err := l.AcceptTCP()
			if err != nil {
				return
			}
			var preface [1]byte
			conn.Read(preface[:])
			arriving <- conn
		}
	}()
	w := &worker{recorder: newRecorder(0, 1), shared: &shared{start: time.Now(), spec: r, end: time.Hour,
		dial: Native(l.Addr().String(), socket.Options{Socket: transfer.Socket{NoDelay: true}}, r, []string{"x"})}}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.turn(b.Context(), w.now(), w.now()); err != nil {
			b.Fatal(err)
		}
	}
	l.Close()
	cancel()
	<-served
}
