package timeline

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// nextLossy draws a transfer of a kind that sampledKinds does not have.
func (r sample) nextLossy(kind string) sampled {
	x := r.next("window")
	x.kind = kind
	x.window = 4 << 20
	x.right = []verdict.Name{verdict.Congestion}
	line := x.bps * float64(x.mss()) / 1500
	bdp := line / 8 * float64(x.rtt) / 1e9
	rounds := 60 + r.IntN(100)
	switch kind {
	case "random loss", "no duplicate ACKs":
		p := r.between(0.001, 0.03)
		x.lose = func() bool { return r.Float64() < p }
		x.noDupACKs = kind == "no duplicate ACKs"
		x.noSACK = x.noDupACKs || r.IntN(2) == 0
		x.rate = float64(x.mss()) * 8 / (float64(x.rtt) / 1e9) * 1.22 / math.Sqrt(p)
		if x.rate > 0.5*line {
			x.right = nil
		}
		x.bytes = int(max(x.rate/8*float64(x.rtt)/1e9*float64(rounds), 6/p*float64(x.mss())))
	case "shallow queue":
		x.queue = int(max(4, r.between(0.05, 0.6)*bdp/1460))
		x.bytes = int(bdp * float64(rounds))
		x.right = []verdict.Name{verdict.Congestion, verdict.Bottleneck}
		if bdp < 20*1460 {
			x.right = nil
		}
	case "policer":
		x.policeBps = x.bps * r.between(0.05, 0.6)
		x.bucket = max(r.between(0.1, 1.5)*x.policeBps/8*float64(x.rtt)/1e9, 8*1500)
		x.bytes = int(max(float64(rounds)*float64(x.rtt)/1e9, 4) * x.policeBps / 8)
	case "ack timer":
		segments := 1 + r.IntN(10)
		x.window = (segments*x.mss() + 127) &^ 127
		x.ackEvery = 1000
		x.delayedAck = int64(r.between(40, 250)) * ms
		x.rtt = int64(r.between(0.5, float64(x.delayedAck)/4e6) * 1e6)
		x.loop = int64([]float64{0.01, 0.5, 0.99}[r.IntN(3)] * float64(x.rtt))
		x.tapBeforeLine = 10*x.loop < x.rtt
		x.delay = nil
		x.bps = r.between(1e7, 1e9)
		x.bytes = rounds * segments * x.mss()
		x.right = []verdict.Name{verdict.NagleDelayedAck}
	case "low ssthresh":
		x.drops.ssthresh = 2 + r.IntN(9)
		x.bytes = min(rounds, 100) * min(rounds, 100) / 6 * x.mss()
		if bdp < 120*1460 {
			x.right = nil
		}
	}
	return x
}

var lossyKinds = []string{"random loss", "no duplicate ACKs", "shallow queue", "policer", "ack timer", "low ssthresh"}

// mutated draws what may happen to a capture before it is judged, and names it.
func (r sample) mutated(all []flow.Segment) ([]flow.Segment, string) {
	first := all[0].Src
	without := func(drop func(i int, s *flow.Segment) bool) []flow.Segment {
		var kept []flow.Segment
		for i := range all {
			if !drop(i, &all[i]) {
				kept = append(kept, all[i])
			}
		}
		return kept
	}
	switch r.IntN(14) {
	case 0:
		return without(func(_ int, s *flow.Segment) bool { return s.Flags&flow.SYN != 0 }), "no handshake"
	case 1:
		share := r.Float64() * 0.5
		return all[int(share*float64(len(all))):], fmt.Sprintf("without the first %.0f %%", 100*share)
	case 2:
		share := 0.3 + r.Float64()*0.6
		return all[:max(int(share*float64(len(all))), 10)], fmt.Sprintf("only the first %.0f %%", 100*share)
	case 3:
		share := r.between(0.0005, 0.03)
		return without(func(int, *flow.Segment) bool { return r.Float64() < share }),
			fmt.Sprintf("%.2f %% lost at the tap", 100*share)
	case 4:
		every, long, left := 300+r.IntN(3000), 1+r.IntN(60), 0
		return without(func(int, *flow.Segment) bool {
			if left--; left < 0 && r.IntN(every) == 0 {
				left = long
			}
			return left > 0
		}), fmt.Sprintf("%d packets lost at the tap one time in %d", long, every)
	case 5:
		grain := int64(r.between(0.05, 10) * 1e6)
		for i := range all {
			all[i].At -= all[i].At % grain
		}
		return all, fmt.Sprintf("a clock of %d us", grain/1000)
	case 6:
		by := int64([]float64{-1, 1}[r.IntN(2)] * r.between(5, 4000) * 1e6)
		for i := range all[len(all)/2:] {
			all[len(all)/2+i].At += by
		}
		return all, fmt.Sprintf("the clock set by %d ms", by/ms)
	case 7:
		for i := range all {
			if all[i].Flags&flow.SYN != 0 {
				all[i].Options = all[i].Options&^(flow.HasScale|flow.HasSACKPermitted|flow.HasTimestamps) | flow.OptionsCut
			}
		}
		return all, "options cut"
	case 8:
		return without(func(_ int, s *flow.Segment) bool { return s.Payload == 0 && s.Flags&flow.SYN == 0 }),
			"acknowledgements left out"
	case 9:
		forward := r.IntN(2) == 0
		return without(func(_ int, s *flow.Segment) bool { return (s.Src == first) != forward }), "one direction"
	case 10:
		by := -uint32(1000 + r.IntN(1<<20))
		for i := range all {
			s := &all[i]
			if s.Src == first {
				s.Seq += by
				continue
			}
			s.Ack += by
			for k := range s.SACKs {
				s.SACK[k][0] += by
				s.SACK[k][1] += by
			}
		}
		return all, "other sequence numbers"
	case 11:
		within := int64(r.between(0.02, 0.5) * 1e6)
		return mergedSegments(all, within), fmt.Sprintf("segments within %d us merged", within/1000)
	case 12:
		forward, late, floor := r.IntN(2) == 0, int64(r.between(0.05, 3)*1e6), int64(0)
		for i := range all {
			if s := &all[i]; (s.Src == first) == forward {
				floor = max(floor, s.At+late-s.At%late)
				s.At = floor
			}
		}
		return all, fmt.Sprintf("one direction stamped up to %d us late", late/1000)
	}
	return all, "nothing changed"
}

