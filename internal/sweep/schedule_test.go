package sweep

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func plane(send, receive []int) Axes {
	return Axes{Send: send, Receive: receive, Write: []int{0}, Directions: []transfer.Direction{transfer.Up},
		Congestion: []string{""}}
}

func sizes(t *testing.T, text string) []int {
	t.Helper()
	s := must.Get(ParseSizes(text))(t)
	return s
}

// world simulates the trials of a path. The bytes in flight are the smaller of the two effective buffers.
type world struct {
	path                 *simpath.Path
	rng                  *rand.Rand
	at                   time.Duration
	sendMakes, recvMakes float64 // effective bytes of one requested
}

func (w *world) truth(c record.SweepSetup) (bps float64, l verdict.Name) {
	send, receive := float64(c.Send)*w.sendMakes, float64(c.Receive)*w.recvMakes
	if c.Send == 0 {
		send = w.path.AutoWindow
	}
	if c.Receive == 0 {
		receive = w.path.AutoWindow
	}
	window := min(send, receive)
	bps = w.path.Goodput(window)
	switch {
	case bps > 0.95*w.path.CapacityBps():
		return bps, verdict.Bottleneck
	case bps < 0.9*window*8/w.path.BaseRTT().Seconds():
		return bps, verdict.Congestion
	case send <= receive:
		return bps, verdict.SendBuffer
	}
	return bps, verdict.ReceiverWindow
}

func (w *world) trial(i int, c record.SweepSetup) Trial {
	const length = time.Second
	bps, l := w.truth(c)
	bps *= math.Exp(w.path.Deviation(length) * w.rng.NormFloat64())
	if w.rng.Float64() < w.path.Noise.Stalls {
		bps *= 0.4 + 0.55*w.rng.Float64()
	}
	w.at += length
	return Trial{Cell: i, Elapsed: length, GoodputBps: bps, Limiter: l, RTT: w.path.RTT, MSS: w.path.MSS}
}

// play runs a schedule and returns the order of its cells.
func play(s *Schedule, w *world) (order []int) {
	for {
		i, more := s.Next()
		if !more {
			return order
		}
		order = append(order, i)
		s.Observe(w.trial(i, s.cells[i]))
	}
}

func clean(seed uint64) *world {
	return &world{path: &simpath.Path{RateBps: 100e6, RTT: 12 * time.Millisecond, MSS: 1460, Queue: 300e3, Harm: 1,
		AutoWindow: 4 << 20, Noise: simpath.Noise{Dev: 0.004}},
		rng: rand.New(rand.NewPCG(seed, 7)), sendMakes: 1, recvMakes: 1.25}
}

func TestEveryCellBecomesTight(t *testing.T) {
	axes := plane(sizes(t, "8K-1M:x2,automatic"), sizes(t, "16K-512K:x2"))
	s := NewSchedule(axes, Rules{Precision: 0.03, Seed: 1})
	w := clean(1)
	order := play(s, w)
	for i, c := range s.cells {
		truth, _ := w.truth(c)
		if n := len(s.logs[i]); n < 3 || !s.Interval(i).Within(0.03) || math.Abs(s.Interval(i).Mid/truth-1) > 0.03 {
			t.Errorf("%v: %d runs, %v; the truth is %v", c, n, s.Interval(i), truth)
		}
	}
	if len(order) > 5*len(s.cells) {
		t.Errorf("%d runs for %d cells of little noise", len(order), len(s.cells))
	}
	descents := 0
	for i := range order[:len(s.cells)-1] {
		if order[i+1] < order[i] {
			descents++
		}
	}
	if descents < len(s.cells)/4 {
		t.Errorf("the order is hardly random: %v", order)
	}
}

func TestNext_KeepsTheBudget(t *testing.T) {
	axes := plane(sizes(t, "8K-1M:x2"), sizes(t, "8K-1M:x2"))
	s := NewSchedule(axes, Rules{Precision: 0.03, Seed: 3, Budget: 150 * time.Second})
	w := clean(3)
	order := play(s, w)
	if len(order) > 150 {
		t.Errorf("%d runs of 1 s in a budget of 150 s", len(order))
	}
	if done, share := s.Progress(); done == len(s.cells) || share > 1 || share < 0.9 {
		t.Errorf("%d of %d cells done, share %v", done, len(s.cells), share)
	}
}

