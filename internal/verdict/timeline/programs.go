package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// starts returns when the sender went on after silences.
func (t *timeline) starts() flow.Starts {
	if t.d.Starts == nil {
		return flow.Starts{}
	}
	return *t.d.Starts
}

// gives reports whether a window of these bytes limits: each round trip it allows no more than the path delivers, and
// less than twice the goodput.
func (t *timeline) gives(window float64) bool {
	allows := window / t.baseRTT
	return t.baseRTT > 0 && allows < 2*t.goodput && (t.pathPace == 0 || allows <= t.pathPace)
}

// conversing reports whether the other end sends more than messages.
func (t *timeline) conversing() bool {
	d := t.d
	for _, other := range t.c.Directions() {
		if other != d && float64(other.Bytes) > threshold.ProgramWindowResponses.Value*float64(d.Bytes) {
			return true
		}
	}
	return false
}

// levelOfFlight returns the bytes in flight with which half of the data was delivered, or with
// fewer.
func (t *timeline) levelOfFlight() float64 {
	levels := make([]weighted, 0, len(t.d.Slices))
	for i := range t.d.Slices {
		s := &t.d.Slices[i]
		levels = append(levels, weighted{float64(s.OutMax), float64(s.Acked)})
	}
	return quantile(levels, 0.5)
}

// staysLevel reports whether the bytes in flight stay near their level while most of the data is
// delivered.
func (t *timeline) staysLevel() bool {
	at, span, carried := t.flat(t.flightLevel)
	return at > threshold.FlatLong.Value*span && carried > threshold.HeadlineShare.Value*float64(t.d.Bytes)
}

// flat returns for how long the bytes outstanding were near a level, the time between the first such moment and the
// last, seconds, and the bytes delivered in it.
func (t *timeline) flat(level float64) (took, span, carried float64) {
	var since, gap float64
	for i := range t.d.Slices {
		s := &t.d.Slices[i]
		if out := float64(s.OutMax); out > threshold.FlatShare.Value*level && threshold.FlatShare.Value*out < level {
			took += sliceTime(s)
			span += since + sliceTime(s)
			carried += gap + float64(s.Acked)
			since = 0
			gap = 0
		} else if took > 0 {
			since += sliceTime(s)
			gap += float64(s.Acked)
		}
	}
	return took, span, carried
}

func (t *timeline) describeExchanges(v verdict.Values) {
	count := float64(t.d.Exchanges)
	block := float64(t.d.Bytes) / count
	each := t.length / count
	v["rtt_s"] = t.baseRTT
	v["exchanges"] = count
	v["block_bytes"] = block
	v["exchange_s"] = each
	t.multiples(v, block, each, true)
}

func (t *timeline) describeProgramWindow(v verdict.Values) {
	v["rtt_s"] = t.baseRTT
	v["program_window_bytes"] = t.flightLevel
	v["window_bytes"] = float64(t.d.WindowMax)
	v["allows_bps"] = t.allows(int64(t.flightLevel))
	t.multiples(v, t.goodput*t.baseRTT, t.baseRTT, false)
}

// multiples are what twice and eight times as much would give: a block more in an exchange
// takes as long as the path needs to deliver it, and no wait of its own, and windows go side
// by side. Where the path's pace was not seen, twice of what is small is all that can be said.
func (t *timeline) multiples(v verdict.Values, block, each float64, serial bool) {
	if t.pathPace <= 0 {
		v["twice_bps"] = 8 * 2 * block / each
		return
	}
	most := min(t.pathPace, float64(t.d.WindowMax)/t.baseRTT)
	for name, k := range map[string]float64{"twice_bps": 2, "eightfold_bps": 8} {
		took := each
		if serial {
			took += (k - 1) * block / t.pathPace
		}
		v[name] = 8 * min(k*block/took, most)
	}
}
