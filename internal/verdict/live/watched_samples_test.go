package live

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const clocks = transfer.HaveLimits | transfer.HaveNotSent | transfer.HaveSendWnd

// after returns a sample two seconds later with the given clocks in milliseconds.
func after(busy, receiver, buffer int) transfer.Sample {
	ms := time.Millisecond
	return transfer.Sample{At: 2 * time.Second, Have: clocks, Busy: time.Duration(busy) * ms, NotSent: 1e6, SendWnd: 1e5,
		RwndLimited: time.Duration(receiver) * ms, SndbufLimited: time.Duration(buffer) * ms}
}

func TestJudge_KernelCounters(t *testing.T) {
	shut := after(2000, 1900, 0)
	shut.SendWnd = 0
	silent := after(0, 0, 0)
	silent.Have = 0
	noWindow := after(2000, 1900, 0) // tcp_info of 192 bytes: the clocks, but not the peer's window
	noWindow.Have, noWindow.SendWnd = transfer.HaveLimits|transfer.HaveNotSent, 0
	for _, c := range []struct {
		name       string
		to         transfer.Sample
		want       verdict.Name
		candidates []verdict.Name // at least
	}{
		{"idle", after(100, 0, 0), verdict.Application, nil},
		{"a window", after(2000, 1900, 0), verdict.ReceiverWindow, []verdict.Name{verdict.ReceiverApplication}},
		{"a window that is shut", shut, verdict.ReceiverApplication, []verdict.Name{verdict.ReceiverWindow}},
		{"a window that is not reported", noWindow, verdict.ReceiverWindow, []verdict.Name{verdict.ReceiverApplication}},
		{"the send buffer", after(2000, 0, 1700), verdict.SendBuffer, nil},
		{"the network", after(2000, 0, 0), verdict.Unknown, undividedNetwork},
		{"clocks beyond the time", after(9000, 8000, 7000), verdict.ReceiverWindow, nil},
		{"half and half", after(1000, 0, 0), verdict.Mixed, undividedNetwork},
		{"a kernel without clocks", silent, verdict.Unknown,
			append([]verdict.Name{verdict.Application}, undividedNetwork...)},
	} {
		from := transfer.Sample{Have: c.to.Have}
		v := ByCounters(&from, &c.to, Tally{})
		if v.Limiter != c.want || v.Confidence == verdict.High {
			t.Errorf("%s: %s, %s, %v", c.name, v.Limiter, v.Confidence, v.Shares)
		}
		for _, n := range c.candidates {
			if !slices.Contains(v.Candidates, n) {
				t.Errorf("%s: %s is not a candidate of %v", c.name, n, v.Candidates)
			}
		}
		sums(t, c.name, v)
	}
	if v := ByCounters(&transfer.Sample{At: 5}, &transfer.Sample{At: 5}, Tally{}); v.Limiter != verdict.Unknown {
		t.Errorf("no time at all: %s", v.Limiter)
	}
}

func sums(t *testing.T, name string, v verdict.Verdict) {
	t.Helper()
	sum := 0.0
	for _, s := range v.Shares {
		sum += s
	}
	if math.Abs(sum-1) > 1e-6 || len(v.Evidence) == 0 {
		t.Errorf("%s: shares sum to %v, %d pieces of evidence", name, sum, len(v.Evidence))
	}
}

// poured returns a connection that sends 10 Mbit/s over 40 ms for four seconds, with all data in flight at every sample
// and a send buffer of 100,000 bytes filled to queued.
func poured(queued func(i int) int64) *Watched {
	c := &Watched{Handshake: &transfer.Handshake{MSS: 1448}}
	for i := range 80 {
		at := time.Duration(i) * 50 * time.Millisecond
		c.Add(&transfer.Sample{At: at,
			Have: clocks | transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveCwnd | transfer.HaveInFlight |
				transfer.HaveAcked |
				transfer.HaveRetrans | transfer.HaveRecovery | transfer.HaveRate,
			RTT: 40 * time.Millisecond, MinRTT: 40 * time.Millisecond, Cwnd: 200_000, SendWnd: 1 << 20, InFlight: 50_000,
			Busy:  at,
			Acked: int64(at.Seconds() * 1.25e6), Sent: int64(at.Seconds()*1.25e6) + 50_000},
			Queues{SendBuffer: 100_000, SendQueued: queued(i), Unacked: 50_000}, time.Minute)
	}
	for i := range c.Of {
		c.Acked = c.Of[i].Acked
	}
	return c
}

