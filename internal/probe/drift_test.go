package probe

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Clocks of equal speed show no drift for any path delays. The reported drift never exceeds the real one, and is
// close to it if it is much larger than the delays.
func TestDrift(t *testing.T) {
	r := rand.New(rand.NewPCG(12, 0))
	for _, rate := range []float64{0, 200e-6, 0.01, -0.01, 0.2, -0.2} {
		for range 50 {
			var d drift
			offset := time.Duration(r.IntN(1e9))
			for at := time.Duration(0); at < 10*time.Second; at += 100 * time.Millisecond {
				there := time.Duration(r.IntN(30e6))
				back := time.Duration(r.IntN(30e6))
				read := at + there
				d.add(at, read+back, offset+time.Duration(float64(read)*(1+rate)))
			}
			// The span between two replies is known to within an RTT.
			if most := math.Abs(rate) * 1.06; math.Abs(d.ratio) > most || rate*d.ratio < 0 {
				t.Fatalf("clocks that differ by %v: %v shown", rate, d.ratio)
			}
			if math.Abs(rate) >= 0.01 && math.Abs(d.ratio) < math.Abs(rate)/2 {
				t.Errorf("clocks that differ by %v: only %v shown", rate, d.ratio)
			}
		}
	}
}

func TestDrift_LimitsOffsets(t *testing.T) {
	var d drift
	for i := range 10 * maxOffsets {
		at := time.Duration(i) * 100 * time.Millisecond
		d.add(at, at+time.Millisecond, at)
	}
	if len(d.offsets) > maxOffsets || d.ratio != 0 {
		t.Errorf("%d kept, %v shown", len(d.offsets), d.ratio)
	}
}

// Clocks that go back or exceed a year are rejected.
func TestEcho_RejectsImpossibleClocks(t *testing.T) {
	for _, c := range []struct {
		name  string
		clock []int64
		lies  bool
	}{
		{"an honest one", []int64{5e9, 5e9 + 1, 6e9}, false},
		{"unknown clock", []int64{0, 0}, false},
		{"negative", []int64{-1}, true},
		{"back", []int64{5e9, 5e9 - 1}, true},
		{"centuries", []int64{5e9, 9e18}, true},
	} {
		e := &echoProbe{startedAt: time.Now().Add(-time.Hour)}
		var err error
		for i, clock := range c.clock {
			e.number, e.sentAt, e.pending = uint32(i), time.Now(), true
			text, _ := json.Marshal(echo{Number: e.number, ClockNs: clock})
			err = e.receive(message{kindEcho, text})
			if last := i == len(c.clock)-1; err != nil && !last {
				t.Errorf("%s: %v at %d", c.name, err, i)
			}
		}
		var no *transfer.ImplausibleError
		if errors.As(err, &no) != c.lies || err != nil && !c.lies {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
