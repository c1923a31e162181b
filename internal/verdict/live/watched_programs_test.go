package live

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// talk returns five seconds of a connection with the given RTT, sampled each 50 ms. The function at returns the bytes
// in flight, acknowledged and received at each sample.
func talk(rtt time.Duration, at func(t time.Duration) (inFlight, acked, received int64)) *watchedDirection {
	w := &watchedDirection{Sends: true, Handshake: &transfer.Handshake{MSS: 1448}}
	for t := time.Duration(0); t <= 5*time.Second; t += 50 * time.Millisecond {
		s := transfer.Sample{At: t, MinRTT: rtt, SendWnd: 8 << 20, Cwnd: 4 << 20,
			Have: transfer.HaveReceived | transfer.HaveAcked | transfer.HaveQueue | transfer.HaveNotSent |
				transfer.HaveMinRTT | transfer.HaveSendWnd | transfer.HaveCwnd}
		s.Queued, s.Acked, s.Received = at(t)
		w.Samples = append(w.Samples, s)
	}
	return w
}

func TestPrograms(t *testing.T) {
	const ms = time.Millisecond
	blocks := func(each time.Duration, block int64) func(time.Duration) (int64, int64, int64) {
		return func(t time.Duration) (int64, int64, int64) {
			n := int64(t / each)
			return block, n * block, n
		}
	}
	// A constant amount is in flight; the other end sends a message of the given size each 40 ms.
	level := func(bytes, message int64) func(time.Duration) (int64, int64, int64) {
		return func(t time.Duration) (int64, int64, int64) {
			return bytes - int64(t/(50*ms))%3*1000, int64(t.Seconds() * float64(bytes) * 10), int64(t/(40*ms)) * message
		}
	}
	// Two blocks are in turn: the one before the last is answered each so long, and acknowledged before.
	two := func(each time.Duration, block int64, trough float64) func(time.Duration) (int64, int64, int64) {
		return func(t time.Duration) (int64, int64, int64) {
			n := int64(t / each)
			gone := int64(float64(t%each) / float64(each) * 2 * (1 - trough) * float64(block))
			return 2*block - gone, n*block + gone, n
		}
	}
	// The same, and each response is announced 60 ms before.
	twice := func(each time.Duration, block int64) func(time.Duration) (int64, int64, int64) {
		return func(t time.Duration) (int64, int64, int64) {
			inFlight, acked, _ := two(each, block, 0.5)(t)
			return inFlight, acked, 84*int64(t/each) + 77*int64((t+60*ms)/each)
		}
	}
	application := verdict.Verdict{Limiter: verdict.Application, Shares: verdict.Shares{verdict.Application: 1}}
	half := verdict.Verdict{Limiter: verdict.Mixed, Shares: verdict.Shares{verdict.Application: 0.4,
		verdict.SendBuffer: 0.4, verdict.Sender: 0.2}}
	lossy := verdict.Verdict{Limiter: verdict.Mixed, Shares: verdict.Shares{verdict.Application: 0.4,
		verdict.Congestion: 0.6},
		Candidates: []verdict.Name{verdict.Congestion, verdict.Application}}
	queues := verdict.Verdict{Limiter: verdict.Mixed, Shares: verdict.Shares{verdict.Bottleneck: 0.42,
		verdict.Application: 0.3, verdict.Sender: 0.28}, Candidates: []verdict.Name{verdict.Bottleneck, verdict.Application}}
	delivered := func(w *watchedDirection, bps float64) *watchedDirection {
		for i := range w.Samples {
			w.Samples[i].DeliveryBps = bps
		}
		return w
	}
	either := verdict.Verdict{Limiter: verdict.Sender, Shares: verdict.Shares{verdict.Sender: 0.9, verdict.Unknown: 0.1}}
	buffer := verdict.Verdict{Limiter: verdict.SendBuffer, Shares: verdict.Shares{verdict.SendBuffer: 1}}
	link := verdict.Verdict{Limiter: verdict.Bottleneck, Shares: verdict.Shares{verdict.Bottleneck: 1}}
	for _, c := range []struct {
		name    string
		w       *watchedDirection
		from    verdict.Verdict
		limiter verdict.Name
		subtype string
	}{
		{"blocks over 80 ms", talk(80*ms, blocks(85*ms, 32000)), application, verdict.Application, verdict.RequestResponse},
		{"blocks that fill the buffer", talk(200*ms, blocks(205*ms, 1e5)), buffer, verdict.Application,
			verdict.RequestResponse},
		{"two blocks in turn, as by SMB", talk(200*ms, two(207*ms, 8<<20, 0.5)), half, verdict.Application,
			verdict.RequestResponse},
		{"two blocks in turn that fill the link at times", delivered(talk(200*ms, two(197*ms, 8<<20, 0.5)), 480e6), queues,
			verdict.Application, verdict.RequestResponse},
		{"two blocks in turn that fill the link", delivered(talk(200*ms, two(197*ms, 8<<20, 0.5)), 345e6), queues,
			verdict.Mixed, ""},
		{"two blocks in turn, each answered twice", talk(200*ms, twice(207*ms, 8<<20)), half, verdict.Application,
			verdict.RequestResponse},
		{"two blocks in turn, and loss", talk(200*ms, two(207*ms, 8<<20, 0.5)), lossy, verdict.Mixed, ""},
		{"a send buffer of two answered blocks", talk(200*ms, two(207*ms, 8<<20, 0.7)), buffer, verdict.SendBuffer, ""},
		{"blocks with long pauses", talk(80*ms, blocks(400*ms, 32000)), application, verdict.Application, ""},
		{"exchanges that samples miss", talk(20*ms, blocks(20*ms, 32000)), application, verdict.Application, ""},
		{"a window of its own", talk(100*ms, level(2<<20, 100)), either, verdict.Application, verdict.ProgramWindow},
		{"a level, and no messages", talk(100*ms, level(2<<20, 0)), either, verdict.Sender, ""},
		{"a level, and data both ways", talk(100*ms, level(2<<20, 1<<18)), either, verdict.Sender, ""},
		{"a level at the receiver's window", talk(100*ms, level(8<<20, 100)), either, verdict.Sender, ""},
		{"a full link", talk(80*ms, blocks(85*ms, 32000)), link, verdict.Bottleneck, ""},
	} {
		c.from.Evidence = []verdict.Evidence{{Limiter: c.from.Limiter, Code: verdict.NothingToSend}}
		v := ownExchanges(c.w, c.from)
		if v.Limiter != c.limiter || v.Subtype != c.subtype {
			t.Errorf("%s: %s/%s, want %s/%s", c.name, v.Limiter, v.Subtype, c.limiter, c.subtype)
		}
		complete(t, v)
	}
	v := ownExchanges(talk(80*ms, blocks(80*ms, 32000)), application)
	if e := v.Evidence[0]; e.Code != verdict.WatchedExchanges || e.Values["block_bytes"] != 32000 ||
		e.Values["twice_bps"] < 6e6 {
		t.Errorf("%+v", e)
	}
}

