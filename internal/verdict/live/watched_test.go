package live

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// watchedFrom returns an end's first stream as a watcher sees it, from a moment on.
func watchedFrom(r *transfer.Result, end *transfer.End, from time.Duration) *watchedDirection {
	s := &end.Streams[0]
	w := &watchedDirection{Sends: end == r.Sender(), Congestion: s.Congestion, Handshake: s.Handshake, Send: s.SendBuffer,
		Receive: s.ReceiveBuffer}
	if w.Sends && end == r.Near {
		w.PacingBps = r.Spec.Near.PacingBps
	}
	for _, sample := range s.Samples {
		if sample.At >= max(from, s.First) && sample.At <= s.Last {
			sample.Have &^= transfer.HaveProgram
			sample.Program, sample.Blocked, sample.Paused, sample.Awaited, sample.RunqueueWait = 0, 0, 0, 0, 0
			w.Samples = append(w.Samples, sample)
		}
	}
	return w
}

// A window in the middle of each recorded transfer, without the program's clocks: nothing
// wrong with high confidence, and most are still named or left open between program and
// buffer.
func TestWatchedWindowsOfRecordedTransfers(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	right, open, wrong, n := 0, 0, 0, 0
	for _, name := range files {
		want, cause, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".json.gz"), "_")
		if want == "slow-start" || strings.Contains(cause, "four-streams") {
			continue // a window in its middle, or one of four, has no such cause
		}
		r := recorded(t, name)
		s := &r.Sender().Streams[0]
		v := judgeWatched(watchedFrom(r, r.Sender(), s.First+(s.Last-s.First)/4))
		complete(t, v)
		n++
		switch {
		case v.Limiter == verdict.Name(want):
			right++
		case v.Limiter == verdict.Sender || v.Limiter == verdict.Unknown || v.Limiter == verdict.Mixed:
			open++
		default:
			wrong++
			t.Logf("%s: %s, %s; %v", filepath.Base(name), v.Limiter, v.Confidence, v.Shares)
			if v.Confidence == verdict.High {
				t.Errorf("%s: %s with high confidence", filepath.Base(name), v.Limiter)
			}
		}
		complete(t, judgeWatched(watchedFrom(r, r.Receiver(), 0)))
	}
	t.Logf("%d right, %d open, %d wrong of %d", right, open, wrong, n)
	if wrong > n/10 {
		t.Errorf("%d of %d are wrong", wrong, n)
	}
}

func TestWatchedTooLittle(t *testing.T) {
	for _, w := range []watchedDirection{{}, {Sends: true}, {Sends: true, Samples: make([]transfer.Sample, 1)},
		{Samples: make([]transfer.Sample, 2)}} {
		if v := judgeWatched(&w); v.Limiter != verdict.Unknown || v.Confidence != verdict.Low || len(v.Candidates) == 0 {
			t.Errorf("%+v", v)
		}
	}
}

// Counters of a connection that has lived long do not speak of the window.
func TestWatchedCountsFromTheWindowOn(t *testing.T) {
	r := steady(20e6, 90*ms, func(i int, s, r *transfer.Sample) {
		s.MinRTT = 40 * ms
		s.Retransmitted, s.RetransmittedBytes, s.Sent, s.Acked = 1e6, 1448e6, s.Sent+9e9, s.Acked+9e9-1448e6
		s.Busy += time.Hour
		s.RwndLimited = time.Hour
	})
	if v := judgeWatched(watchedFrom(r, r.Near, 2*time.Second)); v.Limiter != verdict.Bottleneck {
		t.Errorf("%s %v %v", v.Limiter, v.Shares, v.Evidence)
	}
}

// TestJudgeWatched_PacedProgramNotNagleLimited checks a program that paces its writes and so leaves less than a
// segment waiting for an acknowledgement. Without responses from the peer the program loses no time by that.
func TestJudgeWatched_PacedProgramNotNagleLimited(t *testing.T) {
	const rtt, every = 60 * ms, 160 * ms
	for _, c := range []struct {
		name     string
		answered bool
		want     []verdict.Name
	}{
		{"responses", true, []verdict.Name{verdict.NagleDelayedAck}},
		{"no responses", false, []verdict.Name{verdict.Application, verdict.Sender}},
	} {
		w := &watchedDirection{Sends: true, Congestion: "cubic", Handshake: &transfer.Handshake{MSS: 1448}}
		for at := time.Duration(0); at <= 5*time.Second; at += 50 * ms {
			n := int64(at / every)
			s := transfer.Sample{At: at, RTT: rtt, MinRTT: rtt, Cwnd: 200_000, SendWnd: 1 << 20, InFlight: 2000, NotSent: 700,
				Busy: at, Acked: n * 3000, Sent: n*3000 + 2000,
				Have: transfer.HaveRTT | transfer.HaveMinRTT | transfer.HaveCwnd | transfer.HaveSendWnd | transfer.HaveInFlight |
					transfer.HaveNotSent | transfer.HaveLimits | transfer.HaveAcked | transfer.HaveRetrans |
					transfer.HaveRecovery | transfer.HaveReceived}
			if at%every > every*2/3 {
				s.NotSent = 0
			}
			if c.answered {
				s.Received = n
			}
			w.Samples = append(w.Samples, s)
		}
		if v := judgeWatched(w); !slices.Contains(c.want, v.Limiter) {
			t.Errorf("%s: %s, %v", c.name, v.Limiter, v.Shares)
		}
	}
}