func TestJudge_SendBufferOrProgram(t *testing.T) {
	for _, c := range []struct {
		name   string
		queued func(int) int64
		want   verdict.Name
	}{
		{"full again and again", func(i int) int64 { return 70_000 + int64(i%4)*10_000 }, verdict.SendBuffer},
		{"much, and never full", func(int) int64 { return 90_000 }, verdict.Application},
		{"with room", func(int) int64 { return 20_000 }, verdict.Application},
	} {
		v := poured(c.queued).Judge(true)
		if v.Limiter != c.want || v.Confidence == verdict.High {
			t.Errorf("%s: %s, %s, %v", c.name, v.Limiter, v.Confidence, v.Shares)
		}
		sums(t, c.name, v)
	}
}

// TestJudge_SendQueueWithRoomAndFull checks that the program and its buffer are candidates where each has a part of the
// time in which all that was written was on its way.
func TestJudge_SendQueueWithRoomAndFull(t *testing.T) {
	v := poured(func(i int) int64 { return 40_000 + int64(i%2)*60_000 }).Judge(true)
	if v.Shares[verdict.Sender] > 0.01 || v.Shares[verdict.SendBuffer] < 0.4 || v.Confidence == verdict.High {
		t.Errorf("%s, %s, %v, %v", v.Limiter, v.Confidence, v.Candidates, v.Shares)
	}
	sums(t, "mixed", v)
	v = poured(func(i int) int64 { return 60_000 + int64(i%20/19)*40_000 }).Judge(true)
	if v.Limiter != verdict.Sender || v.Confidence == verdict.High ||
		!slices.Equal(v.Candidates, []verdict.Name{verdict.Application, verdict.SendBuffer}) {
		t.Errorf("%s, %s, %v, %v", v.Limiter, v.Confidence, v.Candidates, v.Shares)
	}
}

// TestJudge_WindowOrProgram has a window that is always full: a sender cannot see whether the receiving program reads.
func TestJudge_WindowOrProgram(t *testing.T) {
	for _, c := range []struct {
		scale   int
		subtype string
		open    bool
	}{{7, verdict.Fixed, true}, {-1, verdict.Unscaled, false}} {
		w := poured(func(int) int64 { return 1_000_000 })
		w.Handshake = &transfer.Handshake{MSS: 1448, SendScale: c.scale}
		for i := range w.Of {
			w.Of[i].SendWnd = 62_000
			w.Of[i].InFlight = 62_000
			w.Of[i].Cwnd = 80_000
			w.Of[i].RTT = 50 * time.Millisecond
			w.Of[i].MinRTT = 50 * time.Millisecond
			w.Of[i].RwndLimited = w.Of[i].At
			w.Of[i].NotSent = 900_000
			w.Queues[i].SendBuffer = 4_000_000
		}
		v := w.Judge(true)
		if v.Limiter != verdict.ReceiverWindow || v.Subtype != c.subtype || (len(v.Candidates) == 2) != c.open {
			t.Errorf("scale %d: %s (%s), %v of %v", c.scale, v.Limiter, v.Subtype, v.Candidates, v.Shares)
		}
	}
}

// BenchmarkFine measures the live judge on four seconds of samples.
func BenchmarkFine(b *testing.B) {
	c := poured(func(i int) int64 { return 70_000 + int64(i%4)*10_000 })
	b.ReportAllocs()
	for b.Loop() {
		c.Judge(true)
	}
}

