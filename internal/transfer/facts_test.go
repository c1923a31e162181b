package transfer

import (
	"math"
	"testing"
	"time"
)

// TestResult_FactsOfEitherEnd derives each value from the reports of either end, or of none.
func TestResult_FactsOfEitherEnd(t *testing.T) {
	ms := time.Millisecond
	sender := &End{Streams: []Stream{{First: 0, Last: 100 * ms, SendBuffer: Buffer{Effective: 5000}, Samples: []Sample{
		{At: 10 * ms, Have: HaveRTT | HaveMinRTT | HaveSendWnd | HaveRetrans, RTT: 30 * ms, MinRTT: 20 * ms, SendWnd: 90_000},
		{At: 60 * ms, Have: HaveRTT | HaveMinRTT | HaveSendWnd | HaveRetrans, RTT: 50 * ms, MinRTT: 19 * ms, SendWnd: 40_000},
		{At: 200 * ms, Have: HaveSendWnd | HaveRetrans, SendWnd: 70_000},
	}}}}
	receiver := &End{Streams: []Stream{{ReceiveBuffer: Buffer{Effective: 64_000},
		Samples: []Sample{{Have: HaveRTT, RTT: 25 * ms}}}}}
	for name, c := range map[string]struct {
		r                 Result
		least, mean       time.Duration
		offered, inFlight int
		lossless          bool
	}{
		"both ends": {Result{Spec: Spec{Direction: Up}, Near: sender, Far: receiver}, 19 * ms,
			40 * ms, 40_000, 5000, true},
		"the receiver alone, without a minimum": {Result{Spec: Spec{Direction: Down}, Near: receiver}, 25 * ms, 0, 64_000, 0,
			false},
		"nobody":                 {Result{Spec: Spec{Direction: Up}}, 0, 0, 0, 0, false},
		"an end without streams": {Result{Spec: Spec{Direction: Up}, Near: &End{}}, 0, 0, 0, 0, false},
	} {
		r := &c.r
		if r.MinRTT() != c.least || r.MeanRTT() != c.mean || r.OfferedWindow() != c.offered ||
			r.MaxInFlight() != c.inFlight ||
			r.Lossless() != c.lossless {
			t.Errorf("%s: least %v, mean %v, offered %d, in flight %d, lossless %v", name, r.MinRTT(), r.MeanRTT(),
				r.OfferedWindow(), r.MaxInFlight(), r.Lossless())
		}
	}
	if (&Result{Spec: Spec{Direction: Up}, Near: sender, Far: receiver}).CountingEnd() != receiver {
		t.Error("the receiver's count is the one")
	}
}

// TestLoadedRTT_WeighsSamplesByTime has a first half second that is sampled eight times as often.
func TestLoadedRTT_WeighsSamplesByTime(t *testing.T) {
	var s Stream
	s.Last = 2 * time.Second
	for at := time.Duration(0); at < 500*time.Millisecond; at += 5 * time.Millisecond {
		s.Samples = append(s.Samples, Sample{At: at, Have: HaveRTT, RTT: 10 * time.Millisecond})
	}
	for at := 500 * time.Millisecond; at <= s.Last; at += 40 * time.Millisecond {
		s.Samples = append(s.Samples, Sample{At: at, Have: HaveRTT, RTT: 100 * time.Millisecond})
	}
	if got := (&End{Streams: []Stream{s}}).LoadedRTT(0); got != 100*time.Millisecond {
		t.Errorf("%v, want 100 ms", got)
	}
	if got := (&End{Streams: []Stream{{}}}).LoadedRTT(0); got != 0 {
		t.Errorf("%v of no samples", got)
	}
}

// TestRetransmitRatio has kernels that count bytes, segments only, or neither.
func TestRetransmitRatio(t *testing.T) {
	for _, c := range []struct {
		name   string
		sample Sample
		want   float64 // -1: not known
	}{
		{"by bytes", Sample{Have: HaveRetrans, Retransmitted: 30, RetransmittedBytes: 43e3, Sent: 100e3, Acked: 57e3}, 0.43},
		{"by segments", Sample{Have: HaveRetrans, Retransmitted: 10, Acked: 90e3}, 0.1},
		{"nothing was lost", Sample{Have: HaveRetrans, Acked: 90e3}, 0},
		{"the kernel does not count", Sample{Acked: 90e3}, -1},
	} {
		r := &Result{Spec: Spec{Direction: Up}, Near: &End{Streams: []Stream{{Samples: []Sample{c.sample},
			Handshake: &Handshake{MSS: 1000}}}}}
		if got, known := r.RetransmitRatio(); known != (c.want >= 0) || known && math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %.3f, %t", c.name, got, known)
		}
	}
}
