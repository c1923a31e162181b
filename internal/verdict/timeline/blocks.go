package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// spread reports whether the path delivered most data more slowly than the sender sent it: a tap before the line saw
// blocks of segments leave together and their acknowledgements return apart.
func (t *timeline) spread() bool {
	return (t.vantage == AtSender || t.vantage == InTheMiddle) && 2*t.d.Blocks.Spread > t.d.Bytes
}

// behindPath reports whether the tap is known to be away from the sender, so that it sees what the path did to data. A
// tap near the sender is where most losses happened before it.
func (t *timeline) behindPath() bool {
	p := t.d.Spacing
	lostBefore := p != nil && p.Holes >= int64(threshold.MinSegments.Value) && t.d.Replaced > t.d.Repeated
	return p != nil && (t.vantage == AtReceiver || t.vantage == InTheMiddle || t.vantage == AtSender && lostBefore)
}

// spacedByLine reports whether a tap away from the sender saw segments arrive in proportion to their own lengths: a
// line slower than the sender delivered them.
func (t *timeline) spacedByLine() bool {
	p := t.d.Spacing
	return t.behindPath() && p.Short >= int64(threshold.MinRounds.Value) && 4*p.Agree >= 3*p.Short &&
		4*p.Data.Bytes >= t.d.Bytes
}

// isEven reports whether most data came at one pace, which is the mean rate, repetitions included: nothing paused.
func (t *timeline) isEven(p *flow.Pace) bool {
	rate := p.Rate()
	mean := max(t.goodput, float64(t.d.Captured)/max(t.length, 1e-9))
	return 2*p.Bytes >= t.d.Bytes && mean >= threshold.LineFilled.Value*rate && threshold.LineFilled.Value*mean <= rate
}

// arrivesEvenly reports whether data came evenly from a line before the tap. A pacing sender sends segments in pairs or
// larger bursts, a program in writes.
func (t *timeline) arrivesEvenly() bool {
	p := t.d.Spacing
	if !t.behindPath() || t.losing && (p.Holes < int64(threshold.MinSegments.Value) || 4*p.Filled < 3*p.Holes) {
		return false
	}
	return (p.Short < int64(threshold.MinRounds.Value) || 4*p.Agree >= 3*p.Short) && t.isEven(&p.Data)
}

// keepsLineBusy reports whether the line had data all the time: segments, or acknowledgements
// before they reach the sender, come at one pace though a window contains several of them. A window
// that limits leaves a gap after each.
func (t *timeline) keepsLineBusy() bool {
	if t.arrivesEven {
		return t.d.WindowMax >= 2*int64(max(t.d.MSS, 536))
	}
	return (t.vantage == AtSender || t.vantage == InTheMiddle) && t.d.Spacing != nil && !t.losing &&
		t.isEven(&t.d.Spacing.Acks) && t.acksPerWindow() >= 2
}

// acksPerWindow returns how many acknowledgements a full receive window gets.
func (t *timeline) acksPerWindow() float64 {
	return float64(t.d.WindowMax) * float64(t.d.Acks) / float64(max(t.d.Bytes, 1))
}

// onlyEven reports whether nothing but the even arrival shows a full line: no queue was seen, nor bursts before it.
func (t *timeline) onlyEven() bool {
	return t.arrivesEven && (t.losing || t.d.Spacing.Silent == 0) && !t.queueing && !t.serialised && !t.linkFull()
}

// arrivesInBursts reports whether data came to a tap away from the sender in bursts. A queue before the tap leaves no
// time between them.
func (t *timeline) arrivesInBursts() bool {
	return t.behindPath() && float64(t.d.Spacing.Silent)/1e9 > threshold.PausingShare.Value*t.length
}

// lineIdles reports whether the slowest line of the path is before the tap and had no data in much of the time.
func (t *timeline) lineIdles() bool {
	if !t.inBursts || t.vantage == AtReceiver {
		return t.inBursts
	}
	p := t.d.Spacing // pairs that acknowledgements let out before the line have no usual pace
	return 4*p.Data.Bytes >= t.d.Bytes && p.Data.Rate() < 2*max(t.pathPace, p.Acks.Rate())
}

// caughtUp reports whether the sender had sent all data of its program at a later moment: no window had limited it.
func (t *timeline) caughtUp(s *flow.Slice) bool {
	p := t.d.Spacing
	return p != nil && p.Dry >= int64(threshold.MinSegments.Value) && s.End <= p.DryAt
}

// serialises reports whether blocks wait for little but the line: the transfer is nearly as fast as the line
// delivers a block.
func (t *timeline) serialises() bool {
	slow := t.spread() && t.d.Blocks.Count >= int64(threshold.MinRounds.Value) || t.spacedByLine()
	return slow && t.goodput >= threshold.LineFilled.Value*t.lineRate()
}

// lineRate returns the rate at which the line delivers what was sent at once, bytes/s.
func (t *timeline) lineRate() float64 {
	if !t.spread() {
		return t.d.Spacing.Data.Rate()
	}
	rate := t.d.Blocks.Rate()
	// A timer that ends while a slow line delivers a block delays the first acknowledgement, but not the last.
	if p := t.d.Spacing; p != nil && 2*p.Acks.Bytes >= t.d.Bytes {
		rate = min(rate, p.Acks.Rate())
	}
	return rate
}

// equalBlocks reports whether most data was in blocks of one size, each released by the acknowledgement of the one
// before: a send buffer or a program that writes when the last write is acknowledged.
func (t *timeline) equalBlocks() bool {
	b := &t.d.Blocks
	return t.vantage == AtSender && b.Equal() && b.Count >= int64(threshold.MinRounds.Value) &&
		2*b.Count*b.Size > t.d.Bytes
}

func (t *timeline) describeBlocks(v verdict.Values) {
	v["block_bytes"] = float64(t.d.Blocks.Size)
	v["blocks"] = float64(t.d.Blocks.Count)
	if t.spread() {
		v["block_bps"] = t.lineRate() * 8
	}
}

// blockRate returns the rate of the line that delivers blocks, bytes/s; 0 where the path did not deliver them more
// slowly than they were sent. No prediction may exceed it.
func (t *timeline) blockRate() float64 {
	if !t.spread() && !t.spacedByLine() {
		return 0
	}
	return max(t.lineRate(), t.goodput)
}
