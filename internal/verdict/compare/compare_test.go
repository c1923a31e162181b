package compare

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// way returns a side of three transfers at about mbit Mbit/s, all limited by name.
func way(mbit float64, name verdict.Name, change func(*Side)) Side {
	s := Side{MSS: 1448, PathMTU: 1500, RTTMin: 20 * time.Millisecond, RTTMean: 21 * time.Millisecond, Sent: 50e6,
		Window: 4 << 20, InFlight: 1 << 20}
	for _, noise := range []float64{1, 1.004, 0.997, 1.001} {
		s.Goodputs = append(s.Goodputs, mbit*1e6*noise)
		s.Verdicts = append(s.Verdicts, verdict.Verdict{Limiter: name, Confidence: verdict.High})
	}
	if change != nil {
		change(&s)
	}
	return s
}

func TestWhyTwoWaysDiffer(t *testing.T) {
	share := func(v float64) *float64 { return &v }
	small := func(s *Side) { s.MSS, s.PathMTU = 1368, 1420 }
	outside := way(94, verdict.Bottleneck, nil)
	for _, tt := range []struct {
		name          string
		first, second Side
		slower        int
		want          Cause
		candidates    []Cause
	}{
		{"alike", way(93.5, verdict.Bottleneck, nil), outside, 0, NoDifference, nil},
		{"a tunnel's overhead", way(89.5, verdict.Bottleneck, small), outside, 1, Overhead, nil},
		{"unless its packets are small", way(77, verdict.Bottleneck, func(s *Side) { s.MSS, s.PathMTU = 1188, 1240 }),
			outside, 1, MixedCause, []Cause{Overhead, Capacity}},
		{"gateways with a budget", way(28, verdict.Bottleneck, small), outside, 1, Capacity, nil},
		{"the same in the other order", outside, way(28, verdict.Bottleneck, small), 2, Capacity, nil},
		{"a policer inside", way(28, verdict.Congestion, func(s *Side) {
			for i := range s.Verdicts {
				s.Verdicts[i].Subtype = verdict.Policer
			}
		}), outside, 1, Capacity, nil},
		{"a host that is busy with it", way(28, verdict.Bottleneck, func(s *Side) { s.NearCPU = share(0.98) }),
			way(94, verdict.Bottleneck, func(s *Side) { s.NearCPU = share(0.3) }), 1, HostCPU, nil},
		{"a host that is busy anyhow", way(28, verdict.Bottleneck, func(s *Side) { s.FarCPU = share(0.98) }),
			way(94, verdict.Bottleneck, func(s *Side) { s.FarCPU = share(0.97) }), 1,
			MixedCause, []Cause{Capacity, HostCPU}},
		{"a thread without CPU", way(28, verdict.CPU, nil), outside, 1, HostCPU, nil},
		{"a longer way and a fixed window", way(20, verdict.ReceiverWindow, func(s *Side) {
			s.RTTMin, s.RTTMean,
				s.Window = 60*time.Millisecond, 61*time.Millisecond, 150e3
		}),
			way(60, verdict.ReceiverWindow, func(s *Side) { s.Window = 150e3 }), 1, RoundTrip, nil},
		{"scaling stripped", way(26, verdict.ReceiverWindow, func(s *Side) { s.Window = 65535 }), way(94, verdict.Bottleneck,
			func(s *Side) { s.Window = 240e3 }), 1, WindowSize, nil},
		{"a longer way and a smaller window", way(10, verdict.ReceiverWindow, func(s *Side) {
			s.RTTMin, s.RTTMean,
				s.Window = 50*time.Millisecond, 51*time.Millisecond, 65535
		}),
			way(52, verdict.ReceiverWindow, func(s *Side) { s.Window = 131072 }), 1, MixedCause, []Cause{RoundTrip, WindowSize}},
		{"8 KB of AFD over a longer way", way(1.6, verdict.SendBuffer, func(s *Side) {
			s.RTTMin, s.RTTMean,
				s.InFlight = 40*time.Millisecond, 40*time.Millisecond, 8192
		}),
			way(5.4, verdict.SendBuffer, func(s *Side) {
				s.RTTMin, s.RTTMean, s.InFlight = 12*time.Millisecond,
					12*time.Millisecond, 8192
			}), 1, RoundTrip, nil},
		{"more loss", way(12, verdict.Congestion, func(s *Side) { s.Resent = 500e3 }), way(94, verdict.Congestion,
			func(s *Side) { s.Resent = 5e3 }), 1, Loss, nil},
		{"as much loss", way(12, verdict.Congestion, func(s *Side) { s.Resent = 500e3 }), way(94, verdict.Congestion,
			func(s *Side) { s.Resent = 500e3 }), 1, UnknownCause, nil},
		{"more loss on a longer way", way(12, verdict.Congestion, func(s *Side) {
			s.Resent, s.RTTMin = 500e3,
				60*time.Millisecond
		}),
			way(94, verdict.Congestion, func(s *Side) { s.Resent = 100e3 }), 1, MixedCause, []Cause{RoundTrip, Loss}},
		{"a program that pauses", way(12, verdict.Application, nil), outside, 1, UnknownCause, nil},
		{"limits that change", way(28, verdict.Bottleneck, func(s *Side) {
			s.Resent = 500e3
			for i := range 2 {
				s.Verdicts[i].Limiter = verdict.Congestion
			}
		}), outside, 1, MixedCause, []Cause{Loss, Capacity}},
		{"nothing measured", Side{}, outside, 0, UnknownCause, nil},
		{"one round says little", Side{Goodputs: []float64{1e6}}, outside, 0, UnknownCause, nil},
		{"scatter", Side{Goodputs: []float64{40e6, 90e6, 95e6, 60e6}}, outside, 0, UnknownCause, nil},
		{"ten per cent or less", way(86.5, verdict.Bottleneck, func(s *Side) { s.Goodputs[0] *= 1.03 }), outside, 1,
			UnknownCause, []Cause{Capacity}},
		{"a tunnel's overhead, in the other order", outside, way(90.2, verdict.Bottleneck, small), 2, Overhead, nil},
		{"a little slower with the same segments", way(89.6, verdict.Bottleneck, nil), outside, 0, NoDifference, nil},
		{"faster with smaller segments", way(99, verdict.Bottleneck, small), outside, 0, NoDifference, nil},
		{"a tunnel's overhead while the window limits", way(89.6, verdict.ReceiverWindow, small), outside, 0,
			NoDifference, nil},
		{"another system with few known facts", way(28, verdict.Bottleneck, func(s *Side) { s.MSS, s.RTTMin = 0, 0 }),
			outside, 1, Capacity, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := Sides(tt.first, tt.second)
			slower := [...]string{"", "first", "second"}[tt.slower]
			if d.Slower != slower || d.Cause != tt.want || !slices.Equal(d.Candidates, tt.candidates) {
				t.Errorf("the slower is %q, want %q; cause %s %v, want %s %v\n%+v", d.Slower, slower, d.Cause, d.Candidates,
					tt.want, tt.candidates, d)
			}
			if sure := d.Confidence == verdict.High; sure && (d.Cause == UnknownCause || d.Cause == MixedCause) {
				t.Errorf("%s is sure", d.Cause)
			}
			if d.Code == "" {
				t.Error("says nothing")
			}
		})
	}
}

// TestFactorsOfCauses checks that the factor of an explanation is the effect of its cause alone.
func TestFactorsOfCauses(t *testing.T) {
	d := Sides(way(28, verdict.Bottleneck, func(s *Side) { s.MSS, s.PathMTU = 1368, 1420 }), way(94, verdict.Bottleneck,
		nil))
	want := map[Cause][2]float64{
		Overhead: {1.002, 1.0585}, // of 1420 bytes or of 1500, 1368 are payload
		Capacity: {94 / 28.0 / 1.06 * 0.99, 94 / 28.0 * 1.01},
	}
	for _, e := range d.Explanations {
		w, ok := want[e.Cause]
		if !ok || e.Low < w[0]-0.002 || e.High > w[1]+0.002 {
			t.Errorf("%s: %.4f to %.4f, want within %v", e.Cause, e.Low, e.High, w)
		}
		delete(want, e.Cause)
	}
	if len(want) > 0 {
		t.Errorf("not explained: %v", want)
	}
}
