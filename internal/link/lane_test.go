package link

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// one returns a batch of a single packet.
func one(id int32, bytes int) Batch { return Batch{ID: id, Segments: 1, Bytes: bytes, Last: bytes} }

func only(c Config) *Lane {
	l, _ := (&Path{Up: c}).Lanes()
	return l
}

// drain pops all runs and returns them with their times.
func drain(l *Lane) (runs []Run, times []int64) {
	for next := l.Next(); next != Never; next = l.Next() {
		for run, ok := l.Pop(next); ok; run, ok = l.Pop(next) {
			runs, times = append(runs, run), append(times, next)
		}
	}
	return runs, times
}

func TestRateIsExactOverManyPackets(t *testing.T) {
	for _, rate := range []int64{100, 14_400, 28_800, 64_000, 1_544_000, 1e9, 2e9, 3_000_000_001, 1e12} {
		const n, bytes = 1000, 1500
		l := only(Config{Rate: rate, Delay: 20 * time.Millisecond, QueueBytes: n * bytes})
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

func TestTrainsTakeTheTimeOfTheirSegments(t *testing.T) {
	single, batch := only(Config{Rate: 1e8, QueueBytes: 1 << 20}), only(Config{Rate: 1e8, QueueBytes: 1 << 20})
	for i := range 9 {
		single.Offer(0, one(int32(i), 1500))
	}
	single.Offer(0, one(9, 700))
	batch.Offer(0, Batch{ID: 1, Segments: 10, Bytes: 1500, Last: 700})
	_, a := drain(single)
	_, b := drain(batch)
	if !slices.Equal(a, b) {
		t.Errorf("singles leave at %v, the batch's segments at %v", a, b)
	}
}

func TestSegmentsThatAreDueTogetherLeaveTogether(t *testing.T) {
	l := only(Config{Rate: 1e8, QueueBytes: 1 << 20})
	l.Offer(0, Batch{ID: 1, Segments: 10, Bytes: 1500, Last: 1500})
	l.Offer(0, one(2, 1500))
	want := []Run{{ID: 1, Count: 4, Due: 120_000}, {ID: 1, First: 4, Count: 6, Due: 5 * 120_000},
		{ID: 2, Count: 1, Due: 11 * 120_000}}
	var got []Run
	for _, now := range []int64{4 * 120_000, 100 * ms} {
		for run, ok := l.Pop(now); ok; run, ok = l.Pop(now) {
			got = append(got, run)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOverheadTakesTimeOnTheLine(t *testing.T) {
	l := only(Config{Rate: 1e9, Overhead: 38, QueueBytes: 1 << 30})
	for i := range 100 {
		l.Offer(0, one(int32(i), 1500))
	}
	if _, times := drain(l); times[99] != 100*1538*8 {
		t.Errorf("last at %d ns, want %d", times[99], 100*1538*8)
	}
}

func TestQueue_AcceptsItsConfiguredSize(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		size   int
		want   int // packets of a burst that pass: the queue and the one on the line
	}{
		{"bytes", Config{QueueBytes: 15000}, 1500, 11},
		{"bytes, one short", Config{QueueBytes: 14999}, 1500, 10},
		{"packets", Config{QueuePackets: 7}, 40, 8},
		{"packets and bytes", Config{QueuePackets: 7, QueueBytes: 4500}, 1500, 4},
		{"none", Config{}, 1500, 1},
	}
	for _, test := range tests {
		test.config.Rate = 1e6
		l := only(test.config)
		for i := range 1000 {
			l.Offer(0, one(int32(i), test.size))
		}
		runs, _ := drain(l)
		if len(runs) != test.want || l.Counters.DroppedQueue != int64(1000-test.want) {
			t.Errorf("%s: %d got through, %d dropped, want %d through", test.name, len(runs), l.Counters.DroppedQueue, test.want)
		}
	}
}

// A queue accepts exactly the space that packets freed.
func TestQueueEmptiesAtTheLinesRate(t *testing.T) {
	l := only(Config{Rate: 12e6, QueueBytes: 15000}) // 1500 bytes a millisecond
	for i := range 100 {
		l.Offer(0, one(int32(i), 1500))
	}
	for i, step := range []struct {
		now  int64
		want int // of ten offered
	}{{1*ms - 1, 0}, {1 * ms, 1}, {4 * ms, 3}, {4*ms + 1, 0}, {1000 * ms, 10}} {
		kept := 0
		for range 10 {
			n, _ := l.Offer(step.now, one(0, 1500))
			kept += n
		}
		if kept != step.want {
			t.Errorf("step %d at %d ns: kept %d, want %d", i, step.now, kept, step.want)
		}
	}
}

func TestUnlimitedRateNeedsNoQueue(t *testing.T) {
	l := only(Config{Delay: 5 * time.Millisecond})
	for i := range 1000 {
		l.Offer(7, one(int32(i), 1500))
	}
	runs, times := drain(l)
	if len(runs) != 1000 || times[0] != 7+5*ms || times[999] != 7+5*ms {
		t.Errorf("%d packets from %d to %d", len(runs), times[0], times[len(times)-1])
	}
}

func TestPolicerLetsTheBurstAndThenTheRateThrough(t *testing.T) {
	l := only(Config{PoliceRate: 8e6, PoliceBurst: 10_000}) // 1000 bytes a millisecond
	passed := func(now int64, n int) int {
		before := l.Counters.DroppedPolicer
		for range n {
			l.Offer(now, one(0, 1000))
		}
		return n - int(l.Counters.DroppedPolicer-before)
	}
	for i, step := range []struct {
		now  int64
		want int
	}{{0, 10}, {ms - 1, 0}, {ms, 1}, {3 * ms, 2}, {3*ms + ms/2, 0}, {4 * ms, 1}, {1000 * ms, 10}, {int64(1e18), 10}} {
		if got := passed(step.now, 20); got != step.want {
			t.Errorf("step %d: %d of 20 passed, want %d", i, got, step.want)
		}
	}
}

func TestMTULetsNothingLargerThrough(t *testing.T) {
	l := only(Config{MTU: 1400})
	kept, tooBig := l.Offer(0, Batch{ID: 1, Segments: 5, Bytes: 1500, Last: 900})
	if kept != 1 || tooBig != 4 || l.Counters.DroppedMTU != 4 {
		t.Errorf("kept %d, %d too big", kept, tooBig)
	}
	if kept, tooBig := l.Offer(0, one(2, 1400)); kept != 1 || tooBig != 0 {
		t.Errorf("a packet of just the MTU: kept %d, %d too big", kept, tooBig)
	}
}

func TestAggregationReleasesTogether(t *testing.T) {
	l := only(Config{Rate: 12e6, QueueBytes: 1 << 20, Aggregate: 5 * time.Millisecond, Delay: 2 * time.Millisecond})
	for i := range 20 {
		l.Offer(0, one(int32(i), 1500))
	}
	_, times := drain(l)
	at := map[int64]int{}
	for _, when := range times {
		at[when]++
	}
	want := map[int64]int{5 * ms: 3, 10 * ms: 5, 15 * ms: 5, 20 * ms: 5, 25 * ms: 2}
	if fmt.Sprint(at) != fmt.Sprint(want) {
		t.Errorf("released %v, want %v", at, want)
	}
}

func TestHalfDuplexSharesOneMedium(t *testing.T) {
	c := Config{Rate: 12e6, QueueBytes: 1 << 20}
	up, down := (&Path{Up: c, Down: c, HalfDuplex: true}).Lanes()
	for i := range int32(10) {
		up.Offer(0, one(i, 1500))
	}
	for i := range int32(10) {
		down.Offer(0, one(i, 1500))
	}
	var got []string
	for {
		next := min(up.Next(), down.Next())
		if next == Never {
			break
		}
		for _, l := range []*Lane{up, down} {
			for _, ok := l.Pop(next); ok; _, ok = l.Pop(next) {
				got = append(got, fmt.Sprintf("%s %d", map[bool]string{l == up: "up"}[true], next/ms))
			}
		}
	}
	if len(got) != 20 || up.medium.free != 20*ms {
		t.Fatalf("%d packets in %d ns: %v", len(got), up.medium.free, got)
	}
	if got[0] != "up 1" || got[1] != " 2" || got[2] != "up 3" || got[19] != " 20" {
		t.Errorf("the directions do not take turns: %v", got)
	}
}

func TestFullDuplexDirectionsAreIndependent(t *testing.T) {
	c := Config{Rate: 12e6, QueueBytes: 1 << 20}
	up, down := (&Path{Up: c, Down: c}).Lanes()
	for i := range int32(10) {
		up.Offer(0, one(i, 1500))
		down.Offer(0, one(i, 1500))
	}
	_, a := drain(up)
	_, b := drain(down)
	if a[9] != 10*ms || b[9] != 10*ms {
		t.Errorf("ten packets took %d and %d ns", a[9], b[9])
	}
}

// Late calls change no time on the virtual clock.
func TestLatenessOfTheCallerDoesNotAddUp(t *testing.T) {
	c := Config{Rate: 12e6, QueueBytes: 1 << 20, Delay: time.Millisecond}
	l := only(c)
	for i := range 100 {
		l.Offer(0, one(int32(i), 1500))
	}
	for now := int64(0); l.Next() != Never; now += 7 * ms {
		for _, ok := l.Pop(now); ok; _, ok = l.Pop(now) {
		}
	}
	if l.medium.free != 100*ms || l.lastDue != 101*ms {
		t.Errorf("the line is free at %d, the last packet due at %d", l.medium.free, l.lastDue)
	}
}

func TestNoAllocationPerPacket(t *testing.T) {
	l := only(Config{Rate: 1e9, Delay: time.Millisecond, Loss: 0.01, Jitter: time.Millisecond, QueueBytes: 1 << 20,
		Duplicate: 0.01,
		Reorder:   0.01, HoldBack: time.Millisecond, PoliceRate: 1e9, PoliceBurst: 1 << 20})
	now := int64(0)
	step := func() {
		now += 500_000
		l.Offer(now, Batch{ID: 1, Segments: 40, Bytes: 1500, Last: 1500})
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
		t.Errorf("%v allocations a batch", n)
	}
}

// BenchmarkLane measures one segment with every feature on.
func BenchmarkLane(b *testing.B) {
	l := only(Config{Rate: 2e9, Delay: time.Millisecond, Loss: 0.0001, LossBurst: 3, Jitter: time.Millisecond,
		QueueBytes: 1 << 20,
		Duplicate:  0.0001, Reorder: 0.0001, HoldBack: time.Millisecond, PoliceRate: 3e9, PoliceBurst: 1 << 20})
	const segments = 40
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += segments * 6000
		l.Offer(now, Batch{ID: 1, Segments: segments, Bytes: 1500, Last: 1500})
		for {
			if _, ok := l.Pop(now); !ok {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/segments, "ns/segment")
}
