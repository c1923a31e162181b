package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// spread reports whether the path delivered most data more slowly than the sender sent it: the tap at the sender saw
// blocks of segments leave together and their acknowledgements return apart.
func (t *timeline) spread() bool { return t.vantage == AtSender && 2*t.d.Blocks.Spread > t.d.Bytes }

// spacedByLine reports whether a tap away from the sender saw segments arrive in proportion to their own lengths: a
// line slower than the sender delivered them.
func (t *timeline) spacedByLine() bool {
	p := t.d.Spacing
	return p != nil && (t.vantage == AtReceiver || t.vantage == InTheMiddle) && p.Short >= threshold.FewRounds &&
		4*p.Agree >= 3*p.Short && 4*p.Full*int64(t.d.MSS) >= t.d.Bytes
}

// serialises reports whether blocks wait for little but the line: the transfer is nearly as fast as the line
// delivers a block.
func (t *timeline) serialises() bool {
	slow := t.spread() && t.d.Blocks.Count >= threshold.FewRounds || t.spacedByLine()
	return slow && t.goodput >= threshold.LineFilled*t.lineRate()
}

// lineRate returns the rate at which the line delivers what was sent at once, bytes/s.
func (t *timeline) lineRate() float64 {
	if t.spread() {
		return t.d.Blocks.Rate()
	}
	return t.d.Spacing.Rate()
}

// equalBlocks reports whether most data was in blocks of one size, each released by the acknowledgement of the one
// before: a send buffer or a program that writes when the last write is acknowledged.
func (t *timeline) equalBlocks() bool {
	b := &t.d.Blocks
	return t.vantage == AtSender && b.Equal() && b.Count >= threshold.FewRounds && 2*b.Count*b.Size > t.d.Bytes
}

// describeBlocks returns the evidence for equal blocks, false if there are none or another limiter explains them.
func (t *timeline) describeBlocks(limiter verdict.Name) (e verdict.Evidence, ok bool) {
	if !t.equalBlocks() || limiter != verdict.Sender && limiter != verdict.Bottleneck {
		return e, false
	}
	v := verdict.Values{"block_bytes": float64(t.d.Blocks.Size), "blocks": float64(t.d.Blocks.Count)}
	if t.spread() {
		v["block_bps"] = t.d.Blocks.Rate() * 8
	}
	return verdict.Evidence{Limiter: verdict.SendBuffer, Code: verdict.CapturedBlocks, Values: v}, true
}

// blockRate returns the rate of the line that delivers blocks, bytes/s; 0 where the path did not deliver them more
// slowly than they were sent. No prediction may exceed it.
func (t *timeline) blockRate() float64 {
	if !t.spread() && !t.spacedByLine() {
		return 0
	}
	return max(t.lineRate(), t.goodput)
}