// TestAnsweredBlocks checks that the other program is the limiter of blocks that each arrive a round trip after this
// end's response. Continuous data, data with holes and data by a slower clock stay unknown.
func TestAnsweredBlocks(t *testing.T) {
	const ms = time.Millisecond
	open := verdict.Unobserved(verdict.Evidence{Code: verdict.SenderUnseen}, verdict.Application, verdict.Congestion)
	for _, c := range []struct {
		name     string
		rtt      time.Duration
		each     time.Duration // an exchange
		answered float64
		holes    bool
		segments int64 // that this end sends for an exchange; 0: not known
		want     string
	}{
		{"blocks over 80 ms", 80 * ms, 90 * ms, 0.9, false, 0, verdict.RequestResponse},
		{"blocks over 200 ms", 200 * ms, 250 * ms, 0.8, false, 0, verdict.RequestResponse},
		{"a stream that is answered now and then", 80 * ms, 90 * ms, 0.1, false, 0, ""},
		{"with holes", 80 * ms, 90 * ms, 0.9, true, 0, ""},
		{"a program's own pauses", 80 * ms, 500 * ms, 0.9, false, 0, ""},
		{"responses that the program does not wait for", 200 * ms, 100 * ms, 0.9, false, 0, ""},
		{"exchanges that samples miss", 20 * ms, 22 * ms, 0.9, false, 0, ""},
		{"such exchanges by segments", 20 * ms, 22 * ms, 0.9, false, 1, verdict.RequestResponse},
		{"the same of 35 ms", 35 * ms, 45 * ms, 0.8, false, 1, verdict.RequestResponse},
		{"messages of a program that receives in bulk", 20 * ms, 2 * ms, 0.6, false, 1, ""},
		{"exchanges faster than a tick", 300 * time.Microsecond, 330 * time.Microsecond, 0.9, false, 1, ""},
		{"a slow server", 20 * ms, 48 * ms, 0.9, false, 1, ""},
	} {
		w := talk(c.rtt, func(t time.Duration) (int64, int64, int64) { return 0, 0, int64(t/c.each) * 32000 })
		w.Sends, w.Answered = false, c.answered
		w.DataSent = c.segments * int64(5*time.Second/c.each)
		for i := range w.Samples {
			s := &w.Samples[i]
			s.Sent = int64(s.At/c.each) * 100
			if c.holes {
				s.RcvOOOPack = int64(i / 10)
			}
		}
		v := answeredBlocks(w, open)
		if v.Subtype != c.want || v.Confidence == verdict.High {
			t.Errorf("%s: %s/%s, %v", c.name, v.Limiter, v.Subtype, v.Shares)
		}
		complete(t, v)
	}
}

