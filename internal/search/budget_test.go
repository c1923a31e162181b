package search

import (
	"testing"
	"time"
)

// A modem's transfers last for 25 segments, others for 60: a direction takes five minutes at
// 14.4 kbit/s, not twelve.
func TestModemsTakeFewerSegments(t *testing.T) {
	for _, c := range []struct {
		bps      float64
		segments float64 // of a transfer, startup apart
		budget   time.Duration
	}{{14.4e3, 25, 310 * time.Second}, {28.8e3, 25, 160 * time.Second}, {64e3, 54, 160 * time.Second},
		{256e3, 60, 45 * time.Second}} {
		cfg := Config{MSS: 1460, CapacityBps: c.bps * 1460 / 1500}
		segment := float64(cfg.MSS) * 8 / cfg.CapacityBps
		cfg.RTT = time.Duration((0.1 + segment) * float64(time.Second))
		cfg.Knee = cfg.CapacityBps / 8 * cfg.RTT.Seconds()
		rounds := 2 * cfg.RTT.Seconds() // no slow start is longer on such a path
		got := (cfg.Length(0).Seconds() - rounds) / segment
		if got < c.segments-1 || got > c.segments+1 {
			t.Errorf("%.0f bit/s: a transfer lasts for %.1f segments, want %.0f", c.bps, got, c.segments)
		}
		if got := cfg.Budget().Time; got > c.budget {
			t.Errorf("%.0f bit/s: a budget of %v, want %v at most", c.bps, got, c.budget)
		}
	}
}

// Where transfers lose, each lasts for its round trips and a budget allows a comparison of them.
func TestTransfersThatLoseTakeTheirRounds(t *testing.T) {
	cfg := Config{MSS: 1448, CapacityBps: 10e6, RTT: 200 * time.Millisecond, Knee: 250e3}
	short, budget := cfg.Length(0), cfg.Budget().Time
	cfg.Rounds, cfg.Burst = 25, time.Second
	if got, want := cfg.Length(0)-short, (25-FewRounds)*cfg.RTT+cfg.Burst; (got - want).Abs() > time.Millisecond {
		t.Errorf("a transfer is %v longer, want %v", got, want)
	}
	if got := cfg.Budget().Time; got < LossyTransfers*cfg.Length(0) || got <= budget || got > cfg.Sweep().Time/10 {
		t.Errorf("a budget of %v for transfers of %v", got, cfg.Length(0))
	}
}

// One run of what there is may be luck: it takes two to say that nothing is to be changed.
func TestOneRunIsNoGroundToChangeNothing(t *testing.T) {
	s := New(Config{MSS: 1448, CapacityBps: 10e6, RTT: 100 * time.Millisecond, Knee: 125e3})
	s.Observe(Trial{Automatic: true}, Outcome{GoodputBps: 9.9e6, Window: 500e3, Lossless: true})
	for range 3 {
		s.Observe(Trial{Window: 130e3}, Outcome{GoodputBps: 6e6, Lossless: true})
		s.Observe(Trial{Window: 500e3}, Outcome{GoodputBps: 7e6, Lossless: true})
	}
	if got := s.Answer(); got.Verdict != Inconclusive || s.Reaches(0.95) {
		t.Errorf("%+v", got)
	}
	s.Observe(Trial{Automatic: true}, Outcome{GoodputBps: 9.8e6, Window: 500e3, Lossless: true})
	if got := s.Answer(); got.Verdict != NoChange || !s.Reaches(0.95) {
		t.Errorf("%+v", got)
	}
}
