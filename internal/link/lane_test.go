package link

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
)

const ms = int64(time.Millisecond)

// one is a train of a single packet.
func one(id int32, bytes int) Train { return Train{ID: id, Segments: 1, Bytes: bytes, Last: bytes} }

func only(c Config) *Lane {
	l, _ := (&Path{Up: c}).Lanes()
	return l
}

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
	single, train := only(Config{Rate: 1e8, QueueBytes: 1 << 20}), only(Config{Rate: 1e8, QueueBytes: 1 << 20})
	for i := range 9 {
		single.Offer(0, one(int32(i), 1500))
	}
	single.Offer(0, one(9, 700))
	train.Offer(0, Train{ID: 1, Segments: 10, Bytes: 1500, Last: 700})
	_, a := drain(single)
	_, b := drain(train)
	if !slices.Equal(a, b) {
		t.Errorf("singles leave at %v, the train's segments at %v", a, b)
	}
}

func TestSegmentsThatAreDueTogetherLeaveTogether(t *testing.T) {
	l := only(Config{Rate: 1e8, QueueBytes: 1 << 20})
	l.Offer(0, Train{ID: 1, Segments: 10, Bytes: 1500, Last: 1500})
	l.Offer(0, one(2, 1500))
	want := []Run{{1, 0, 4, false, 120_000}, {1, 4, 6, false, 5 * 120_000}, {2, 0, 1, false, 11 * 120_000}}
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

func TestQueueHoldsWhatItSays(t *testing.T) {
	tests := []struct {
		name   string
		config Config
		size   int
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

// A queue takes in again exactly what has left it.
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

func TestLossIsTheSameForTheSameSeed(t *testing.T) {
	lostOnes := func(c Config, trains bool) (lost []int) {
		l, seen := only(c), 0
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
	base := Config{Loss: 0.02, Seed: 7}
	first := lostOnes(base, false)
	if len(first) < 349 || len(first) > 451 { // 99 % of binomial(20000, 0.02)
		t.Errorf("lost %d of 20000 at 2 %%", len(first))
	}
	otherSeed, bursty, late := base, base, base
	otherSeed.Seed = 8
	bursty.LossBurst = 5
	late.Delay, late.Jitter, late.Strip = time.Second, time.Second, SACK
	if !slices.Equal(first, lostOnes(base, true)) {
		t.Error("trains lose other packets than single ones do")
	}
	if !slices.Equal(first, lostOnes(late, false)) {
		t.Error("delay changes which packets are lost")
	}
	if slices.Equal(first, lostOnes(otherSeed, false)) {
		t.Error("another seed loses the same packets")
	}
	if !slices.Equal(lostOnes(bursty, true), lostOnes(bursty, false)) {
		t.Error("bursts differ from run to run")
	}
}

// What a full queue drops does not change which of the packets offered the line would
// lose.
func TestLossDoesNotDependOnTheQueue(t *testing.T) {
	fates := func(queue int64) map[int32]bool {
		l := only(Config{Rate: 1e6, QueueBytes: queue, Loss: 0.1, Seed: 3})
		for i := range int32(2000) {
			l.Offer(int64(i)*6*ms, one(i, 1500)) // twice what the line carries
		}
		lost := map[int32]bool{}
		runs, _ := drain(l)
		for _, r := range runs {
			lost[r.ID] = r.Lost
		}
		return lost
	}
	small, large := fates(3000), fates(1<<30)
	if len(small) > 1100 || len(large) != 2000 {
		t.Fatalf("%d and %d packets were carried", len(small), len(large))
	}
	for id, lost := range small {
		if large[id] != lost {
			t.Errorf("packet %d: lost %v with a small queue, %v with a large one", id, lost, large[id])
		}
	}
}

func TestLossSharesWithinTheirInterval(t *testing.T) {
	const n = 100_000
	for _, p := range []float64{0.0001, 0.001, 0.01, 0.2, 1} {
		for seed := range uint64(3) {
			l := only(Config{Loss: p, Seed: seed})
			l.Offer(0, Train{ID: 1, Segments: n / 2, Bytes: 100, Last: 100})
			l.Offer(0, Train{ID: 2, Segments: n / 2, Bytes: 100, Last: 100})
			drain(l)
			spread := 2.576*math.Sqrt(n*p*(1-p)) + 1
			if got := float64(l.Counters.Lost); math.Abs(got-n*p) > spread {
				t.Errorf("loss %v, seed %d: %v lost, want %v ± %v", p, seed, got, n*p, spread)
			}
		}
	}
}

func TestLossBurstsHaveTheirLength(t *testing.T) {
	for _, mean := range []float64{1.5, 6, 30} {
		const n, p = 400000, 0.05
		l := only(Config{Loss: p, LossBurst: mean, Seed: 1})
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
		if share := float64(lost) / n; math.Abs(share/p-1) > 0.1 {
			t.Errorf("bursts of %v: lost %.4f, want %v", mean, share, p)
		}
		if got := float64(lost) / float64(bursts); math.Abs(got/mean-1) > 0.1 {
			t.Errorf("%.2f in a row, want %v", got, mean)
		}
	}
}

func TestJitterSpreadsAndKeepsTheOrder(t *testing.T) {
	const jitter = 20 * time.Millisecond
	l := only(Config{Delay: 50 * time.Millisecond, Jitter: jitter, Seed: 4})
	var least, most, last int64 = math.MaxInt64, 0, 0
	for i := range int32(20000) {
		now := int64(i) * ms / 3
		l.Offer(now, one(i, 100))
		runs, times := drain(l)
		if runs[0].ID != i || times[0] < last {
			t.Fatalf("packet %d came at %d, after one at %d", i, times[0], last)
		}
		last = times[0]
		least, most = min(least, last-now), max(most, last-now)
	}
	low, high := 50*ms-int64(jitter)/2, 50*ms+int64(jitter)/2
	if least < low || most > high || least > low+ms || most < high-ms {
		t.Errorf("delays from %d to %d ns, want %d to %d", least, most, low, high)
	}
}

func TestReorderingHoldsBackAShare(t *testing.T) {
	l := only(Config{Delay: 10 * time.Millisecond, Reorder: 0.1, HoldBack: 5 * time.Millisecond, Seed: 2})
	for i := range int32(10000) {
		l.Offer(int64(i)*ms, one(i, 100))
	}
	runs, times := drain(l)
	overtaken := 0
	for i, r := range runs {
		switch late := times[i] - int64(r.ID)*ms - 10*ms; late {
		case 0:
		case 5 * ms:
			overtaken++
		default:
			t.Fatalf("packet %d is %d ns late", r.ID, late)
		}
	}
	if len(runs) != 10000 || overtaken < 920 || overtaken > 1080 || l.Counters.HeldBack != int64(overtaken) {
		t.Errorf("%d of %d held back (counted %d), want about 1000", overtaken, len(runs), l.Counters.HeldBack)
	}
}

func TestDuplicatesArriveTwice(t *testing.T) {
	l := only(Config{Delay: time.Millisecond, Duplicate: 0.1, Loss: 0.1, Seed: 2})
	times := map[int32]int{}
	kept := 0
	for i := range int32(10000) {
		n, _ := l.Offer(int64(i)*ms, one(i, 100))
		kept += n
		runs, _ := drain(l)
		for _, r := range runs {
			if !r.Lost {
				times[r.ID]++
			}
			kept -= r.Count
		}
	}
	twice := 0
	for _, n := range times {
		if n == 2 {
			twice++
		}
	}
	if kept != 0 {
		t.Errorf("Offer announced %d more than came back", kept)
	}
	if twice < 825 || twice > 975 || l.Counters.Duplicated != int64(twice) { // 99 % of binomial(10000, 0.09)
		t.Errorf("%d arrived twice, counted %d", twice, l.Counters.Duplicated)
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
	kept, tooBig := l.Offer(0, Train{ID: 1, Segments: 5, Bytes: 1500, Last: 900})
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

func TestDirectionsHaveLuckOfTheirOwn(t *testing.T) {
	c := Config{Loss: 0.5, Seed: 1}
	up, down := (&Path{Up: c, Down: c}).Lanes()
	same := 0
	for i := range int32(1000) {
		up.Offer(0, one(i, 100))
		down.Offer(0, one(i, 100))
	}
	a, _ := drain(up)
	b, _ := drain(down)
	for i := range a {
		if a[i].Lost == b[i].Lost {
			same++
		}
	}
	if same < 400 || same > 600 {
		t.Errorf("%d of 1000 packets had the same luck in both directions", same)
	}
}

// Being called late changes no time on the virtual clock.
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
	l := only(Config{Rate: 1e9, Delay: time.Millisecond, Loss: 0.01, Jitter: time.Millisecond, QueueBytes: 1 << 20, Duplicate: 0.01,
		Reorder: 0.01, HoldBack: time.Millisecond, PoliceRate: 1e9, PoliceBurst: 1 << 20})
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

// BenchmarkLane is the cost of a segment with everything modelled.
func BenchmarkLane(b *testing.B) {
	l := only(Config{Rate: 2e9, Delay: time.Millisecond, Loss: 0.0001, LossBurst: 3, Jitter: time.Millisecond, QueueBytes: 1 << 20,
		Duplicate: 0.0001, Reorder: 0.0001, HoldBack: time.Millisecond, PoliceRate: 3e9, PoliceBurst: 1 << 20})
	const segments = 40
	now := int64(0)
	b.ReportAllocs()
	for b.Loop() {
		now += segments * 6000
		l.Offer(now, Train{ID: 1, Segments: segments, Bytes: 1500, Last: 1500})
		for {
			if _, ok := l.Pop(now); !ok {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/segments, "ns/segment")
}
