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

// watchedFrom is what a watcher would have seen of an end's first stream, from a moment on.
func watchedFrom(r *transfer.Result, end *transfer.End, from time.Duration) Watched {
	s := &end.Streams[0]
	w := Watched{Sends: end == r.Sender(), Congestion: s.Congestion, Handshake: s.Handshake, Send: s.SendBuffer,
		Receive: s.ReceiveBuffer}
	if w.Sends && end == r.Near {
		w.PacingBps = r.Spec.Near.PacingBps
	}
	for _, sample := range s.Samples {
		if sample.At >= max(from, s.First) && sample.At <= s.Last {
			sample.Have &^= transfer.HaveProgram
			sample.Program, sample.Blocked, sample.Paused, sample.Awaited, sample.RunDelay = 0, 0, 0, 0, 0
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
		want, what, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".json.gz"), "_")
		if want == "slow-start" || strings.Contains(what, "four-streams") {
			continue // a window in its middle, or one of four, has no such cause
		}
		r := recorded(t, name)
		s := &r.Sender().Streams[0]
		v := JudgeWatched(watchedFrom(r, r.Sender(), s.First+(s.Last-s.First)/4))
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
		complete(t, JudgeWatched(watchedFrom(r, r.Receiver(), 0)))
	}
	t.Logf("%d right, %d open, %d wrong of %d", right, open, wrong, n)
	if wrong > n/10 {
		t.Errorf("%d of %d are wrong", wrong, n)
	}
}

func TestWatchedTooLittle(t *testing.T) {
	for _, w := range []Watched{{}, {Sends: true}, {Sends: true, Samples: make([]transfer.Sample, 1)},
		{Samples: make([]transfer.Sample, 2)}} {
		if v := JudgeWatched(w); v.Limiter != verdict.Unknown || v.Confidence != verdict.Low || len(v.Candidates) == 0 {
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
		s.ReceiveLimited = time.Hour
	})
	if v := JudgeWatched(watchedFrom(r, r.Near, 2*time.Second)); v.Limiter != verdict.Bottleneck {
		t.Errorf("%s %v %v", v.Limiter, v.Shares, v.Evidence)
	}
}

// A program that paces itself leaves less than a segment to wait for an acknowledgement as well: as long as
// nobody answers, it loses nothing by that.
func TestWhoPacesItselfIsNotHeldBack(t *testing.T) {
	const rtt, every = 60 * ms, 160 * ms
	for _, c := range []struct {
		name     string
		answered bool
		want     []verdict.Name
	}{
		{"answers", true, []verdict.Name{verdict.NagleDelayedAck}},
		{"no answers", false, []verdict.Name{verdict.Application, verdict.Sender}},
	} {
		w := Watched{Sends: true, Congestion: "cubic", Handshake: &transfer.Handshake{MSS: 1448}}
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
		if v := JudgeWatched(w); !slices.Contains(c.want, v.Limiter) {
			t.Errorf("%s: %s, %v", c.name, v.Limiter, v.Shares)
		}
	}
}
