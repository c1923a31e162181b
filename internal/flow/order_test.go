package flow

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// conversations are a few connections in which data is sent and acknowledged, n segments
// in all, half a millisecond apart. Their ends count timestamps in milliseconds, or have
// none.
func conversations(n int, timestamps bool) []Segment {
	all := make([]Segment, n)
	var sent [4]uint32
	for i := range all {
		c := i % 4
		s := &all[i]
		*s = Segment{At: 1e15 + int64(i)*500_000, Flags: ACK, Window: 500}
		a, b := Endpoint4(1, uint16(40000+c)), Endpoint4(2, 443)
		if i/4%3 < 2 {
			s.Src, s.Dst, s.Seq, s.Ack, s.Payload = a, b, 1000+sent[c], 77, 1448
			sent[c] += 1448
		} else {
			s.Src, s.Dst, s.Seq, s.Ack = b, a, 77, 1000+sent[c]
		}
		if timestamps {
			s.Options, s.TSVal, s.TSEcr = HasTimestamps, uint32(i/2), uint32(i/2)
		}
	}
	return all
}

// settleAll gives segments to an Order in batches, as a file does.
func settleAll(o *Order, all []Segment, batch int) (out []Segment) {
	var b []Segment
	for len(all) > 0 {
		n := min(batch-len(b), len(all))
		b, all = append(b, all[:n]...), all[n:]
		settled := o.Settle(b, len(all) == 0)
		out = append(out, b[:settled]...)
		b = slices.Clone(b[settled:])
	}
	return out
}

func TestRecordsOutOfOrderAreSorted(t *testing.T) {
	for _, batch := range []int{256, 1024} {
		for seed := range uint64(8) {
			want := conversations(5000, seed%2 == 0)
			r := rand.New(rand.NewPCG(seed, 1))
			got := slices.Clone(want)
			// Two queues that are emptied by turns: each record is written up to 20 ms late.
			written := map[int64]int64{}
			for i := range got {
				written[got[i].At] = got[i].At + r.Int64N(20e6)
			}
			slices.SortStableFunc(got[100:], func(a, b Segment) int { return cmp.Compare(written[a.At], written[b.At]) })
			var o Order
			if got = settleAll(&o, got, batch); !slices.Equal(got, want) {
				t.Errorf("batches of %d, seed %d: not in order again: %+v", batch, seed, o)
			}
			if o.Late < 1000 || o.LateMost > 20e6 || o.Steps+o.Misstamped+o.Unplaced != 0 {
				t.Errorf("batches of %d, seed %d: %+v", batch, seed, o)
			}
		}
	}
}

// Copies of another hop pass when newer segments have passed the first one: in records out of
// order they are no sign that the clock was set.
func TestCopiesAreNoSteps(t *testing.T) {
	for seed := range uint64(8) {
		var want []Segment
		for _, s := range conversations(5000, seed%2 == 0) {
			s.TTL = 64
			again := s
			again.TTL, again.At = 63, s.At+2_600_000
			want = append(want, s, again)
		}
		slices.SortStableFunc(want, func(a, b Segment) int { return cmp.Compare(a.At, b.At) })
		r := rand.New(rand.NewPCG(seed, 1))
		late := 1_000_000 + r.Int64N(15e6)
		written, order := make([]int64, len(want)), make([]int, len(want))
		for i := range want {
			written[i], order[i] = want[i].At+r.Int64N(late), i
		}
		slices.SortStableFunc(order[100:], func(a, b int) int { return cmp.Compare(written[a], written[b]) })
		var got []Segment
		for _, from := range order {
			got = append(got, want[from])
		}
		var o Order
		if settleAll(&o, got, 1024); o.Steps+o.Misstamped+o.Unplaced != 0 {
			t.Errorf("seed %d, records up to %d us late: %+v", seed, late/1000, o)
		}
	}
}

func TestClockStepsAreUndone(t *testing.T) {
	for _, step := range []int64{-15e6, -80e6, -900e6, -3600e9, 3600e9, 30e9, 700e6, 260e6} {
		for _, timestamps := range []bool{true, false} {
			if step > 0 && !timestamps {
				continue // an hour without a segment looks the same
			}
			t.Run(fmt.Sprintf("%d ms, timestamps %v", step/1e6, timestamps), func(t *testing.T) {
				want := conversations(3000, timestamps)
				got := slices.Clone(want)
				for i := range got[1234:] {
					got[1234+i].At += step
				}
				var o Order
				got = settleAll(&o, got, 256)
				for i := range got {
					if off := got[i].At - want[i].At; off < -500_000 || off > 1_500_000 { // a unit of the timestamps too long
						t.Fatalf("segment %d is %d ns off: %+v", i, off, o)
					}
				}
				if o.Steps != 1 || o.Late+o.Misstamped != 0 || o.StepMost > 0 != (step > 0) {
					t.Errorf("%+v", o)
				}
			})
		}
	}
}

