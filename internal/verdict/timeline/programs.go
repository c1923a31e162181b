package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// programs finds, where the sending host limits itself, the two ways in which its program waits for the other end:
// block by block, and by a window of its own.
func (t *timeline) programs(g *Diagnosis) {
	if g.Limiter != verdict.Application && g.Limiter != verdict.Sender {
		return
	}
	switch {
	case t.exchanging():
		g.Limiter = verdict.Application
		g.Subtype = verdict.RequestResponse
	case t.programWindow():
		g.Limiter = verdict.Application
		g.Subtype = verdict.ProgramWindow
	default:
		return
	}
	g.Shares[verdict.Application] += g.Shares[verdict.Sender]
	delete(g.Shares, verdict.Sender)
}

// exchanging reports whether blocks of data each waited for a message of the other end, and that
// the round trips which that takes are most of the time.
func (t *timeline) exchanging() bool {
	d := t.d
	if d.Exchanges < int64(threshold.FewRounds.Value) || t.baseRTT <= 0 ||
		float64(d.Exchanges) < threshold.ExchangesRestart*float64(d.Restarts) || t.clocked() {
		return false
	}
	return t.baseRTT*float64(d.Exchanges) > threshold.ExchangesWait*t.length
}

// programWindow reports whether the bytes in flight stay constant, below the receive window, while the other end keeps
// sending messages: then the program has a window of its own, which the messages open.
func (t *timeline) programWindow() bool {
	d := t.d
	if t.rounds < int(threshold.FewRounds.Value) || t.losing ||
		float64(d.WindowMax) < threshold.ProgramWindowRoom*t.level() ||
		t.level() < float64(threshold.ProbeSegments*d.MSS) || t.conversing() || !t.gives(t.level()) || t.unprompted() {
		return false
	}
	if t.inTurn() {
		return true
	}
	if float64(d.Spoken) < threshold.ExchangesRestart*float64(t.rounds) ||
		float64(d.Restarts) > (1-threshold.ExchangesRestart)*float64(t.rounds) { // blocks, with a pause after each
		return false
	}
	at, span, carried := t.flat(t.level())
	return at > threshold.FlatLong*span && carried > threshold.HeadlineShare.Value*float64(d.Bytes)
}

// clocked reports whether a clock of the sender's own starts its blocks: they come at equal intervals, and the wait
// for the other end is only a part of each.
func (t *timeline) clocked() bool {
	s := t.d.Starts
	return s.Variation() < threshold.ClockedVariation && float64(s.Own)/1e9 > threshold.OwnTime*t.length
}

// unprompted reports whether the sender went on after silences without a message of the other end.
func (t *timeline) unprompted() bool {
	s := t.d.Starts
	return s != nil && s.Count >= int64(threshold.FewRounds.Value) &&
		float64(s.Prompted) < threshold.Prompted*float64(s.Count)
}

// gives reports whether a window of these bytes limits: each round trip it allows no more than the path delivers, and
// less than twice the goodput.
func (t *timeline) gives(window float64) bool {
	allows := window / t.baseRTT
	return t.baseRTT > 0 && allows < 2*t.goodput && (t.pathPace == 0 || allows <= t.pathPace)
}

// inTurn reports whether several blocks are in flight at a time and each waits for the answer to an earlier one, as
// requests to a file server. The sender falls silent within most round trips, each time at the end of its data, and
// goes on after a message.
func (t *timeline) inTurn() bool {
	silences := float64(t.d.Silences) / 1e9
	drained := float64(t.d.Drained) / 1e9
	return silences > threshold.PausingShare.Value*t.length && drained > threshold.ExchangesRestart*silences
}

// conversing reports whether the other end sends more than messages.
func (t *timeline) conversing() bool {
	d := t.d
	for _, other := range t.c.Directions() {
		if other != d && float64(other.Bytes) > threshold.ProgramWindowResponses*float64(d.Bytes) {
			return true
		}
	}
	return false
}

// level is what was outstanding when half of the data was delivered with less, bytes: no
// single moment's.
func (t *timeline) level() float64 {
	levels := make([]weighted, 0, len(t.d.Slices))
	for i := range t.d.Slices {
		s := &t.d.Slices[i]
		levels = append(levels, weighted{float64(s.OutMax), float64(s.Acked)})
	}
	return quantile(levels, 0.5)
}

// flat returns for how long the bytes outstanding were near a level, the time between the first such moment and the
// last, seconds, and the bytes delivered in it.
func (t *timeline) flat(level float64) (took, span, carried float64) {
	var since, gap float64
	for i := range t.d.Slices {
		s := &t.d.Slices[i]
		if out := float64(s.OutMax); out > threshold.FlatShare*level && threshold.FlatShare*out < level {
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

// describeProgram returns the evidence of a subtype that programs found, and adds its values to v.
func (t *timeline) describeProgram(subtype string, v verdict.Values) verdict.Code {
	d := t.d
	v["rtt_s"] = t.baseRTT
	if subtype == verdict.RequestResponse {
		block := float64(d.Bytes) / float64(d.Exchanges)
		each := t.length / float64(d.Exchanges)
		v["exchanges"] = float64(d.Exchanges)
		v["block_bytes"] = block
		v["exchange_s"] = each
		t.multiples(v, block, each, true)
		return verdict.CapturedExchanges
	}
	v["program_window_bytes"] = t.level()
	v["window_bytes"] = float64(d.WindowMax)
	v["allows_bps"] = t.allows(int64(t.level()))
	t.multiples(v, t.goodput*t.baseRTT, t.baseRTT, false)
	return verdict.CapturedProgramWindow
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
