package diagnose

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// segments plays a connection with data from the client at a steady pace, each segment acknowledged. Data waits
// queue(t) nanoseconds between the taps, acknowledgements acks(t). The far tap, on the server's side, has a clock of
// its own.
func segments(r *rand.Rand, n int, least, offset, drift float64, queue, acks func(float64) float64) (near, far tapped) {
	const began, apart = 1.7e18, 1e6
	by := func(t float64) int64 { return int64(began + t + offset + drift*t) }
	for i := range n {
		t := float64(i) * apart
		there := t + least/2 + queue(t) + r.Float64()*20e3
		back := there + 50e3 + least/2 + acks(there) + r.Float64()*20e3
		data, ack := flow.Name(2*i)<<24|1, flow.Name(2*i+1)<<24|1
		near.client = append(near.client, flow.Pass{Name: data, At: int64(began + t)})
		near.server = append(near.server, flow.Pass{Name: ack, At: int64(began + back)})
		if r.IntN(10) > 0 { // the rest is lost, or not kept
			far.client = append(far.client, flow.Pass{Name: data, At: by(there)})
		}
		far.server = append(far.server, flow.Pass{Name: ack, At: by(there + 50e3)})
	}
	return near, far
}

// With any clocks, the queue is found on its way, also one that grows all the time.
func TestAlign(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	none := func(float64) float64 { return 0 }
	growing := func(t float64) float64 { return t / 100 }
	swelling := func(t float64) float64 { return t/2000 + 40e6*math.Mod(t/1e9, 1) } // slowly: as drift would
	saw := func(t float64) float64 { return 40e6 * math.Mod(t/1e9, 1) }
	for _, c := range []struct {
		name        string
		queue, acks func(float64) float64
		data, back  float64 // means over 10 s
	}{
		{"no queue", none, none, 0, 0},
		{"data waits longer and longer", growing, none, 50e6, 0},
		{"a saw", saw, none, 20e6, 0},
		{"acknowledgements wait", none, saw, 0, 20e6},
		{"both", saw, saw, 20e6, 20e6},
		{"acknowledgements wait longer and longer", none, growing, 0, 50e6},
		{"acknowledgements wait, little longer by and by", none, swelling, 0, 22.5e6},
	} {
		for range 20 {
			least := 1e6 + r.Float64()*100e6
			offset, drift := (r.Float64()-0.5)*1e11, (r.Float64()-0.5)*1e-3
			near, far := segments(r, 10_000, least, offset, drift, c.queue, c.acks)
			taps, from := [2]tapped{near, far}, 1.0
			if r.IntN(2) == 0 {
				taps[0], taps[1], from = far, near, -1
			}
			sortPasses(&taps)
			a, ok := alignPasses(taps[0], taps[1], taps[0].client[0].At)
			if !ok || a.nearIsClient != (from > 0) {
				t.Fatalf("%s: aligned %v, the near tap at the client's side %v", c.name, ok, a.nearIsClient)
			}
			if math.Abs(a.drift-from*drift) > 10e-6 {
				t.Errorf("%s: a drift of %v, want %v", c.name, a.drift, from*drift)
			}
			const close = 1e6
			if math.Abs(a.least-least) > close || math.Abs(a.client.queueMean-c.data) > close ||
				math.Abs(a.server.queueMean-c.back) > close {
				t.Errorf("%s, drift %v: %v least, data waits %v, acknowledgements %v; want %v, %v, %v", c.name, drift, a.least,
					a.client.queueMean, a.server.queueMean, least, c.data, c.back)
			}
			if off := math.Abs(a.offset - from*offset); from > 0 && off > least/2+close {
				t.Errorf("%s: an offset of %v, want %v within %v", c.name, a.offset, offset, least/2)
			}
		}
	}
}

func sortPasses(taps *[2]tapped) {
	for i := range taps {
		for _, all := range [][]flow.Pass{taps[i].client, taps[i].server} {
			slices.SortFunc(all, func(x, y flow.Pass) int { return int(x.At - y.At) })
		}
	}
}

// Too little in common, or nothing, is said to be so.
func TestAlignTooLittle(t *testing.T) {
	near, far := segments(rand.New(rand.NewPCG(1, 2)), 5, 1e6, 0, 0, func(float64) float64 { return 0 },
		func(float64) float64 { return 0 })
	for _, twin := range []tapped{{}, far} {
		if _, ok := alignPasses(near, twin, 1.7e18); ok {
			t.Error("aligned")
		}
	}
}
