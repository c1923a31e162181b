package web

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// TestIntervalsOf_SumsConnections has a connection of 8 Mbit/s from the beginning and one of 16 Mbit/s that begins
// after 1 s.
func TestIntervalsOf_SumsConnections(t *testing.T) {
	stream := func(begin time.Duration, bytesPerMs int64) (s transfer.Stream) {
		for at := begin; at <= 2*time.Second; at += 40 * time.Millisecond {
			s.Samples = append(s.Samples, transfer.Sample{At: at, Acked: (at - begin).Milliseconds() * bytesPerMs})
		}
		return s
	}
	all := intervalsOf([]transfer.Stream{stream(0, 1000), stream(time.Second, 2000)}, true)
	if len(all) != 25 {
		t.Fatalf("%d intervals", len(all))
	}
	for _, one := range all {
		perMs := float64(one.Bytes) / float64((one.End - one.Start).Milliseconds())
		want := 1000.0
		if one.Start >= time.Second {
			want = 3000
		}
		if one.Start != 960*time.Millisecond && (perMs < 0.99*want || perMs > 1.01*want) {
			t.Errorf("%s: %.0f bytes a millisecond, not %.0f", one.Start, perMs, want)
		}
	}
	if none := intervalsOf([]transfer.Stream{{}}, false); none != nil {
		t.Errorf("without samples: %v", none)
	}
}

func TestProbesOf_KeepsPeaks(t *testing.T) {
	p := &browserPhase{}
	for i := range 500 {
		p.RTTMs = append(p.RTTMs, 20)
		p.RTTAtMs = append(p.RTTAtMs, float64(i*10))
	}
	p.RTTMs[251] = 900
	points := probesOf(p)
	peaks := 0
	for _, one := range points {
		if one.Value == 900e6 {
			peaks++
		}
	}
	if len(points) != maxCurve || peaks != 1 {
		t.Errorf("%d points, %d peaks", len(points), peaks)
	}
	p.RTTAtMs[3] = 1e4
	if points := probesOf(p); points != nil {
		t.Error("times that go back are taken")
	}
	if points := probesOf(&browserPhase{RTTMs: []float64{1}}); points != nil {
		t.Error("an RTT without a time is taken")
	}
}