// TestJudgeWatched_PartialSegmentNotNagle checks that a program with 2 MB in flight and a partial last segment that
// waits (port forwarding by ssh) is limited by its window, as data flows all the time. A program with waiting ends of
// requests, and nothing else sent meanwhile, is limited by Nagle's rule.
func TestJudgeWatched_PartialSegmentNotNagle(t *testing.T) {
	const window = 2_000_000
	for name, c := range map[string]struct {
		step, under int64
		want        verdict.Name
	}{
		"a channel":              {window / 4, window, verdict.Application},
		"requests of 20 kB each": {0, 20_000, verdict.NagleDelayedAck},
		"small requests":         {2000, 2000, verdict.NagleDelayedAck},
	} {
		w := &watchedDirection{Sends: true, Handshake: &transfer.Handshake{MSS: 1448}}
		w.Send.Granted = 4 << 20
		sent := int64(0)
		for i := range 100 {
			if sent += c.step; c.step == 0 && i%8 == 0 { // every other exchange of four samples is written
				sent += c.under
			}
			w.Samples = append(w.Samples, transfer.Sample{At: time.Duration(i) * 50 * time.Millisecond,
				Have: transfer.HaveCwnd | transfer.HaveInFlight | transfer.HaveNotSent | transfer.HaveSendWnd | transfer.HaveRTT |
					transfer.HaveMinRTT | transfer.HaveAcked | transfer.HaveReceived | transfer.HaveLimits | transfer.HaveQueue,
				Sent: sent, Acked: max(sent-c.under, 0), Received: int64(i) * 36, InFlight: c.under, NotSent: 300,
				Queued: c.under + 300, Cwnd: 4 * window, SendWnd: 4 * window, Busy: time.Duration(i) * 50 * time.Millisecond,
				RTT: 200 * time.Millisecond, MinRTT: 199 * time.Millisecond})
		}
		if v := ownExchanges(w, judgeWatched(w)); v.Limiter != c.want {
			t.Errorf("%s: %s, %v", name, v.Limiter, v.Shares)
		}
	}
}

// TestKnownWindow_Receiver: 98 Mbit/s over 167 ms is an SSH channel's window of 2 MiB.
func TestKnownWindow_Receiver(t *testing.T) {
	const ms = time.Millisecond
	open := verdict.Unobserved(verdict.Evidence{Code: verdict.SenderUnseen}, verdict.Application, verdict.Bottleneck)
	ssh := func(bytes float64) bool { return bytes > 1.9e6 && bytes < 2.3e6 }
	for _, c := range []struct {
		name              string
		bps, later        float64 // in the first and in the second half
		base, rtt         time.Duration
		room, lost, spoke int64 // spoke: bytes that this end sends in each sample
		late              int64 // samples of 12 in which nothing comes
		known             func(float64) bool
		want              string
	}{
		{"a channel over 167 ms", 98e6, 98e6, 167 * ms, 168 * ms, 8 << 20, 0, 60, 0, ssh, verdict.ProgramWindow},
		{"a channel over 40 ms", 415e6, 410e6, 40 * ms, 41 * ms, 8 << 20, 0, 60, 0, ssh, verdict.ProgramWindow},
		{"half of it", 49e6, 49e6, 167 * ms, 168 * ms, 8 << 20, 0, 60, 0, ssh, ""},
		{"a rate that falls through it", 150e6, 46e6, 167 * ms, 168 * ms, 8 << 20, 0, 60, 0, ssh, ""},
		{"a channel of a busy host", 140e6, 140e6, 120 * ms, 124 * ms, 8 << 20, 0, 60, 3, ssh, verdict.ProgramWindow},
		{"a channel that is idle most of the time", 140e6, 140e6, 120 * ms, 124 * ms, 8 << 20, 0, 60, 7, ssh, ""},
		{"more at times", 220e6, 220e6, 120 * ms, 124 * ms, 8 << 20, 0, 60, 4, ssh, ""},
		{"with a queue", 98e6, 98e6, 167 * ms, 230 * ms, 8 << 20, 0, 60, 0, ssh, ""},
		{"with losses", 98e6, 98e6, 167 * ms, 168 * ms, 8 << 20, 1, 60, 0, ssh, ""},
		{"without messages", 98e6, 98e6, 167 * ms, 168 * ms, 8 << 20, 0, 0, 0, ssh, ""},
		{"at this end's window", 98e6, 98e6, 167 * ms, 168 * ms, 2 << 20, 0, 60, 0, ssh, ""},
		{"no program known", 98e6, 98e6, 167 * ms, 168 * ms, 8 << 20, 0, 60, 0, nil, ""},
	} {
		w := &watchedDirection{}
		received := 0.0
		for i := range int64(101) {
			rate := c.bps
			if i > 50 {
				rate = c.later
			}
			w.Samples = append(w.Samples, transfer.Sample{At: time.Duration(i) * 50 * ms, MinRTT: c.base, RTT: c.rtt,
				Have: transfer.HaveReceived | transfer.HaveMinRTT | transfer.HaveRTT | transfer.HaveReceiveWnd,
				Sent: i * c.spoke, Received: int64(received), ReceiveWnd: c.room, RcvOOOPack: i * c.lost})
			if i%12 >= c.late {
				received += rate / 8 * 0.05
			}
		}
		v := knownWindow(w, open, c.known)
		if v.Subtype != c.want || v.Confidence == verdict.High ||
			c.late > 0 && v.Confidence != verdict.Low {
			t.Errorf("%s: %s/%s %s %v", c.name, v.Limiter, v.Subtype, v.Confidence, v.Evidence)
		}
		complete(t, v)
	}
}
