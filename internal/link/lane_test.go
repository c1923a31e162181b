package link

import (
	"math"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// one is a train of a single packet.
func one(id int32, bytes int) Train { return Train{ID: id, Segments: 1, Bytes: bytes, Last: bytes} }

// drain pops everything up to the end of time and answers the times at which runs came.
func drain(l *Lane) (runs []Run, times []int64) {
	for next := l.Next(); next != Never; next = l.Next() {
		for run, ok := l.Pop(next); ok; run, ok = l.Pop(next) {
			runs, times = append(runs, run), append(times, next)
		}
	}
	return runs, times
}

func TestRateIsExactOverManyPackets(t *testing.T) {
	for _, rate := range []int64{28_800, 64_000, 1_544_000, 1e9, 2e9, 3_000_000_001} {
		const n, bytes = 1000, 1500
		l, _ := Pair(Config{Rate: rate, Delay: 20 * time.Millisecond, QueueBytes: n * bytes}, Config{}, false)
		for i := range n {
			l.Offer(0, one(int32(i), bytes))
		}
		_, times := drain(l)
		want := int64(float64(n*bytes*8)*1e9/float64(rate)) + 20*ms
		if got := times[len(times)-1]; len(times) != n || got < want-1 || got > want+1 {
			t.Errorf("%d bit/s: %d packets, the last at %d ns, want %d", rate, len(times), got, want)
		}
	}
}

func TestOverheadTakesTimeOnTheLine(t *testing.T) {
	l, _ := Pair(Config{Rate: 1e9, Overhead: 38, QueueBytes: 1 << 30}, Config{}, false)
	for i := range 100 {
		l.Offer(0, one(int32(i), 1500))
	}
	if _, times := drain(l); times[99] != 100*1538*8 {
		t.Errorf("last at %d ns, want %d", times[99], 100*1538*8)
	}
}

func TestQueueHoldsWhatItSays(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		sizes  int
		want   int // packets that get through of a burst: the queue and the one on the line
	}{
		{"bytes", Config{QueueBytes: 15000}, 1500, 11},
		{"bytes, one short", Config{QueueBytes: 14999}, 1500, 10},
		{"packets", Config{QueuePackets: 7}, 40, 8},
		{"packets and bytes", Config{QueuePackets: 7, QueueBytes: 4500}, 1500, 4},
		{"none", Config{}, 1500, 1},
	}
	for _, test := range tests {
		test.config.Rate = 1e6
		l, _ := Pair(test.config, Config{}, false)
		for i := range 1000 {
			l.Offer(0, one(int32(i), test.sizes))
		}
		runs, _ := drain(l)
		if len(runs) != test.want || l.Counters.DroppedQueue != int64(1000-test.want) {
			t.Errorf("%s: %d got through, %d dropped, want %d through", test.name, len(runs), l.Counters.DroppedQueue, test.want)
		}
	}
}

func TestLossIsTheSameForTheSameSeed(t *testing.T) {
	lostOnes := func(seed uint64, trains bool) (lost []int) {
		l, _ := Pair(Config{Loss: 0.02, Seed: seed}, Config{}, false)
		seen := 0
		for i := 0; i < 20000; i += 40 {
			if trains {
				l.Offer(int64(i), Train{ID: int32(i), Segments: 40, Bytes: 1500, Last: 1500})
			} else {
				for j := range 40 {
					l.Offer(int64(i), one(int32(i+j), 1500))
				}
			}
			runs, _ := drain(l)
			for _, r := range runs {
				if r.Lost {
					lost = append(lost, seen)
				}
				seen += r.Count
			}
		}
		return lost
	}
	a, b, c := lostOnes(7, false), lostOnes(7, true), lostOnes(8, false)
	if len(a) < 300 || len(a) > 500 {
		t.Errorf("lost %d of 20000 at 2 %%", len(a))
	}
	same := func(x, y []int) bool {
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if x[i] != y[i] {
				return false
			}
		}
		return true
	}
	if !same(a, b) {
		t.Error("trains lose other packets than single ones do")
	}
	if same(a, c) {
		t.Error("another seed loses the same packets")
	}
}

func TestLossBurstsHaveTheirLength(t *testing.T) {
	const n = 400000
	l, _ := Pair(Config{Loss: 0.05, LossBurst: 6, Seed: 1}, Config{}, false)
	lost, bursts, before := 0, 0, false
	for i := range n {
		l.Offer(int64(i), one(int32(i), 100))
		runs, _ := drain(l)
		if runs[0].Lost {
			lost++
			if !before {
				bursts++
			}
		}
		before = runs[0].Lost
	}
	if share := float64(lost) / n; math.Abs(share-0.05) > 0.004 {
		t.Errorf("lost %.4f, want 0.05", share)
	}
	if mean := float64(lost) / float64(bursts); math.Abs(mean-6) > 0.4 {
		t.Errorf("%.2f in a row, want 6", mean)
	}
}

func TestNoAllocationPerPacket(t *testing.T) {
	l, _ := Pair(Config{Rate: 1e9, Delay: time.Millisecond, Loss: 0.01, Jitter: time.Millisecond, QueueBytes: 1 << 20, Duplicate: 0.01,
		Reorder: 0.01, HoldBack: time.Millisecond}, Config{}, false)
	now := int64(0)
	step := func() {
		now += 500_000
		l.Offer(now, Train{ID: 1, Segments: 40, Bytes: 1500, Last: 1500})
		for {
			if _, ok := l.Pop(now); !ok {
				return
			}
		}
	}
	for range 1000 {
		step()
	}
	if n := testing.AllocsPerRun(1000, step); n != 0 {
		t.Errorf("%v allocations a train", n)
	}
}
