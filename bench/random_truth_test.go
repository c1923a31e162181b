//go:build linux

package bench

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const (
	segment = 1448
	// clearOf is by how much the most that the limiter allows stays below the least that anything
	// else does, for the limiter to be known from the numbers of a path alone.
	clearOf = 1.25
	// socketMost is net.core.rmem_max and wmem_max, which cannot be raised in a lab.
	socketMost = 4 << 20
)

// allowance is the rate in bit/s that one thing alone allows, between two bounds.
type allowance struct{ least, most float64 }

var unbounded = allowance{math.Inf(1), math.Inf(1)}

// constructed returns the limiter by the numbers that the path was made of, without a measurement and without the
// judge: the one that allows less than all others, by clearOf. It is "" where two are too close; only the
// counterfactual decides there.
func (p randomPath) constructed() verdict.Name {
	if p.bytes > 0 {
		return p.opening()
	}
	all := p.allowances()
	for name, a := range all {
		alone := true
		for other, b := range all {
			alone = alone && (other == name || b.least >= clearOf*a.most)
		}
		if alone {
			return name
		}
	}
	return ""
}

// allowances are what each thing allows a long transfer by itself.
func (p randomPath) allowances() map[verdict.Name]allowance {
	window := func(least, most float64) allowance {
		return allowance{least * 8 / p.rtt.Seconds(), most * 8 / p.rtt.Seconds()}
	}
	return map[verdict.Name]allowance{
		verdict.Bottleneck:     {0.85 * p.bps, 0.96 * p.bps}, // queues that run empty; headers
		verdict.ReceiverWindow: window(p.receiveBounds()),
		verdict.SendBuffer:     window(p.sendBounds()),
		verdict.Congestion:     p.lossAllowance(),
	}
}

// receiveBounds are the bounds of the receive window in bytes. A buffer that sizes itself may end at a third of its
// maximum.
func (p randomPath) receiveBounds() (least, most float64) {
	const steady, selfSized = 0.75, 0.35
	s, drawn := stack(p.far)
	switch largest := float64(p.receives()); {
	case p.receive > 0:
		w := float64(model.LinuxReceiveWindow(2*min(p.receive, socketMost), segment))
		largest = min(w, max(largest, w))
		if p.receives() < p.receive { // the stack's own bound, or a window that is not scaled
			largest = float64(p.receives())
		}
		return steady * min(w, largest), 1.05 * min(w, largest)
	case p.receives() == math.MaxInt:
		return math.Inf(1), math.Inf(1)
	case drawn && s.Window > 0, p.receives() <= model.MaxUnscaled:
		return steady * largest, 1.05 * largest
	default:
		return selfSized * largest, largest
	}
}

// sendBounds are the bounds in bytes of the data that the send buffer keeps in flight. Linux may exceed its bound by
// the length of the queue (model.LinuxOverrun).
func (p randomPath) sendBounds() (least, most float64) {
	const write = 65536
	s, drawn := stack(p.near)
	switch {
	case p.send > 0 && s.SenderRule != "":
		return float64(p.send), float64(p.send + write)
	case p.send > 0:
		granted, bdp := model.LinuxGranted(p.send, socketMost), harness.PathPoint{RateBps: p.bps, RTT: p.rtt}.BDP()
		over := 4. / 3 * model.LinuxOverrun(float64(granted), bdp, max(p.queue*bdp, 15e3))
		return 0.8 * float64(model.LinuxInFlight(granted, 1)), max(1.1*float64(model.LinuxInFlight(granted, 0)), over)
	case drawn && s.SenderRule != "":
		return float64(p.sends()), float64(p.sends() + write)
	case drawn:
		return 0.5 * float64(p.sends()), float64(p.sends())
	}
	return math.Inf(1), math.Inf(1)
}

// lossAllowance is CUBIC's rate under the path's own losses, or Reno's for systems that had that.
// Fewer than five losses are luck.
func (p randomPath) lossAllowance() allowance {
	const few, low, high, timeouts = 5, 0.5, 1.8, 0.3
	share := p.loss / 100
	if share == 0 || p.bbr {
		return unbounded
	}
	rate := model.Cubic(segment, p.rtt, share)
	if s, drawn := stack(p.near); drawn && s.Source != "" {
		rate = model.Mathis(segment, p.rtt, share)
	}
	a := allowance{low * rate, high * rate}
	if p.near == "windows-95" || p.far == "windows-95" { // no selective acknowledgements
		a.least *= timeouts
	}
	if min(rate, p.bps)/8*p.setup().Spec.Time.Seconds()/segment*share < few {
		a.most = math.Inf(1)
	}
	return a
}

