package timeline

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// leftOut reports whether acknowledgements without data seem to be left out of the capture while messages had several
// segments. Whether the program or an acknowledgement released the later ones is then not known.
func (t *timeline) leftOut() bool {
	return t.c.OnlyWithData() && t.d.Segments > t.d.Answered+int64(threshold.MinSegments.Value)
}

// coarse reports whether the capture's clock is too coarse for the round trip.
func (t *timeline) coarse() bool {
	return time.Duration(t.c.Grain) > threshold.CoarseGrain.Time() &&
		(t.d.Segments > int64(threshold.CoarseSegments.Value) || t.c.InBatches) &&
		float64(t.c.Grain)/1e9 > threshold.CoarseShare.Value*t.baseRTT
}

// isLastRound reports whether no more than the last round trip was without growth. A short transfer ends so; more of
// them are a program with less to send.
func (t *timeline) isLastRound() bool {
	level := t.time[verdict.SlowStart] - t.clock(flow.SlowStart)
	dry := t.d.Spacing != nil && t.d.Spacing.Dry > 0
	return level <= threshold.LastRound.Value*t.baseRTT && !dry
}

// guessedScale reports whether the receiver scales its windows otherwise than it offered, by a guessed factor.
func (t *timeline) guessedScale() bool {
	m, shrank := t.c.ScaleMismatch(t.d)
	return shrank && m.Scale < 0
}

// windowAbove reports whether the largest window would give clearly more than the rate.
func (t *timeline) windowAbove() bool {
	_, shrank := t.c.ScaleMismatch(t.d)
	window, _ := t.usable(t.d.WindowMax)
	return !shrank && t.baseRTT > 0 && window/t.baseRTT > threshold.WindowAbove.Value*t.goodput
}

// queueMissing reports whether a standing queue would have been seen and was not: the empty
// path's round trip is known, and no part of it was taken for constant.
func (t *timeline) queueMissing() bool {
	return !t.queueing && t.c.SYN && t.c.SYNACK && (t.vantage == AtSender || t.d.LoopFollowed)
}

// queueAhead reports whether a queue of acknowledgements would be distinguished from one of data: by their
// timestamps, or because they had not gone far yet.
func (t *timeline) queueAhead() bool {
	return t.vantage == AtReceiver || slices.ContainsFunc(t.d.Slices, func(s flow.Slice) bool { return s.Backs > 0 })
}

// segments returns how many segments of new data were sent; a super-segment counts as its packets.
func (t *timeline) segments() int64 {
	return max(t.d.Segments-t.d.Retransmitted, t.d.Bytes/int64(max(t.d.MSS, 536)))
}

// tooFew returns the verdict on a transfer of too few bytes for any other.
func (t *timeline) tooFew() verdict.Verdict {
	why := verdict.Evidence{Code: verdict.CapturedTooFewBytes, Values: verdict.Values{"bytes": float64(t.d.Bytes)}}
	return verdict.Unobserved(why, verdict.Application, verdict.SlowStart, verdict.MTUBlackHole)
}
