package trust

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestOf_Reasons(t *testing.T) {
	whole := Direction{Bytes: 1_000_000, Segments: 1000, PaceBps: 1_250_000, RTT: 0.02}
	tests := []struct {
		name         string
		change       func(d *Direction)
		loss, timing bool
		reasons      []Code
	}{
		{"whole", func(*Direction) {}, true, true, nil},
		{"one way", func(d *Direction) { d.OneWay = true; d.Missing = 900_000 }, false, false, []Code{OneDirection}},
		{"2 % missing", func(d *Direction) { d.Missing = 20_000 }, true, true, []Code{NotCaptured}},
		{"3 % missing", func(d *Direction) { d.Missing = 30_000 }, true, false, []Code{NotCaptured}},
		{"10 % missing", func(d *Direction) { d.Missing = 100_000 }, true, false, []Code{NotCaptured}},
		{"11 % missing", func(d *Direction) { d.Missing = 110_000 }, false, false, []Code{NotCaptured}},
		{"9 % merged", func(d *Direction) { d.MergedCount = 1; d.MergedBytes = 90_000 }, true, true, nil},
		{"merged within the round trip", merged(AtReceiver, 40, 1_000_000), true, true, []Code{MergedReceive}},
		{"merged beyond it", merged(AtReceiver, 39, 1_000_000), true, false, []Code{MergedReceive}},
		{"merged by the sender", merged(AtSender, 10, 600_000), true, false, []Code{MergedTransmit}},
		{"merged elsewhere, pace unknown", func(d *Direction) {
			merged(Elsewhere, 10, 600_000)(d)
			d.PaceBps = 0
		}, true, true, []Code{Merged}},
		{"2 % cut", func(d *Direction) { d.CutOptions = 20 }, true, true, nil},
		{"3 % cut", func(d *Direction) { d.CutOptions = 30 }, false, true, []Code{OptionsCut}},
		{"clock set", func(d *Direction) { d.ClockSteps = 1 }, true, false, []Code{ClockSteps}},
		{"coarse clock", func(d *Direction) { d.Grain = 0.01; d.Coarse = true }, true, false, []Code{CoarseClock}},
		{"batches", func(d *Direction) { d.Grain = 0.03; d.Coarse = true; d.InBatches = true }, true, false, []Code{Batched}},
		{"half of it twice", func(d *Direction) { d.Duplicates = 1000 }, true, true, []Code{Duplicates}},
		{"offload and drops", func(d *Direction) {
			merged(AtReceiver, 1, 500_000)(d)
			d.Missing = 30_000
		}, true, false, []Code{MergedReceive, NotCaptured}},
	}
	for _, test := range tests {
		d := whole
		test.change(&d)
		got := Of(&d)
		var reasons []Code
		for _, r := range got.Reasons {
			reasons = append(reasons, r.Code)
			if slices.Contains(r.Denies, Loss) && got.Loss || slices.Contains(r.Denies, Timing) && got.Timing {
				t.Errorf("%s: %s denies %v, but %+v", test.name, r.Code, r.Denies, got)
			}
		}
		if got.Loss != test.loss || got.Timing != test.timing || !slices.Equal(reasons, test.reasons) {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

func merged(place Place, count, bytes int64) func(d *Direction) {
	return func(d *Direction) {
		d.Place = place
		d.MergedCount = count
		d.MergedBytes = bytes
	}
}

func TestTrust_AddCapture(t *testing.T) {
	for _, test := range []struct {
		capture      Capture
		loss, timing bool
	}{
		{Capture{Packets: 1000}, true, true},
		{Capture{Packets: 1000, Dropped: 10}, true, true},
		{Capture{Packets: 1000, Dropped: 50}, true, false},
		{Capture{Packets: 1000, Dropped: 200}, false, false},
		{Capture{Packets: 1000, HeadersCut: 30}, true, false},
		{Capture{Packets: 1000, HeadersCut: 500}, false, false},
		{Capture{Packets: 1000, ClockSteps: 1}, true, false},
	} {
		got := Trust{Loss: true, Timing: true}
		got.AddCapture(test.capture)
		if got.Loss != test.loss || got.Timing != test.timing {
			t.Errorf("%+v: %+v", test.capture, got)
		}
	}
}

func TestTrust_Add_KeepsTheStronger(t *testing.T) {
	got := Trust{Loss: true, Timing: true}
	for _, missing := range []float64{0.01, 0.2, 0.03} {
		got.AddShare(NotCaptured, "missing_ratio", missing)
	}
	if len(got.Reasons) != 1 || got.Reasons[0].Values["missing_ratio"] != 0.2 {
		t.Errorf("%+v", got)
	}
}

func TestTrust_Supports(t *testing.T) {
	denied := func(code Code, subjects ...Subject) Trust {
		t := Trust{Loss: true, Timing: true}
		t.Add(Reason{Code: code, Denies: subjects})
		return t
	}
	for _, test := range []struct {
		name                            string
		trust                           Trust
		blackHole, congestion, everyone bool
	}{
		{"nothing", denied(Duplicates), true, true, true},
		{"cut options", denied(OptionsCut, Loss), true, false, true},
		{"clock", denied(ClockSteps, Timing), true, false, false},
		{"missing", denied(NotCaptured, Loss, Timing), false, false, false},
	} {
		got := []bool{test.trust.Supports(verdict.MTUBlackHole), test.trust.Supports(verdict.Congestion),
			test.trust.Supports(verdict.ReceiverWindow)}
		if want := []bool{test.blackHole, test.congestion, test.everyone}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", test.name, got, want)
		}
	}
}

func TestMerge(t *testing.T) {
	good := Trust{Loss: true, Timing: true}
	bad := Of(&Direction{Bytes: 100, OneWay: true})
	for _, test := range []struct {
		bytes []int64
		loss  bool
	}{{[]int64{1000, 100}, true}, {[]int64{800, 100}, false}} {
		if got := Merge([]Trust{good, bad}, test.bytes); got.Loss != test.loss {
			t.Errorf("%v: %+v", test.bytes, got)
		}
	}
}
