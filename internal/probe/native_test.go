package probe_test

import (
	"cmp"
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestMain(m *testing.M) { testenv.RunWithoutLeaks(m) }

// serve starts a server on loopback and returns its address.
func serve(t testing.TB, c server.Config) (address string) {
	t.Helper()
	c.Address = cmp.Or(c.Address, "127.0.0.1:0")
	c.Timeouts = brief
	ctx, cancel := context.WithCancel(context.Background())
	s := must.Get(server.New(ctx, c))(t)
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s.Addr().String()
}

// brief are short timeouts for silent far ends.
var brief = probe.Timeouts{Answer: 3 * time.Second, Result: 3 * time.Second, Stop: 500 * time.Millisecond,
	Stall: 1500 * time.Millisecond}

func far(address string) probe.Far { return probe.Far{Address: address, Key: key, Timeouts: brief} }

func connect(t testing.TB, address string, key probe.Key) *probe.Client {
	t.Helper()
	c := must.Get(probe.Connect(context.Background(), address, key))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

var key = probe.NewKey()

func TestClient_Transfers(t *testing.T) {
	for name, shared := range map[string]bool{"a port of its own": false, "the server's port": true} {
		t.Run(name, func(t *testing.T) {
			testTransfers(t, connect(t, serve(t, server.Config{Key: key, ShareWindows: shared}), key), shared)
		})
	}
}

func testTransfers(t *testing.T, c *probe.Client, shared bool) {
	both := transfer.Socket{SendBuffer: 100_000, ReceiveBuffer: 50_000}
	clamped := transfer.Socket{Clamp: 20_000, MSS: 600}
	for _, tt := range []struct {
		name  string
		spec  transfer.Spec
		bytes int64 // exactly; 0: any
	}{
		{"time", transfer.Spec{Time: 60 * time.Millisecond}, 0},
		{"bytes", transfer.Spec{Bytes: 3_000_001}, 3_000_001},
		{"bytes before time", transfer.Spec{Bytes: 100_000, Time: time.Minute}, 100_000},
		{"four streams share the bytes", transfer.Spec{Bytes: 3_000_001, Streams: 4}, 3_000_001},
		{"buffers at both ends", transfer.Spec{Bytes: 1_000_000, Near: both, Far: both}, 1_000_000},
		{"clamp and MSS at the far end", transfer.Spec{Bytes: 300_000, Far: clamped}, 300_000},
		{"clamp at the far end after a buffer", transfer.Spec{Bytes: 300_000, Far: transfer.Socket{Clamp: 20_000}}, 300_000},
		{"paced writer", transfer.Spec{Bytes: 20_000, Program: transfer.Program{WriteBps: 8e6, WriteBytes: 5000}}, 20_000},
		{"paced reader", transfer.Spec{Time: 100 * time.Millisecond, Program: transfer.Program{ReadBps: 8e6}}, 0},
		{"exchange", transfer.Spec{Bytes: 2000, Program: transfer.Program{WriteBytes: 100, RequestResponse: true},
			Near: transfer.Socket{NoDelay: true},
			Far:  transfer.Socket{NoDelay: true}}, 2000},
	} {
		for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
			t.Run(tt.name+" "+string(direction), func(t *testing.T) {
				tt.spec.Direction = direction
				r, reported := untilSomeMoves(t, c, tt.spec)
				checkResult(t, r, tt.bytes)
				_, port, _ := net.SplitHostPort(c.Address)
				if on := strconv.Itoa(int(r.Near.Streams[0].Remote.Port())) == port; on != (shared ||
					tt.spec.Far.ReceiveBuffer == 0 && tt.spec.Far.Clamp == 0) {
					t.Errorf("data connections on the server's port: %v", on)
				}
				if mss := r.Near.Streams[0].Handshake.MSS; tt.spec.Far.MSS > 0 && mss > tt.spec.Far.MSS {
					t.Errorf("segments of %d bytes, the far end's MSS is %d", mss, tt.spec.Far.MSS)
				}
				if received, _ := r.Received(); reported > received.Bytes ||
					direction == transfer.Down && reported != received.Bytes {
					t.Errorf("intervals have %d bytes, the result %d", reported, received.Bytes)
				}
			})
		}
	}
}

// longest limits the transfer time on a busy machine.
const longest = 30 * time.Second

// untilSomeMoves runs a transfer, and repeats a timed one with more time until data arrived. reported is the sum
// of its intervals.
func untilSomeMoves(t *testing.T, c *probe.Client, spec transfer.Spec) (r *transfer.Result, reported int64) {
	t.Helper()
	for {
		reported = 0
		r, err := transfer.Run(context.Background(), c, spec, func(i transfer.Interval) { reported += i.Bytes })
		if err != nil {
			t.Fatal(err)
		}
		if received, ok := r.Received(); ok && received.Bytes > 0 || spec.Bytes > 0 || spec.Time > longest {
			return r, reported
		}
		spec.Time *= 4
	}
}

func checkResult(t *testing.T, r *transfer.Result, bytes int64) {
	t.Helper()
	received, ok := r.Received()
	if !ok || !r.Complete || received.Bytes == 0 || bytes > 0 && received.Bytes != bytes {
		t.Fatalf("received %+v, complete %v; want %d bytes", received, r.Complete, bytes)
	}
	var acknowledged int64
	for which, end := range map[string]*transfer.End{"near": r.Near, "far": r.Far} {
		if end == nil || len(end.Streams) != max(r.Spec.Streams, 1) {
			t.Fatalf("%s end: %+v", which, end)
		}
		asked := r.Spec.Near
		if which == "far" {
			asked = r.Spec.Far
		}
		for _, s := range end.Streams {
			if len(s.Samples) < 2 || s.Handshake == nil || !s.Local.IsValid() || s.Local.Port() == s.Remote.Port() {
				t.Errorf("%s end's stream: %d samples, handshake %v, %v to %v", which, len(s.Samples), s.Handshake, s.Local,
					s.Remote)
			}
			if s.SendBuffer.Requested != asked.SendBuffer || s.ReceiveBuffer.Requested != asked.ReceiveBuffer {
				t.Errorf("%s end: asked for %+v, buffers are %+v and %+v", which, asked, s.SendBuffer, s.ReceiveBuffer)
			}
			if asked.ReceiveBuffer > 0 && s.ReceiveBuffer.Effective > 2*asked.ReceiveBuffer {
				t.Errorf("%s end: a window of %d from a buffer of %d", which, s.ReceiveBuffer.Effective, asked.ReceiveBuffer)
			}
			if end == r.Sender() {
				acknowledged += s.Bytes
			}
		}
	}
	if bytes > 0 && acknowledged != bytes {
		t.Errorf("%d bytes acknowledged of %d", acknowledged, bytes)
	}
}

// TestTransfer_MeasuresProgramWaits checks that at least half of a program's waits are attributed to it. Transfers
// run longer on a busy machine.
func TestTransfer_MeasuresProgramWaits(t *testing.T) {
	c := connect(t, serve(t, server.Config{Key: key}), key)
	last := func(e *transfer.End) transfer.Sample { s := e.Streams[0].Samples; return s[len(s)-1] }
	for _, tt := range []struct {
		name    string
		program transfer.Program
		right   func(near, far transfer.Sample, half time.Duration) bool
	}{
		{"a writer that pauses", transfer.Program{WriteBps: 1e6},
			func(near, _ transfer.Sample, half time.Duration) bool {
				return near.Paused >= half && near.Blocked <= half
			}},
		{"a slow reader", transfer.Program{ReadBps: 1e6},
			func(near, far transfer.Sample, half time.Duration) bool {
				return near.Blocked >= half && far.Paused >= half && (far.Have&transfer.HaveQueue == 0 || far.Queued > 0)
			}},
		{"Nagle against delayed acknowledgements", transfer.Program{RequestResponse: true, WriteBytes: 100},
			func(near, _ transfer.Sample, half time.Duration) bool { return near.Awaited >= half }},
	} {
		for length := 200 * time.Millisecond; ; length *= 4 {
			r, _ := untilSomeMoves(t, c, transfer.Spec{Direction: transfer.Up, Time: length, Program: tt.program})
			near, far := last(r.Near), last(r.Far)
			if tt.right(near, far, length/2) {
				break
			}
			if length > longest {
				t.Errorf("%s: %+v here, %+v there", tt.name, near, far)
				break
			}
		}
	}
}

func TestClient_WorksAfterFailedTransfer(t *testing.T) {
	c := connect(t, serve(t, server.Config{Key: key}), key)
	ctx, cancel := context.WithCancel(context.Background())
	r, err := transfer.Run(ctx, c, transfer.Spec{Direction: transfer.Down, Time: time.Minute},
		func(transfer.Interval) { cancel() })
	if !errors.Is(err, context.Canceled) || r == nil || r.Complete {
		t.Fatalf("interrupted: %v, %+v", err, r)
	}
	if received, ok := r.Received(); !ok || received.Bytes == 0 || r.Far == nil {
		t.Errorf("the measurement until then is lost: %+v, far %v", received, r.Far)
	}
	if _, err := transfer.Run(ctx, c, transfer.Spec{Direction: transfer.Up, Bytes: 1}, nil); !errors.Is(err,
		context.Canceled) {
		t.Errorf("a run with a cancelled context: %v", err)
	}
	var u *transfer.Unsupported
	if _, err := transfer.Run(context.Background(), c, transfer.Spec{Direction: transfer.Up}, nil); !errors.As(err, &u) {
		t.Errorf("a spec without an end: %v", err)
	}
	r, err = transfer.Run(context.Background(), c, transfer.Spec{Direction: transfer.Up, Bytes: 1000},
		nil)
	if err != nil {
		t.Fatal(err)
	}
	checkResult(t, r, 1000)
}

func TestClient_CloseEndsTransfer(t *testing.T) {
	c := connect(t, serve(t, server.Config{Key: key}), key)
	started := make(chan struct{})
	done := make(chan error)
	go func() {
		var once bool
		_, err := transfer.Run(context.Background(), c, transfer.Spec{Direction: transfer.Up, Time: time.Minute},
			func(transfer.Interval) {
				if !once {
					once = true
					close(started)
				}
			})
		done <- err
	}()
	<-started
	go c.Close()
	if err := <-done; err == nil {
		t.Error("a closed client's transfer succeeded")
	}
	if _, err := transfer.Run(context.Background(), c, transfer.Spec{Direction: transfer.Up, Bytes: 1},
		nil); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a run after Close: %v", err)
	}
}