// A program that reads 16 KiB at a time at its own pace has its host acknowledge a dozen segments as it reads:
// the round trip grows by that, with a full window, as it does behind a full link. A receiver that
// acknowledges every second segment leaves only the link.
func TestAcknowledgedAsTheProgramReads(t *testing.T) {
	slow := func(rtt time.Duration, segments int64, full func(at time.Duration) time.Duration) *watchedDirection {
		const bps, window = 10e6, 65536
		r := steady(bps, rtt, func(i int, s, r *transfer.Sample) {
			s.SendWnd, s.Cwnd, s.InFlight, s.MinRTT = window, 118*1448, window, 40*ms
			s.RwndLimited = full(s.At)
			s.SegmentsIn, s.Have = s.Acked/1448/segments, s.Have|transfer.HaveSegmentsIn
		})
		return watchedFrom(r, r.Sender(), 2*time.Second)
	}
	always := func(at time.Duration) time.Duration { return at }
	for _, c := range []struct {
		name       string
		w          *watchedDirection
		limiter    verdict.Name
		candidates []verdict.Name
	}{
		{"a window's worth a round trip", slow(52*ms, 9, always), verdict.ReceiverWindow,
			[]verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}},
		{"somewhat longer", slow(62*ms, 9, always), verdict.Unknown,
			[]verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication, verdict.Bottleneck}},
		{"far longer", slow(120*ms, 9, always), verdict.Bottleneck, nil},
		{"every second segment", slow(62*ms, 2, always), verdict.Bottleneck, nil},
		{"the window is hardly ever full", slow(62*ms, 9, func(at time.Duration) time.Duration { return at / 10 }),
			verdict.Bottleneck, nil},
	} {
		v := judgeWatched(c.w)
		complete(t, v)
		if v.Limiter != c.limiter || !slices.Equal(v.Candidates, c.candidates) || v.Confidence == verdict.High {
			t.Errorf("%s: %s, %s, %v; %v", c.name, v.Limiter, v.Confidence, v.Candidates, v.Evidence)
		}
	}
}

// A congestion window that grows back from a loss before anybody looked is not in slow start, though its
// rate is the best that was seen. One that lost nothing is in slow start only below ssthresh.
func TestGrowingBackIsNotSlowStart(t *testing.T) {
	growing := func(lost, ssthresh int64) verdict.Verdict {
		grown := int64(0)
		r := steady(10e6, 200*ms, func(i int, s, r *transfer.Sample) {
			rate := int64(2e6 + float64(i)*60e3) // bit/s
			grown += rate / 8 / 20
			s.InFlight = rate / 8 * 200 / 1000
			s.Cwnd, s.Ssthresh, s.SendWnd, s.DeliveryBps = s.InFlight, ssthresh, 8<<20, float64(rate)
			s.Acked, s.Sent, s.Program, s.Retransmitted, s.RetransmittedBytes = grown, grown, grown, lost, lost*1448
		})
		return judgeWatched(watchedFrom(r, r.Sender(), 2*time.Second))
	}
	if v := growing(3, 14480); v.Limiter != verdict.Congestion {
		t.Errorf("after a loss: %s, %s; %v", v.Limiter, v.Confidence, v.Evidence)
	}
	if v := growing(0, 0); v.Limiter != verdict.SlowStart {
		t.Errorf("without one: %s, %s; %v", v.Limiter, v.Confidence, v.Evidence)
	}
	if v := growing(0, 14480); v.Limiter != verdict.Congestion || v.Subtype != verdict.LowSsthresh {
		t.Errorf("above ssthresh without one: %s, %s; %v", v.Limiter, v.Confidence, v.Evidence)
	}
}