// mergedSegments joins segments that follow each other, as a receiving host does before a capture sees them.
func mergedSegments(all []flow.Segment, within int64) (out []flow.Segment) {
	for _, s := range all {
		if n := len(out) - 1; n >= 0 {
			last := &out[n]
			if last.Src == s.Src && last.Payload > 0 && s.Payload > 0 && s.Seq == last.Seq+last.Payload && last.Ack == s.Ack &&
				s.At-last.At <= within && last.Payload+s.Payload < 65_000 {
				last.Payload += s.Payload
				last.Flags |= s.Flags
				last.At = s.At
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// TestJudge_MutatedTransfers judges transfers of twelve kinds, with other numbers in each, after what may happen to a
// capture: one or two of thirteen mutations. FULLPIPE_BANK=1 judges 670 of them; FULLPIPE_BANK_SEED draws others.
func TestJudge_MutatedTransfers(t *testing.T) {
	count, seed := 84, uint64(48)
	if os.Getenv("FULLPIPE_BANK") == "1" {
		count = 670
	}
	if text := os.Getenv("FULLPIPE_BANK_SEED"); text != "" {
		seed = must.Get(strconv.ParseUint(text, 10, 64))(t)
	}
	kinds := slices.Concat(sampledKinds, lossyKinds)
	rows := map[string]*tally{}
	total := &tally{}
	for i := 0; total.all() < count; i++ {
		r := sample{rand.New(rand.NewPCG(seed, uint64(i)))}
		kind := kinds[total.all()%len(kinds)]
		var x sampled
		if slices.Contains(lossyKinds, kind) {
			x = r.nextLossy(kind)
		} else {
			x = r.next(kind)
		}
		small := kind != "ack timer" && !x.isClear()
		if small || len(x.right) == 0 || x.bytes > maxSampledBytes {
			continue
		}
		s := x.run(t)
		slices.SortStableFunc(s.tape.all, func(a, b flow.Segment) int { return int(max(min(a.At-b.At, 1), -1)) })
		if !slices.Contains(lossyKinds, kind) {
			x.addSlowStart(float64(s.done-2*x.rtt)/1e9, s.ranOut)
		}
		all, names := s.tape.all, ""
		for range 1 + r.IntN(2) {
			var name string
			if len(all) > 20 {
				all, name = r.mutated(all)
				names += ", " + name
			}
		}
		g := judgedSegments(all)
		if rows[kind] == nil {
			rows[kind] = &tally{}
		}
		rows[kind].add(&g, x.right)
		total.add(&g, x.right)
		share := g.Shares[g.Limiter]
		if len(g.Shares) > 0 && g.Limiter != verdict.Mixed && share < threshold.NagleShare.Value {
			t.Errorf("%d: %s with %.2f of the time: %v", i, g.Limiter, share, g.Shares)
		}
		open := g.Limiter == verdict.Unknown || g.Limiter == verdict.Mixed
		if !slices.Contains(x.right, g.Limiter) && !open && g.Confidence != verdict.Low {
			t.Logf("%d: %s%s, %.3g Mbit/s, %.3g ms, tap at %.0f %%: %s, %s (%s) %v, want one of %v", i, kind, names, x.bps/1e6,
				float64(x.rtt)/1e6, 100*float64(x.loop)/float64(x.rtt), g.Confidence, g.Limiter, g.Subtype, g.Shares, x.right)
		}
	}
	t.Logf("%-20s right open, wrong with low, medium and high confidence", "")
	for _, kind := range slices.Sorted(maps.Keys(rows)) {
		t.Logf("%-20s %s", kind, rows[kind])
	}
	t.Logf("%-20s %s", "all", total)
	if total.high > 3*count/670 {
		t.Errorf("%d of %d are wrong with high confidence", total.high, count)
	}
}

// judgedSegments judges the direction that carried most of a capture's segments.
func judgedSegments(all []flow.Segment) (g Diagnosis) {
	g.Limiter = verdict.Unknown
	table := flow.NewTable(flow.Config{})
	for i := range all {
		table.Add(&all[i])
	}
	var most *flow.Direction
	for _, c := range table.Finish() {
		for _, d := range c.Directions() {
			if most == nil || d.Bytes > most.Bytes {
				most = d
				g = Judge(c, d)
			}
		}
	}
	return g
}