// TestJudge_FullSendBufferAndLink has a link of 10 Mbit/s with a queue, and a buffer that is always full. Where it is
// no larger than the path, either may limit: the kernel's bursts queue on any link.
func TestJudge_FullSendBufferAndLink(t *testing.T) {
	for _, c := range []struct {
		name         string
		size, queued int64 // bytes; the BDP of the empty path has 50,000
		want         verdict.Name
	}{
		{"full, and no larger than the path", 56_000, 60_000, verdict.Unknown},
		{"full, and four times as large", 200_000, 210_000, verdict.Bottleneck},
		{"with room", 56_000, 20_000, verdict.Bottleneck},
	} {
		w := poured(func(int) int64 { return c.queued })
		w.SendBuffer = c.size
		for i := range w.Of {
			s := &w.Of[i]
			s.RTT = 80 * time.Millisecond
			s.MinRTT = 40 * time.Millisecond
			s.InFlight = 100_000
			s.Cwnd = 101_000
			s.NotSent = 20_000
			s.DeliveryBps = 10e6
			w.Queues[i].SendBuffer = c.size
			w.Queues[i].Unacked = 100_000
		}
		w.Of[0].RTT = 40 * time.Millisecond
		v := w.Judge(true)
		isOpen := c.want == verdict.Unknown
		if v.Limiter != c.want || isOpen != (v.Evidence[0].Code == verdict.SendBufferOrLink) ||
			isOpen && (v.Confidence != verdict.Low || !slices.Contains(v.Candidates, verdict.SendBuffer)) {
			t.Errorf("%s: %s, %s of %v, %v, %v", c.name, v.Limiter, v.Confidence, v.Candidates, v.Shares, v.Evidence)
		}
		sums(t, c.name, v)
	}
}

// TestJudge_SendQueueAndItsSizeAreOfOneSample gives an automatic buffer that shrinks after it was fullest.
func TestJudge_SendQueueAndItsSizeAreOfOneSample(t *testing.T) {
	c := poured(func(int) int64 { return 90_000 })
	for i := range c.Queues {
		c.Queues[i] = Queues{SendBuffer: 32_768, SendQueued: 30_000, Unacked: 50_000}
	}
	c.Queues[1] = Queues{SendBuffer: 512_000, SendQueued: 453_392, Unacked: 50_000}
	all := c.Judge(true).Evidence
	i := slices.IndexFunc(all, func(e verdict.Evidence) bool { return e.Code == verdict.SendQueueSeen })
	if i < 0 || all[i].Values["queued_bytes"] != 453_392 || all[i].Values["granted_bytes"] != 512_000 {
		t.Errorf("%v", all)
	}
}

// TestJudge_ReceiveBufferOfAProgram has one window of arrivals each round trip: of a program's SO_RCVBUF, or of an
// automatic buffer at its ceiling.
func TestJudge_ReceiveBufferOfAProgram(t *testing.T) {
	const rtt = 40 * time.Millisecond
	const ceiling = 33554432
	for _, c := range []struct {
		buffer, ceiling int64
		scale           int
		want            string
	}{
		{16384, ceiling, 0, verdict.Fixed},
		{131072, ceiling, 2, verdict.Fixed},
		{524288, ceiling, 10, verdict.Fixed},
		{2 * ceiling, ceiling, 10, verdict.Fixed},
		{ceiling, ceiling, 10, verdict.AutotuneCeiling},
		{6291456, 6291456, 7, verdict.AutotuneCeiling},
		{524288, 0, 10, verdict.Fixed}, // the ceiling is not known
	} {
		window := c.buffer / 2
		one := &Watched{Handshake: &transfer.Handshake{MSS: 1448, ReceiveScale: c.scale}, ReceiveBuffer: c.buffer,
			ReceiveBufferMax: c.ceiling}
		for i := range 100 {
			at := time.Duration(i) * 50 * time.Millisecond
			one.Of = append(one.Of, transfer.Sample{At: at, Have: transfer.HaveReceived | transfer.HaveReceiveWnd |
				transfer.HaveMinRTT, MinRTT: rtt, ReceiveWnd: window, Received: int64(at/rtt) * window})
			one.Queues = append(one.Queues, Queues{})
		}
		if v := one.Judge(false); v.Limiter != verdict.ReceiverWindow || v.Subtype != c.want {
			t.Errorf("buffer of %d bytes, ceiling %d: %s (%s), want %s", c.buffer, c.ceiling, v.Limiter, v.Subtype, c.want)
		}
	}
}