func TestNext_StopsImpreciseCellsAtMaxRuns(t *testing.T) {
	s := NewSchedule(plane([]int{8192}, []int{8192}), Rules{Precision: 0.001, MaxRuns: 7})
	w := clean(1)
	w.path.Noise.Dev = 0.3
	if order := play(s, w); len(order) != 7 {
		t.Errorf("%d runs", len(order))
	}
}

func TestNext_DropsFailingAndRefusedCells(t *testing.T) {
	s := NewSchedule(plane([]int{8192, 16384, 32768}, []int{8192}), Rules{Precision: 0.05})
	s.Refuse(0, "no such thing")
	runs := map[int]int{}
	for {
		i, more := s.Next()
		if !more {
			break
		}
		runs[i]++
		r := Trial{Cell: i, Elapsed: time.Second, GoodputBps: 1e6}
		if i == 1 {
			r = Trial{Cell: i, Elapsed: time.Second, Problem: "nothing arrived"}
		}
		s.Observe(r)
	}
	if fmt.Sprint(runs) != "map[1:3 2:3]" {
		t.Errorf("runs of each cell: %v", runs)
	}
}

func TestPaths(t *testing.T) {
	s := NewSchedule(plane(sizes(t, "8K-1M:x2"), sizes(t, "64K,1M")), Rules{Precision: 0.03, Seed: 1})
	w := clean(4)
	play(s, w)
	paths := s.Paths()
	if len(paths) != 1 || paths[0].AtLeast || math.Abs(paths[0].BDPBytes/w.path.BDP()-1) > 0.15 {
		t.Errorf("%+v; the BDP is %v", paths, w.path.BDP())
	}
	if knee := paths[0].KneeSendBytes; math.Abs(knee/w.path.BDP()-1) > 0.15 {
		t.Errorf("a full path is expected from send buffers of %v on; the BDP is %v", knee, w.path.BDP())
	}
	// A system that lets far more be in flight than a small buffer grants.
	s = NewSchedule(plane([]int{16384, 65536, 1 << 20}, []int{1 << 20}), Rules{Precision: 0.03})
	for i, bps := range []float64{40e6, 58e6, 93e6} {
		for range 3 {
			s.Observe(Trial{Cell: i, Elapsed: time.Second, GoodputBps: bps, Limiter: verdict.SendBuffer,
				RTT: 12 * time.Millisecond, MSS: 1448})
		}
	}
	if knee := s.Paths()[0].KneeSendBytes; knee < 90e3 || knee > 120e3 {
		t.Errorf("64 KiB carries 58 of 93 Mbit/s, and the knee is at %v bytes", knee)
	}
	s = NewSchedule(plane(sizes(t, "8K,16K"), sizes(t, "64K")), Rules{Precision: 0.03, Seed: 1})
	play(s, w)
	if paths = s.Paths(); len(paths) != 1 || !paths[0].AtLeast {
		t.Errorf("windows were in the way: %+v", paths)
	}
	for limiter, filled := range map[verdict.Name]bool{verdict.Application: false, verdict.Congestion: false,
		verdict.Unknown: false, verdict.Bottleneck: true} {
		s = NewSchedule(plane([]int{0}, []int{0}), Rules{Precision: 0.03})
		s.Observe(Trial{Elapsed: time.Second, GoodputBps: 6.4e6, Limiter: limiter, RTT: 30 * time.Millisecond, MSS: 1448})
		if s.Paths()[0].AtLeast == filled {
			t.Errorf("limited by %s: %+v", limiter, s.Paths()[0])
		}
	}
}

// BenchmarkNext measures Next in the largest grid, half of it measured. It must be short compared with a run.
func BenchmarkNext(b *testing.B) {
	var axis []int
	for i := range 100 {
		axis = append(axis, 4096*(i+1))
	}
	s := NewSchedule(plane(axis, axis), Rules{Precision: 0.03})
	w := clean(1)
	for i := 0; i < len(s.cells); i += 2 {
		s.Observe(w.trial(i, s.cells[i]))
	}
	for b.Loop() {
		s.Next()
	}
}