func TestClient_LeaksNoDescriptors(t *testing.T) {
	testenv.Need(t, testenv.Linux) // counts descriptors in /proc
	address := serve(t, server.Config{Key: key})
	open := func() int {
		entries := must.Get(os.ReadDir("/proc/self/fd"))(t)
		return len(entries)
	}
	run := func(spec transfer.Spec) {
		c := must.Get(far(address).Connect(context.Background()))(t)
		transfer.Run(context.Background(), c, spec, nil)
		c.Close()
	}
	small := transfer.Socket{ReceiveBuffer: 8192}
	run(transfer.Spec{Direction: transfer.Up, Bytes: 1000, Far: small})
	before := open()
	for range 5 {
		run(transfer.Spec{Direction: transfer.Up, Bytes: 1000, Far: small, Streams: 3})
		run(transfer.Spec{Direction: transfer.Down, Bytes: 1000, Near: transfer.Socket{Congestion: "nonesuch"}})
		run(transfer.Spec{Direction: transfer.Down, Bytes: 1000, Near: small})
	}
	until := time.Now().Add(20 * time.Second)
	after := open()
	for ; after > before && time.Now().Before(until); after = open() {
		<-time.After(time.Millisecond)
	}
	if after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

// Both ends record the same test id, and the client knows the offset of the server's clock.
func TestTransfer_SharesTestIDAndClock(t *testing.T) {
	key := probe.NewKey()
	clock := make(chan *transfer.Result, 1)
	address := serve(t, server.Config{Key: key, Event: func(e server.Event) {
		if e.Result != nil {
			clock <- e.Result
		}
	}})
	const id = "01890a5d-ac96-774b-bcce-b302099a8057"
	c := must.Get(probe.Far{Address: address, Key: key, TestID: id}.Connect(t.Context()))(t)
	defer c.Close()
	r, err := transfer.Run(t.Context(), c, transfer.Spec{Direction: transfer.Up, Bytes: 1000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if there := <-clock; r.Spec.TestID != id || there.Spec.TestID != id {
		t.Errorf("%q here, %q there", r.Spec.TestID, there.Spec.TestID)
	}
	if clock, ok := c.Clock(); !ok || clock.MaxError <= 0 || clock.Offset.Abs() > clock.MaxError {
		t.Errorf("the same clock: %+v, %v", clock, ok)
	}
}

// TestTransfer_EndsWhenItsKeyExpires sets the key's expiry shortly after each request, so that it expires during
// the transfer.
func TestTransfer_EndsWhenItsKeyExpires(t *testing.T) {
	holder := probe.Holder{Name: "a", Key: probe.NewKey()}
	var expires atomic.Bool
	address := serve(t, server.Config{Key: key, Holders: func() []probe.Holder {
		h := holder
		if expires.Load() {
			h.Until = time.Now().Add(300 * time.Millisecond)
		}
		return []probe.Holder{h}
	}})
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		expires.Store(false)
		c := connect(t, address, holder.Key)
		expires.Store(true)
		r, err := transfer.Run(t.Context(), c, transfer.Spec{Direction: direction, Time: 10 * time.Minute}, nil)
		if err == nil && r.Complete {
			t.Errorf("%s: the transfer was completed", direction)
		}
		t.Log(err)
	}
}
