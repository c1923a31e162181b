package transfer

import (
	"math"
	"testing"
	"time"
)

// delivering is a receiver's view of a transfer that follows rate(t) bytes a second.
func delivering(d, rtt time.Duration, rate func(t float64) float64) *Result {
	const step = time.Millisecond
	var s Stream
	sum := 0.0
	for t := time.Duration(0); t <= d; t += step {
		if t%(10*time.Millisecond) == 0 {
			s.Samples = append(s.Samples, Sample{At: t, Have: HaveReceived | HaveRTT, Received: int64(sum), RTT: rtt})
		}
		sum += rate(t.Seconds()) * step.Seconds()
	}
	s.Last, s.Bytes = d, int64(sum)
	return &Result{Spec: Spec{Direction: Up}, Far: &End{Streams: []Stream{s}}, Complete: true}
}

func TestStartup(t *testing.T) {
	doubling := func(rtt, top float64) func(float64) float64 {
		return func(t float64) float64 { return min(top, 14600/rtt*math.Exp2(math.Floor(t/rtt))) }
	}
	for name, c := range map[string]struct {
		result *Result
		ok     bool
		from   time.Duration
		to     time.Duration
		steady float64
	}{
		"slow start to 100 Mbit/s over 100 ms": {delivering(5*time.Second, 100*time.Millisecond, doubling(0.1, 12.5e6)), true,
			500 * time.Millisecond, 800 * time.Millisecond, 100e6},
		"flat from the first byte": {delivering(2*time.Second, 10*time.Millisecond, func(float64) float64 { return 1e6 }),
			true,
			0, 10 * time.Millisecond, 8e6},
		"never settles": {delivering(time.Second, 100*time.Millisecond,
			func(t float64) float64 { return 1e5 * math.Exp2(t*10) }), false,
			0, 0, 0},
		"nothing received": {&Result{Spec: Spec{Direction: Up}, Far: &End{}}, false, 0, 0, 0},
	} {
		got, ok := c.result.Startup()
		if ok != c.ok || got.End < c.from || got.End > c.to || math.Abs(got.SteadyBps-c.steady) > 0.03*c.steady {
			t.Errorf("%s: %+v, %v; want an end in %v to %v and %v bit/s", name, got, ok, c.from, c.to, c.steady)
		}
	}
}

// On a modem few segments arrive in a second: six of them take the time of five, because the
// first was there when the time began.
func TestSteadyRateOfFewSegments(t *testing.T) {
	const segment = 1460 // bytes
	line := 62293.0      // bit/s
	gap := time.Duration(segment * 8 / line * float64(time.Second))
	s := Stream{Opening: segment, Bytes: 6 * segment, Last: 5 * gap}
	for i := range int64(5) {
		s.Samples = append(s.Samples, Sample{At: time.Duration(i) * gap, Have: HaveReceived | HaveRTT,
			Received: (i + 1) * segment, RTT: 30 * time.Millisecond})
	}
	r := &Result{Spec: Spec{Direction: Up}, Far: &End{Streams: []Stream{s}}, Complete: true}
	if got, ok := r.Startup(); !ok || math.Abs(got.SteadyBps-line) > 0.02*line {
		t.Errorf("%+v, %v; the line carries %.0f bit/s", got, ok, line)
	}
}
