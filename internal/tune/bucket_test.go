package tune

import (
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// policedTrial is a transfer over a line in bit/s with a policer's rate and bucket. It loses a segment as the line's
// queue fills, and from the time on that the bucket is empty.
func policedTrial(s Setup, line, rate, bucket float64, length time.Duration) Trial {
	const step, rtt, mss = 10 * time.Millisecond, 30 * time.Millisecond, 1448
	stream := transfer.Stream{Handshake: &transfer.Handshake{MSS: mss}, Last: length}
	for at := step; at <= length; at += step {
		arrived := int64(min(line*at.Seconds(), 8*bucket+rate*at.Seconds()) / 8)
		sample := transfer.Sample{At: at, Acked: arrived, RTT: rtt, MinRTT: rtt,
			Have: transfer.HaveAcked | transfer.HaveRetrans | transfer.HaveRTT | transfer.HaveMinRTT}
		if at > 5*step {
			sample.Retransmitted = 1
		}
		if line*at.Seconds() > 8*bucket+rate*at.Seconds() {
			sample.Retransmitted = 4 * int64(at/step)
		}
		stream.Samples = append(stream.Samples, sample)
		stream.Bytes = arrived
	}
	r := &transfer.Result{Spec: transfer.Spec{Direction: transfer.Up}, Complete: true,
		Near: &transfer.End{Streams: []transfer.Stream{stream}}}
	return Trial{Setup: s, Automatic: s == Setup{}, Limiter: verdict.Congestion, Goodput: float64(stream.Bytes) * 8 /
		length.Seconds(), result: r}
}

// TestTrial_LeavesOutTheBucket checks the rate after losses where a policer lets much through at first, and that
// goodputs are reduced to it.
func TestTrial_LeavesOutTheBucket(t *testing.T) {
	for _, c := range []struct{ line, rate, bucket float64 }{
		{100e6, 20e6, 500e3},
		{200e6, 60e6, 2e6},
		{50e6, 5e6, 100e3},
		{1e9, 300e6, 8e6},
	} {
		const length = 1600 * time.Millisecond
		o := observations{path: &pathModel{}, trials: []Trial{policedTrial(Setup{}, c.line, c.rate, c.bucket, length),
			policedTrial(Setup{}, c.line, c.rate, c.bucket, policedRun),
			policedTrial(Setup{Congestion: "bbr"}, 0.7*c.line, c.rate, c.bucket, length),
			policedTrial(Setup{Streams: 4}, c.line, c.rate, c.bucket, length*3/4)}}
		if got := o.withoutBucket(); math.Abs(got/c.rate-1) > 0.02 {
			t.Errorf("%+v: %.4g bit/s after losses", c, got)
		}
		if o.trials[0].Goodput < 1.05*c.rate {
			t.Fatalf("%+v: %.4g bit/s with the bucket", c, o.trials[0].Goodput)
		}
		o.leaveOutBuckets(0.97 * c.rate)
		checkPolicer(t, &o, c.rate, c.bucket)
		for i := range o.trials {
			if got := o.trials[i].Goodput; math.Abs(got/c.rate-1) > 0.02 {
				t.Errorf("%+v: %s: %.4g bit/s", c, o.trials[i].Setup, got)
			}
		}
	}
}

// checkPolicer checks the evidence of a policer with this rate in bit/s and this bucket in bytes.
func checkPolicer(t *testing.T, o *observations, rate, bucket float64) {
	t.Helper()
	const control = "cubic"
	*o.path = pathModel{Path: Path{CapacityBps: rate, BottleneckBps: 1500. / 1448 * rate, RTT: 80 * time.Millisecond,
		MSS: 1448, Window: 100 * 1448}}
	share := 0.1
	m := Measured{Retransmits: &share, Verdict: verdict.Verdict{Limiter: verdict.Congestion, Subtype: verdict.Policer,
		Evidence: []verdict.Evidence{{Code: verdict.PolicedRate, Values: verdict.Values{"retransmitted_ratio": 0.03}}}}}
	o.describePolicer(&m, control)
	values := m.Verdict.Evidence[0].Values
	const headers = 1500. / 1448
	if got := values["rate_bps"] / headers; m.Verdict.Evidence[0].Code != verdict.PolicerBucket ||
		math.Abs(got/rate-1) > 0.03 {
		t.Errorf("%.4g bit/s: %+v", rate, m.Verdict.Evidence)
	}
	if got := values["bucket_bytes"] / headers; math.Abs(got/bucket-1) > 0.1 {
		t.Errorf("%.4g bit/s: a bucket of %.4g bytes, not %.4g", rate, bucket, got)
	}
	needed := model.PolicerBucket(rate, o.path.RTT, o.path.MSS, control)
	if got := values["needed_bytes"] / headers; needed > 1.1*bucket && math.Abs(got/needed-1) > 0.1 ||
		needed < 0.9*bucket && got != 0 {
		t.Errorf("%.4g bit/s: needs %.4g bytes, not %.4g", rate, needed, got)
	}
	for _, e := range m.Verdict.Evidence {
		if got := e.Values["retransmitted_ratio"]; got != share {
			t.Errorf("%s: %.2f of the bytes were retransmitted, not %.2f", e.Code, got, share)
		}
	}
	m.Verdict = verdict.Verdict{Limiter: verdict.Congestion}
	if o.describePolicer(&m, control); m.Verdict.Evidence != nil {
		t.Errorf("without a policer: %+v", m.Verdict.Evidence)
	}
}

// TestCarries_Overfilled checks that a bucket's rate is no capacity where a control that ignores losses overfills the
// path and no run comes near it.
func TestCarries_Overfilled(t *testing.T) {
	const length = 1600 * time.Millisecond
	for control, want := range map[string]float64{lossBlind: 69e6, "reno": 149e6} {
		before := policedTrial(Setup{}, 200e6, 60e6, 2e6, length)
		other := policedTrial(Setup{Congestion: control}, 200e6, 60e6, 2e6, length)
		before.Goodput = 61e6
		other.Goodput = 69e6
		l := looped(Path{CapacityBps: 149e6, RTT: 3e7, MSS: 1448}, before, before, other)
		l.seen.best = 69e6
		if l.seen.carries(true); l.path.CapacityBps != want {
			t.Errorf("%s: carries %.4g", control, l.path.CapacityBps)
		}
	}
}