// opening reports whether slow start limits a file: one of a BDP that takes two doublings and more, or
// one of two that takes three, with nothing else in the way. Of larger ones the link has a share.
func (p randomPath) opening() verdict.Name {
	const initial = 10 * segment
	bdp := harness.PathPoint{RateBps: p.bps, RTT: p.rtt}.BDP()
	size, doublings := float64(p.bytes)/bdp, math.Log2(bdp/initial)
	least := math.Inf(1)
	for _, a := range []allowance{p.allowances()[verdict.ReceiverWindow], p.allowances()[verdict.SendBuffer]} {
		least = min(least, a.least)
	}
	if p.loss == 0 && least >= clearOf*p.bps && (size < 1.5 && doublings >= 2.2 || size < 2.5 && doublings >= 3) {
		return verdict.SlowStart
	}
	return ""
}

// rightByNumbers compares a verdict with the numbers of the path. A queue of less than a BDP that cubic sometimes
// leaves empty may be named for its losses.
func (p randomPath) rightByNumbers(v verdict.Verdict) (right, known bool) {
	name := p.constructed()
	if name == verdict.Bottleneck && v.Limiter == verdict.Congestion && p.queue < 1 {
		return false, false
	}
	return v.Limiter == name, name != ""
}

// TestConstructedTruth checks the limiter that the numbers of a path give. Those with gains were measured.
func TestConstructedTruth(t *testing.T) {
	for text, want := range map[string]verdict.Name{
		"bps=9830000 rtt=60.588ms queue=1":                                      verdict.Bottleneck,     // 0.97
		"bps=5690000 rtt=98.296ms queue=4 receive=104869":                       verdict.Bottleneck,     // 0.83
		"bps=3770000 rtt=5.245ms queue=0.5 loss=1 jitter=262.25µs ipv6=true":    verdict.Bottleneck,     // 0.96
		"bps=18450000 rtt=60.964ms queue=4 send=421794 receive=35149":           verdict.ReceiverWindow, // 2.21
		"bps=4940000 rtt=130.575ms queue=1 far=windows-95":                      verdict.ReceiverWindow, // 7.95
		"bps=38530000 rtt=142.947ms queue=1 loss=1 send=2065405 receive=688468": verdict.Congestion,     // 17.42
		"bps=8550000 rtt=58.34ms queue=4 loss=1 jitter=2.917ms":                 verdict.Congestion,     // 1.09
		"bps=60220000 rtt=79.483ms queue=1 jitter=3.97415ms bytes=598308":       verdict.SlowStart,      // 1.64
		"bps=30000000 rtt=120ms queue=0.5 send=112500":                          verdict.SendBuffer,
		// two causes that are too near to each other
		"bps=10230000 rtt=14.424ms queue=4 receive=14755":              "", // 0.07 and 0.31
		"bps=27610000 rtt=133.598ms queue=1 send=115270 receive=23054": verdict.ReceiverWindow,
		"bps=27610000 rtt=133.598ms queue=1 send=115270 receive=90540": "",
		"bps=40580000 rtt=9.625ms queue=1 send=12205 receive=39058":    "", // 0.56, 0.58, 0.96
		"bps=2000000 rtt=20ms queue=1 loss=0.01":                       verdict.Bottleneck,
		"bps=90000000 rtt=140ms queue=1 loss=0.01 receive=1400000":     "",
	} {
		p, err := parsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.constructed(); got != want {
			t.Errorf("%s: %q, want %q: %v", text, got, want, p.allowances())
		}
	}
	r, seen := rand.New(rand.NewPCG(7, 0)), map[verdict.Name]int{}
	for range 1000 {
		seen[drawPath(r, mostRandom).constructed()]++
	}
	for _, name := range []verdict.Name{verdict.Bottleneck, verdict.ReceiverWindow, verdict.SendBuffer, verdict.Congestion,
		verdict.SlowStart} {
		if seen[name] < 5 {
			t.Errorf("%s is known of %d in 1,000: %v", name, seen[name], seen)
		}
	}
}
