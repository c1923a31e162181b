package watched

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
		{"the network", after(2000, 0, 0), verdict.Unknown, network},
		{"clocks beyond the time", after(9000, 8000, 7000), verdict.ReceiverWindow, nil},
		{"half and half", after(1000, 0, 0), verdict.Mixed, network},
		{"a kernel without clocks", silent, verdict.Unknown, append([]verdict.Name{verdict.Application}, network...)},
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
func poured(queued func(i int) int64) *Connection {
	c := &Connection{Handshake: &transfer.Handshake{MSS: 1448}}
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

// TestSplitSenderTime_Mixed checks that the program and its buffer become candidates when the sender's share of a mixed
// verdict is divided.
func TestSplitSenderTime_Mixed(t *testing.T) {
	c := poured(func(i int) int64 { return 40_000 + int64(i%3/2)*60_000 })
	v := c.splitSenderTime(verdict.Verdict{Limiter: verdict.Mixed, Confidence: verdict.Low,
		Shares:     verdict.Shares{verdict.Sender: 0.62, verdict.Congestion: 0.38},
		Candidates: []verdict.Name{verdict.Sender, verdict.Congestion}})
	want := []verdict.Name{verdict.Application, verdict.Congestion, verdict.SendBuffer}
	if v.Limiter != verdict.Mixed || v.Confidence != verdict.Low || !slices.Equal(v.Candidates, want) {
		t.Errorf("%s, %s, %v, %v", v.Limiter, v.Confidence, v.Candidates, v.Shares)
	}
	// A verdict that becomes mixed has low confidence too.
	c = poured(func(i int) int64 { return 40_000 + int64(i%2)*60_000 })
	v = c.splitSenderTime(verdict.Verdict{Limiter: verdict.Sender, Confidence: verdict.Medium,
		Shares: verdict.Shares{verdict.Sender: 1}})
	if v.Limiter != verdict.Mixed || v.Confidence != verdict.Low || len(v.Candidates) != 2 {
		t.Errorf("%s, %s, %v, %v", v.Limiter, v.Confidence, v.Candidates, v.Shares)
	}
}

func TestThePairIsLeftOpen(t *testing.T) {
	v := ambiguousWindow(verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.Medium,
		Shares: verdict.Shares{verdict.ReceiverWindow: 0.7, verdict.ReceiverApplication: 0.3}})
	if v.Confidence != verdict.Low || len(v.Candidates) != 2 {
		t.Errorf("%+v", v)
	}
	unscaled := verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.Unscaled, Confidence: verdict.High}
	if v := ambiguousWindow(unscaled); v.Confidence != verdict.High || len(v.Candidates) != 0 {
		t.Errorf("%+v", v)
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

// TestABufferThatIsFullAndALink: over the empty path the buffer gives less than came, so which of them limits is open.
func TestABufferThatIsFullAndALink(t *testing.T) {
	full := verdict.Verdict{Limiter: verdict.Bottleneck, Confidence: verdict.Medium,
		Shares: verdict.Shares{verdict.Bottleneck: 0.9, verdict.SendBuffer: 0.1},
		Evidence: []verdict.Evidence{{Limiter: verdict.Bottleneck, Code: verdict.FullLink,
			Values: verdict.Values{"steady_bps": 20e6, "rtt_s": 0.08, "rtt_base_s": 0.04}}}}
	for _, c := range []struct {
		name   string
		queued int64 // ratio 100,000 bytes: 20 Mbit/s over 40 ms
		base   float64
		want   verdict.Name
	}{
		{"full, and no larger than the path", 120_000, 0.04, verdict.Unknown},
		{"full, and twice as large", 120_000, 0.02, verdict.Bottleneck},
		{"with room", 50_000, 0.04, verdict.Bottleneck},
	} {
		full.Evidence[0].Values["rtt_base_s"] = c.base
		v := poured(func(int) int64 { return c.queued }).bufferOrLink(full)
		if v.Limiter != c.want {
			t.Errorf("%s: %s, %v", c.name, v.Limiter, v.Shares)
		}
		if open := c.want == verdict.Unknown; open != (v.Evidence[0].Code == verdict.SendBufferOrLink) ||
			open != (v.Confidence == verdict.Low) || open != slices.Contains(v.Candidates, verdict.SendBuffer) {
			t.Errorf("%s: %s of %v, %v", c.name, v.Confidence, v.Candidates, v.Evidence)
		}
		sums(t, c.name, v)
	}
	if full.Shares[verdict.Bottleneck] != 0.9 {
		t.Error("the verdict that it was given changed")
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
		one := &Connection{Handshake: &transfer.Handshake{MSS: 1448, ReceiveScale: c.scale}, ReceiveBuffer: c.buffer,
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
