package link

import (
	"math"
	"slices"
	"testing"
	"time"
)

func TestLossIsTheSameForTheSameSeed(t *testing.T) {
	lostOnes := func(c Config, batches bool) (lost []int) {
		l, seen := only(c), 0
		for i := 0; i < 20000; i += 40 {
			if batches {
				l.Offer(int64(i), Batch{ID: int32(i), Segments: 40, Bytes: 1500, Last: 1500})
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
		t.Error("batches lose other packets than single ones do")
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

// Queue drops do not change which offered packets the line loses.
func TestLossDoesNotDependOnTheQueue(t *testing.T) {
	fates := func(queue int64) map[int32]bool {
		l := only(Config{Rate: 1e6, QueueBytes: queue, Loss: 0.1, Seed: 3})
		for i := range int32(2000) {
			l.Offer(int64(i)*6*ms, one(i, 1500)) // twice the capacity
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
			l.Offer(0, Batch{ID: 1, Segments: n / 2, Bytes: 100, Last: 100})
			l.Offer(0, Batch{ID: 2, Segments: n / 2, Bytes: 100, Last: 100})
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

func TestReordering_DelaysTheConfiguredShare(t *testing.T) {
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
	if len(runs) != 10000 || overtaken < 920 || overtaken > 1080 || l.Counters.Reordered != int64(overtaken) {
		t.Errorf("%d of %d reordered (counted %d), want about 1000", overtaken, len(runs), l.Counters.Reordered)
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
