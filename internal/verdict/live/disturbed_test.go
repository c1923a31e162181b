package live

import (
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
			r.Far.Beside = &transfer.Beside{Tests: 2, Time: 5 * time.Second}
		}, verdict.Medium, verdict.TestsBeside, "tests", 2},
		{"another test for a moment", func(r *transfer.Result) {
			r.Far.Beside = &transfer.Beside{Tests: 1, Time: 200 * ms}
		}, verdict.High, verdict.TestsBeside, "beside_s", 0.2},
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
	r.Far.Beside = &transfer.Beside{Tests: 1, Time: 9 * time.Second}
	v := Judge(r)
	if v.Limiter != verdict.ReceiverApplication || v.Confidence != verdict.Medium {
		t.Errorf("%s, %s: %v", v.Limiter, v.Confidence, v.Evidence)
	}
}
