package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// ratelessRules are the rules whose evidence is an event and not a rate. Only they give high
// confidence below threshold.SureSegments segments or threshold.SureRounds round trips.
var ratelessRules = []struct {
	name    string
	limiter verdict.Name
	holds   func(t *timeline) bool
}{
	// An ICMP message that the segment was too big comes with these losses.
	{"repeated loss of one large segment", verdict.MTUBlackHole,
		func(t *timeline) bool { return t.clock(flow.BlackHole) > 0 }},
	{"zero window", verdict.ReceiverApplication, func(t *timeline) bool { return t.d.ZeroWindows > 0 }},
}

// rateless reports whether a rule that needs no rate supports the verdict.
func (t *timeline) rateless(g *Diagnosis) bool {
	for _, r := range ratelessRules {
		if r.limiter == g.Limiter && r.holds(t) {
			return true
		}
	}
	return false
}

// segments returns how many segments of new data were sent; a super-segment counts as its packets.
func (t *timeline) segments() int64 {
	return max(t.d.Segments-t.d.Retransmitted, t.d.Bytes/int64(max(t.d.MSS, 536)))
}

// tooFew returns the verdict on a transfer of too few bytes to tell anything.
func (t *timeline) tooFew() verdict.Verdict {
	why := verdict.Evidence{Code: verdict.CapturedTooFewBytes, Values: verdict.Values{"bytes": float64(t.d.Bytes)}}
	return verdict.Unseen(why, verdict.Application, verdict.SlowStart, verdict.MTUBlackHole)
}