// A pause is no step: neither where a path delayed everything, nor where the timestamps do not change.
func TestPausesAreNoSteps(t *testing.T) {
	for name, change := range map[string]func(i int, s *Segment){
		"nothing to send": func(i int, s *Segment) { s.TSVal += 10_000 },
		"an outage that delayed one end's segments": func(i int, s *Segment) {
			if s.Payload == 0 {
				s.TSVal += 10_000
			}
		},
		"timestamps in units of half a second": func(i int, s *Segment) { s.TSVal = uint32((s.At - 1e15) / 500e6) },
		"timestamps that do not change":        func(i int, s *Segment) { s.TSVal = 600 },
	} {
		got := conversations(3000, true)
		for i := range got {
			if i >= 1234 {
				got[i].At += 10e9
			}
			if i >= 2000 && name == "timestamps in units of half a second" {
				got[i].At += 570e6
			}
			if i >= 1234 || name[0] == 't' {
				change(i, &got[i])
			}
		}
		var o Order
		if out := settleAll(&o, slices.Clone(got), 256); !slices.Equal(out, got) || o != (Order{begun: true, latest: o.latest,
			floor: o.floor}) {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

func TestOneOddStampIsNoStep(t *testing.T) {
	want := conversations(3000, true)
	got := slices.Clone(want)
	got[1234].At -= 10e6
	var o Order
	got = settleAll(&o, got, 256)
	for i := range got {
		if off := got[i].At - want[i].At; abs(off) > 500_000 {
			t.Fatalf("segment %d is %d ns off: %+v", i, off, o)
		}
	}
	if o.Misstamped != 1 || o.Late+o.Steps != 0 {
		t.Errorf("%+v", o)
	}
}

func TestOrder_StampsCenturiesApart(t *testing.T) {
	first, second := conversations(1, true)[0], conversations(2, true)[1] // of two senders
	first.At, second.At = math.MaxInt64/4*3, math.MinInt64/4*3
	var o Order
	settleAll(&o, []Segment{first, second}, 256)
	if o.Late != 0 || o.Steps != 1 {
		t.Errorf("%+v, want a step of the clock", o)
	}
}

// FuzzOrder gives any stamps: every segment comes out once, and times run backwards only for those that came too
// late.
func FuzzOrder(f *testing.F) {
	f.Add([]byte{1, 2, 3, 200, 4, 5}, uint16(16))
	f.Fuzz(func(t *testing.T, stamps []byte, batch uint16) {
		all := conversations(len(stamps), len(stamps)%2 == 0)
		for i := range all {
			all[i].IPID = uint16(i)
			all[i].At += int64(int8(stamps[i])) * int64(stamps[i]) * 1_000_000
		}
		var o Order
		out := settleAll(&o, slices.Clone(all), 8+int(batch)%512)
		if len(out) != len(all) {
			t.Fatalf("%d of %d came out", len(out), len(all))
		}
		backwards := int64(0)
		for i := range out {
			if i > 0 && out[i].At < out[i-1].At {
				backwards++
			}
		}
		if backwards > o.Unplaced {
			t.Fatalf("%d times backwards, %+v", backwards, o)
		}
		slices.SortFunc(out, func(a, b Segment) int { return cmp.Compare(a.IPID, b.IPID) })
		for i := range out {
			if out[i].IPID != uint16(i) {
				t.Fatalf("segment %d is missing", i)
			}
		}
	})
}

// BenchmarkOrder settles records as they are read: in order, as nearly all captures are, and
// with one in sixteen behind its place.
func BenchmarkOrder(b *testing.B) {
	for name, late := range map[string]int{"in order": 0, "one in 16 late": 16} {
		b.Run(name, func(b *testing.B) {
			const batch = 1024
			all := conversations(64*batch, true)
			for i := 16; late > 0 && i < len(all); i += late {
				all[i].At -= 1e6
			}
			segments := make([]Segment, batch)
			b.ReportAllocs()
			for b.Loop() {
				var o Order
				kept := 0
				for at := 0; at < len(all); {
					n := copy(segments[kept:], all[at:])
					at += n
					settled := o.Settle(segments[:kept+n], at == len(all))
					kept = copy(segments, segments[settled:kept+n])
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(all)), "ns/segment")
		})
	}
}
