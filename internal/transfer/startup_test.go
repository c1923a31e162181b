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

// TestStartup_FewSegments has a modem's few segments a second. Six of them take the time of five, because the first had
// arrived at the start.
func TestStartup_FewSegments(t *testing.T) {
	const segment = 1460 // bytes
	line := 62293.0      // bit/s
	gap := time.Duration(segment * 8 / line * float64(time.Second))
	s := Stream{FirstReadBytes: segment, Bytes: 6 * segment, Last: 5 * gap}
	for i := range int64(5) {
		s.Samples = append(s.Samples, Sample{At: time.Duration(i) * gap, Have: HaveReceived | HaveRTT,
			Received: (i + 1) * segment, RTT: 30 * time.Millisecond})
	}
	r := &Result{Spec: Spec{Direction: Up}, Far: &End{Streams: []Stream{s}}, Complete: true}
	if got, ok := r.Startup(); !ok || math.Abs(got.SteadyBps-line) > 0.02*line {
		t.Errorf("%+v, %v; the line carries %.0f bit/s", got, ok, line)
	}
}

// slowLink returns a receiver's report of a transfer over a link that carries bps of payload in whole segments. The
// initial window has four; each one that arrives releases two more. Samples begin at phase after the first byte, and at
// most maxSamples are kept. full is the number of the segment after which the link is never idle.
func slowLink(bps float64, rtt time.Duration, segments int, phase time.Duration, maxSamples int) (r *Result, full int) {
	const segment = 1460
	gap := segment * 8 / bps
	arrivals := make([]float64, segments)
	for i, free := 0, 0.0; i < segments; i++ {
		if i >= 4 {
			if goes := arrivals[(i-4)/2] + rtt.Seconds(); goes > free {
				free, full = goes, i
			}
		}
		free += gap
		arrivals[i] = free
	}
	first := time.Duration(arrivals[0] * float64(time.Second))
	s := Stream{Handshake: &Handshake{MSS: segment}, First: first, FirstReadBytes: segment,
		Bytes: int64(segments) * segment,
		Last:  time.Duration(arrivals[segments-1] * float64(time.Second))}
	for at := phase; at < s.Last; {
		n := 0
		for n < segments && arrivals[n] <= at.Seconds() {
			n++
		}
		s.Samples = append(s.Samples, Sample{At: at, Have: HaveReceived | HaveRTT, Received: int64(n) * segment, RTT: rtt})
		switch { // engine's cadence
		case at < 500*time.Millisecond:
			at += 5 * time.Millisecond
		case at < 2*time.Second:
			at += 10 * time.Millisecond
		default:
			at += 40 * time.Millisecond
		}
	}
	s.Samples = Downsample(s.Samples, maxSamples)
	return &Result{Spec: Spec{Direction: Up}, Far: &End{Streams: []Stream{s}}, Complete: true}, full
}

// TestStartup_SlowLinks checks that the rate of slow links is within 2 % for any time and number of the samples.
func TestStartup_SlowLinks(t *testing.T) {
	trips := []time.Duration{time.Millisecond, 30 * time.Millisecond, 180 * time.Millisecond, 600 * time.Millisecond}
	for _, line := range []float64{14.4e3, 28.8e3, 33.6e3, 56e3, 64e3, 128e3, 256e3, 1e6} {
		for _, rtt := range trips {
			for _, segments := range []int{25, 60, 200} {
				for phase := range 4 {
					checkSlowLink(t, line, rtt, segments, time.Duration(phase)*37*time.Millisecond)
				}
			}
		}
	}
}

func checkSlowLink(t *testing.T, line float64, rtt time.Duration, segments int, phase time.Duration) {
	t.Helper()
	bps := line * 1460 / 1500
	for _, maxSamples := range []int{8192, max(segments*1460/4000, 24)} {
		r, full := slowLink(bps, rtt, segments, phase, maxSamples)
		if full > segments/8 {
			continue // most of such a run is slow start
		}
		got, ok := r.Startup()
		total, _ := r.Received()
		if ok && math.Abs(got.SteadyBps-bps) > 0.02*bps || !ok && math.Abs(total.Bps()-bps) > 0.02*bps {
			t.Errorf("%.0f bit/s, %v, %d segments, phase %v, %d samples: %.4f of the line's (%+v), all of it %.4f", line, rtt,
				segments, phase, maxSamples, got.SteadyBps/bps, got, total.Bps()/bps)
		}
	}
}

// TestStartup_SkipsHoles has holes at the end of slow start. The data behind a hole counts when the hole is filled, and
// shows no rate of the path.
func TestStartup_SkipsHoles(t *testing.T) {
	recovery := func(t float64) float64 {
		switch {
		case t < 0.5:
			return 1e5
		case t < 1.1:
			return 2.5e6
		}
		return 1.25e6
	}
	r := delivering(4*time.Second, 200*time.Millisecond, recovery)
	samples := r.Far.Streams[0].Samples
	for i := range samples {
		samples[i].Have |= HaveRcvOOOPack
		samples[i].RcvOOOPack = min(int64(i), 110)
	}
	if got, ok := r.Startup(); !ok || got.End < 1100*time.Millisecond || math.Abs(got.SteadyBps-10e6) > 0.01*10e6 {
		t.Errorf("%+v, %v", got, ok)
	}
	for i := range samples { // out of order all the time: any moment has to do
		samples[i].RcvOOOPack = int64(i)
	}
	if _, ok := r.Startup(); !ok {
		t.Error("nothing settled")
	}
}
