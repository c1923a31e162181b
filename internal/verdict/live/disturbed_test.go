package live

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestJudge_DisturbancesLowerConfidence checks that each disturbance lowers the confidence by one step and appears in
// the evidence.
func TestJudge_DisturbancesLowerConfidence(t *testing.T) {
	for _, c := range []struct {
		name  string
		with  func(*transfer.Result)
		level verdict.Confidence
		code  verdict.Code // "" none
		key   string
		value float64
	}{
		{"nothing", func(*transfer.Result) {}, verdict.High, "", "", 0},
		{"another test for half of the time", func(r *transfer.Result) {
			r.Far.ConcurrentTests = &transfer.ConcurrentTests{Tests: 2, Time: 5 * time.Second}
		}, verdict.Medium, verdict.ConcurrentTests, "tests", 2},
		{"another test for a moment", func(r *transfer.Result) {
			r.Far.ConcurrentTests = &transfer.ConcurrentTests{Tests: 1, Time: 200 * ms}
		}, verdict.High, verdict.ConcurrentTests, "beside_s", 0.2},
		{"the receiver's clock was set back", func(r *transfer.Result) { r.Far.ClockStep = -2 * time.Second },
			verdict.Medium, verdict.ClockTrouble, "receiver_step_s", -2},
		{"a clock that was set by next to nothing", func(r *transfer.Result) { r.Near.ClockStep = 5 * ms }, verdict.High, "",
			"", 0},
		{"the far end's clock is slow", func(r *transfer.Result) { r.ClockDrift = -0.01 }, verdict.Medium,
			verdict.ClockTrouble, "drift_ratio", -0.01},
		{"a quartz", func(r *transfer.Result) { r.ClockDrift = 0.0002 }, verdict.High, "", "", 0},
	} {
		r := steady(20e6, 90*ms, func(i int, s, _ *transfer.Sample) { s.MinRTT = 40 * ms })
		r.Far.Streams[0].Bytes = r.Far.Streams[0].Samples[199].Received
		c.with(r)
		v := Judge(r)
		if v.Limiter != verdict.Bottleneck || v.Confidence != c.level {
			t.Errorf("%s: %s, %s; want %s", c.name, v.Limiter, v.Confidence, c.level)
		}
		last := v.Evidence[len(v.Evidence)-1]
		reported := last.Limiter == verdict.Unknown
		if reported != (c.code != "") || reported && (last.Code != c.code || last.Values[c.key] != c.value) {
			t.Errorf("%s: %+v", c.name, last)
		}
	}
}

// TestJudge_DisturbancesOfReceiverAlone checks that a receiver alone reports its own disturbances.
func TestJudge_DisturbancesOfReceiverAlone(t *testing.T) {
	r := steady(4e6, 40*ms, func(i int, s, r *transfer.Sample) {
		r.Queued, r.ReceiveWnd, r.Paused, r.Blocked = 100000, 2000, s.At*9/10, 0
	})
	r.Near = nil
	r.Far.ConcurrentTests = &transfer.ConcurrentTests{Tests: 1, Time: 9 * time.Second}
	v := Judge(r)
	if v.Limiter != verdict.ReceiverApplication || v.Confidence != verdict.Medium {
		t.Errorf("%s, %s: %v", v.Limiter, v.Confidence, v.Evidence)
	}
}

// TestJudge_LossOnStarvedHost checks that loss while a host waits for a core is not attributed to the path, unless
// as much is lost while it runs.
func TestJudge_LossOnStarvedHost(t *testing.T) {
	losing := func(starvedUntil int) *transfer.Result {
		var delay int64
		r := steady(10e6, 40*ms, func(i int, s, _ *transfer.Sample) {
			lost := int64(i)
			if i <= starvedUntil {
				delay++
			}
			saw := int64(math.Abs(math.Sin(float64(i)/25)) * 2e6)
			s.Acked, s.Sent, s.DeliveryBps = s.Acked+saw, s.Sent+saw, 20e6
			s.Retransmitted, s.RetransmittedBytes = lost, lost*1448
			s.RunqueueWait = time.Duration(delay) * 45 * ms
		})
		r.Near.CPU = &transfer.CPU{Wall: 10 * time.Second, RunqueueWait: float64(delay) * 0.0045}
		return r
	}
	for _, c := range []struct {
		name       string
		result     *transfer.Result
		limiter    verdict.Name
		confidence verdict.Confidence
	}{
		{"no core all the time", losing(200), verdict.Unknown, verdict.Low},
		{"a core at the end, and loss then too", losing(150), verdict.Congestion, verdict.Low},
		{"a core for most of the time", losing(60), verdict.Congestion, verdict.Medium},
		{"always a core", losing(0), verdict.Congestion, verdict.High},
	} {
		v := Judge(c.result)
		if v.Limiter != c.limiter || v.Confidence != c.confidence {
			t.Errorf("%s: %s, %s; want %s, %s: %v %v", c.name, v.Limiter, v.Confidence, c.limiter, c.confidence, v.Shares,
				v.Evidence)
		}
		if c.limiter == verdict.Unknown && (!slices.Contains(v.Candidates, verdict.Congestion) ||
			!slices.Contains(v.Candidates, verdict.CPU) || v.Evidence[0].Code != verdict.LossWithoutCPU) {
			t.Errorf("%s: %v, %v", c.name, v.Candidates, v.Evidence)
		}
	}
}
