package live

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// What disturbed a measurement takes one step of confidence each, and is told.
func TestDisturbancesMakeLessSure(t *testing.T) {
	for _, c := range []struct {
		what  string
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
			t.Errorf("%s: %s, %s; want %s", c.what, v.Limiter, v.Confidence, c.level)
		}
		last := v.Evidence[len(v.Evidence)-1]
		if told := last.Limiter == verdict.Unknown; told != (c.code != "") || told && (last.Code != c.code ||
			last.Values[c.key] != c.value) {
			t.Errorf("%s: %+v", c.what, last)
		}
	}
}

// The receiver alone tells of its own.
func TestDisturbancesAtTheReceiverAlone(t *testing.T) {
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

// What is lost while a host has no core is no path's loss, unless as much is lost while it has one.
func TestLossOfAStarvedHost(t *testing.T) {
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
		what       string
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
			t.Errorf("%s: %s, %s; want %s, %s: %v %v", c.what, v.Limiter, v.Confidence, c.limiter, c.confidence, v.Shares,
				v.Evidence)
		}
		if c.limiter == verdict.Unknown && (!slices.Contains(v.Candidates, verdict.Congestion) ||
			!slices.Contains(v.Candidates, verdict.CPU) || v.Evidence[0].Code != verdict.LossWithoutCPU) {
			t.Errorf("%s: %v, %v", c.what, v.Candidates, v.Evidence)
		}
	}
}
