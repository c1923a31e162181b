//go:build linux && !portable

package socket

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// pair is a connection over loopback; the listener and the dialler have the options.
func pair(t testing.TB, dial, listen transfer.Socket) (dialled, accepted *Stream) {
	t.Helper()
	ctx := context.Background()
	l := must.Get(Listen(ctx, "127.0.0.1:0", Options{Socket: listen}))(t)
	defer l.Close()
	out := must.Get(Dial(ctx, l.Addr().String(), Options{Socket: dial}))(t)
	in, err := l.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	dialled, err = NewStream(out, Options{Socket: dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	accepted, err = NewStream(in, Options{Socket: listen})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return dialled, accepted
}

// drain reads n bytes.
func drain(t testing.TB, s *Stream, n int) {
	t.Helper()
	for n > 0 {
		got := must.Get(s.Discard(n))(t)
		n -= got
		if got == 0 {
			must.Do(t, s.WaitRead(time.Second))
		}
	}
}

func TestBuffersHoldFromTheHandshake(t *testing.T) {
	small := transfer.Socket{ReceiveBuffer: 16384, SendBuffer: 8192, MSS: 1000}
	dialled, accepted := pair(t, small, small)
	for name, s := range map[string]*Stream{"dialled": dialled, "accepted": accepted} {
		d := s.Describe()
		if d.SendBuffer != (transfer.Buffer{Requested: 8192, Granted: 16384}) {
			t.Errorf("%s: send buffer %+v", name, d.SendBuffer)
		}
		if d.ReceiveBuffer != (transfer.Buffer{Requested: 16384, Granted: 32768}) {
			t.Errorf("%s: receive buffer %+v", name, d.ReceiveBuffer)
		}
		h := d.Handshake
		if h == nil || h.SendScale != 0 || h.ReceiveScale != 0 {
			t.Errorf("%s: handshake %+v; a window of 16 KiB needs no scale", name, h)
		}
		if h != nil && (h.MSS > 1000 || h.MSS < 980) {
			t.Errorf("%s: MSS %d, asked for 1000", name, h.MSS)
		}
		var sample transfer.Sample
		must.Do(t, s.Sample(&sample, false))
		if sample.Have&transfer.HaveReceiveWnd == 0 || sample.ReceiveWnd > 32768 {
			t.Errorf("%s: window %d of a 16 KiB buffer", name, sample.ReceiveWnd)
		}
	}
}

func TestClippedBufferIsMarked(t *testing.T) {
	dialled, _ := pair(t, transfer.Socket{SendBuffer: 1 << 30, ReceiveBuffer: 1 << 29}, transfer.Socket{})
	d := dialled.Describe()
	if !d.SendBuffer.Clipped || !d.ReceiveBuffer.Clipped || d.SendBuffer.Forced {
		t.Errorf("1 GiB and 512 MiB granted: %+v %+v", d.SendBuffer, d.ReceiveBuffer)
	}
}

func TestForcedBufferIsMarked(t *testing.T) {
	testenv.Need(t, testenv.Root)
	ceilings := must.Get(ReadCeilings())(t)
	asked := ceilings.Send // twice the most that is granted without privilege
	dialled, _ := pair(t, transfer.Socket{SendBuffer: asked, Force: true}, transfer.Socket{})
	if b := dialled.Describe().SendBuffer; !b.Forced || b.Clipped || b.Granted != 2*asked {
		t.Errorf("%d bytes asked with privilege: %+v", asked, b)
	}
}

func TestClampStaysWhileTheBufferGrows(t *testing.T) {
	const clamp = 40000
	sender, receiver := pair(t, transfer.Socket{}, transfer.Socket{Clamp: clamp})
	var sample transfer.Sample
	for range 200 {
		must.Get(sender.Write(BestWrite))(t)
		must.Get(receiver.Discard(1 << 20))(t)
		must.Do(t, receiver.Sample(&sample, false))
	}
	if sample.ReceiveWnd > 65535 {
		t.Errorf("window %d with a clamp of %d", sample.ReceiveWnd, clamp)
	}
}

func TestUnknownCongestionControl(t *testing.T) {
	_, err := Listen(context.Background(), "127.0.0.1:0", Options{Socket: transfer.Socket{Congestion: "nonesuch"}})
	var refused *OptionError
	if !errors.As(err, &refused) || !errors.Is(err, unix.ENOENT) || refused.Try() == "" {
		t.Errorf("listening with an unknown congestion control: %v", err)
	}
}

func TestPayloadArrivesAndIsCounted(t *testing.T) {
	sender, receiver := pair(t, transfer.Socket{}, transfer.Socket{})
	const total = 300_000 // crosses the end of the payload's piece
	sent := 0
	for _, n := range []int{1, 1000, 100_000, 150_000, total - 251_001} {
		for n > 0 {
			wrote := must.Get(sender.Write(n))(t)
			sent, n = sent+wrote, n-wrote
			drain(t, receiver, wrote)
		}
	}
	if err := sender.CloseWrite(); err != nil || sent != total {
		t.Fatalf("%d bytes sent, %v", sent, err)
	}
	must.Do(t, receiver.WaitRead(time.Second))
	if n, err := receiver.Discard(1); n != 0 || err != io.EOF {
		t.Fatalf("at the end: %d, %v", n, err)
	}
	var s transfer.Sample
	if err := receiver.Sample(&s, false); err != nil || s.Received-1 != total { // the end counts as one byte
		t.Errorf("the kernel counted %d bytes received of %d, %v", s.Received, total, err)
	}
	if out, err := sender.Outstanding(); err != nil || out > 1 {
		t.Errorf("%d bytes outstanding, %v", out, err)
	}
}

func TestInterruptEndsWaits(t *testing.T) {
	a, b := pair(t, transfer.Socket{}, transfer.Socket{})
	done := make(chan error)
	go func() { done <- a.WaitRead(time.Minute) }()
	a.Interrupt()
	if err := <-done; err != ErrInterrupted {
		t.Errorf("waiting: %v", err)
	}
	if err := a.Sleep(time.Minute); err != ErrInterrupted {
		t.Errorf("sleeping after an interrupt: %v", err)
	}
	b.Reset()
	b.Close()
	c, d := pair(t, transfer.Socket{}, transfer.Socket{})
	d.Reset()
	d.Close()
	if closed, err := c.WaitClosed(time.Minute); !closed || err != nil {
		t.Errorf("after a reset: %v, %v", closed, err)
	}
}

// An older kernel fills less of the struct: the missing fields must not be in Have.
func TestShortInfoIsUnknown(t *testing.T) {
	full := tcpInfo{length: uint32(unsafe.Sizeof(unix.TCPInfo{}))}
	full.Rtt, full.Min_rtt, full.Snd_mss = 1000, 900, 1448
	for _, tt := range []struct {
		kernel string
		length uintptr
		absent transfer.Fields
	}{
		{"3.10", 104,
			transfer.HaveAcked | transfer.HaveReceived | transfer.HaveNotSent | transfer.HaveMinRTT | transfer.HaveRate |
				transfer.HaveLimits | transfer.HaveSendWnd | transfer.HaveReceiveWnd},
		{"4.9", 168, transfer.HaveLimits | transfer.HaveSendWnd | transfer.HaveReceiveWnd},
		{"5.10", 232, transfer.HaveReceiveWnd},
		{"6.12", unsafe.Sizeof(unix.TCPInfo{}), 0},
	} {
		info := full
		info.length = uint32(tt.length)
		var s transfer.Sample
		info.fill(&s)
		const some = transfer.HaveRTT | transfer.HaveCwnd | transfer.HaveInFlight | transfer.HaveRetrans
		if s.Have&tt.absent != 0 || s.Have&some != some {
			t.Errorf("Linux %s (%d bytes): have %b, absent are %b", tt.kernel, tt.length, s.Have, tt.absent)
		}
	}
}

// TestFill_ArrivedInRecovery checks the arrived bytes during recovery, with retransmitted segments in flight, and after
// a reset, which clears the kernel's queue.
func TestFill_ArrivedInRecovery(t *testing.T) {
	const mss = 1448
	info := tcpInfo{length: uint32(unsafe.Sizeof(unix.TCPInfo{}))}
	info.Snd_mss, info.Unacked, info.Sacked, info.Lost, info.Retrans = mss, 20, 7, 9, 4
	info.Bytes_acked, info.Bytes_sent, info.Bytes_retrans = 5*mss, 31*mss, 6*mss
	for _, purged := range []bool{false, true} {
		want := int64(5+7) * mss
		if purged {
			info.Unacked, info.Sacked, want = 0, 0, 5*mss
		}
		var s transfer.Sample
		info.fill(&s)
		if arrived := s.Arrived(mss); arrived != want {
			t.Errorf("after a reset: %v: %d bytes arrived, want %d: %+v", purged, arrived, want, s)
		}
	}
}

func TestSamplingAllocatesNothing(t *testing.T) {
	a, _ := pair(t, transfer.Socket{}, transfer.Socket{})
	var s transfer.Sample
	if n := testing.AllocsPerRun(100, func() { a.Sample(&s, true) }); n != 0 {
		t.Errorf("%v allocations a sample", n)
	}
	want := transfer.HaveRTT | transfer.HaveCwnd | transfer.HaveInFlight | transfer.HaveRetrans | transfer.HaveRecovery
	if s.Have&want != want {
		t.Errorf("have %b, every Linux has %b", s.Have, want)
	}
}

func BenchmarkSample(b *testing.B) {
	a, _ := pair(b, transfer.Socket{}, transfer.Socket{})
	var s transfer.Sample
	b.ReportAllocs()
	for b.Loop() {
		a.Sample(&s, true)
	}
}

func TestForgetPath(t *testing.T) {
	testenv.Need(t, testenv.Root)
	for _, to := range []string{"127.0.0.1", "::1", "192.0.2.1"} {
		err := ForgetPath(netip.MustParseAddr(to))
		if err != nil {
			t.Errorf("%s: %v", to, err)
		}
	}
}

// Payload by reference arrives complete and counted, also across the end of the file; Read takes it like Discard.
func TestPayloadByReference(t *testing.T) {
	sender, receiver := pair(t, transfer.Socket{}, transfer.Socket{})
	const total = BestWrite + 300_000
	for sent, taken := 0, 0; taken < total; {
		wrote := must.Get(sender.Splice(total - sent))(t)
		sent += wrote
		take := receiver.Read
		if taken > total/2 {
			take = receiver.Discard
		}
		n := must.Get(take(BestWrite))(t)
		taken += n
	}
	var s transfer.Sample
	if err := receiver.Sample(&s, false); err != nil || s.Received != total {
		t.Errorf("the kernel counted %d bytes received of %d, %v", s.Received, total, err)
	}
	receiver.Reset()
	receiver.Close()
	if closed, err := sender.WaitClosed(time.Minute); !closed || err != nil {
		t.Fatalf("after a reset: %v, %v", closed, err)
	}
	for range 2 {
		_, err := sender.Splice(1000)
		if err != nil && errors.Is(err, ErrNotSupported) {
			t.Errorf("a reset connection is no missing feature: %v", err)
		}
	}
}

// TestBatch checks that a batch is waited for, that the end interrupts the wait, and that a connection whose buffer it
// could fill is left alone.
func TestBatch(t *testing.T) {
	const batch = 64 << 10
	dialled, accepted := pair(t, transfer.Socket{}, transfer.Socket{ReceiveBuffer: 1 << 20})
	if accepted.Batch(4<<20, 1e9) {
		t.Error("a batch as large as the buffer")
	}
	if accepted.Batch(batch, 1e15) {
		t.Error("a batch where a round trip's bytes fill the buffer")
	}
	if !accepted.Batch(batch, 1e9) {
		t.Fatal("no batch")
	}
	readable := func() bool {
		must.Do(t, accepted.WaitRead(50*time.Millisecond))
		return accepted.polled[1].Revents != 0
	}
	for sent := 0; sent < batch/2; {
		n := must.Get(dialled.Write(batch/2 - sent))(t)
		sent += n
	}
	if readable() {
		t.Error("half a batch is readable")
	}
	must.Do(t, dialled.CloseWrite())
	if !readable() {
		t.Error("the end is not readable")
	}
	if !accepted.Batch(1, 0) {
		t.Error("a batch cannot be taken back")
	}
}
