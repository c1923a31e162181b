package timeline

import (
	"cmp"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// recoveries finds the slices in which the congestion window grew back from a loss: those soon after one, and all in
// which the bytes outstanding rose until the next. A limit of the sender's own does not rise. A congestion window
// does, in congestion avoidance by up to a segment a round (RFC 5681, 3.1), and with CUBIC less around its last size
// (RFC 9438, 4.2), so that only the whole time from loss to loss shows it.
func recoveries(outstanding []float64, lost []bool) []bool {
	found := make([]bool, len(lost))
	for begin := range lost {
		if !lost[begin] {
			continue
		}
		end := begin + 1
		for end < len(lost) && !lost[end] {
			end++
		}
		until := min(begin+int(threshold.PlateauSlices.Value), end)
		if grown := rising(outstanding[begin+1:end], int(threshold.BlockSlices.Value)); grown > 0 {
			until = min(max(until, begin+1+grown+int(threshold.PlateauSlices.Value)), end)
			if end < len(lost) {
				until = end
			}
		}
		for i := begin; i < until; i++ {
			found[i] = true
		}
	}
	return found
}

// opening is for how many slices the congestion window kept opening without a loss, slower
// than slow start: one that a jump of the round trip had ended early (RFC 9406). It is
// still far from its height when a third of the time is over, and so is the rate: where
// only the round trip grows with it, it is not the window that limits.
func opening(outstanding, rates []float64) int {
	n := len(outstanding)
	if n > 1 && outstanding[n-1] < outstanding[n-2] {
		n-- // the end, for which less was left
	}
	outstanding = outstanding[:n]
	rates = rates[:n]
	block := int(threshold.BlockSlices.Value)
	opens := threshold.OpeningWindow.Value
	// a short transfer
	if n < int(threshold.RisingBlocks.Value)*block && n >= int(threshold.RisingShort.Value) {
		block = n / int(threshold.RisingBlocks.Value)
		opens = threshold.OpeningRate.Value
	}
	means := blockMeans(outstanding, block)
	speeds := blockMeans(rates, block)
	grown := rising(outstanding, block)
	if grown == 0 || slices.Max(means) < opens*means[len(means)/3] ||
		slices.Max(speeds) < threshold.OpeningRate.Value*speeds[len(speeds)/3] {
		return 0
	}
	return grown
}

// damaged reports whether segments arrived with wrong checksums, at least half as many as were retransmitted.
// Where most checksums are wrong, the host that captured had left them to its device.
func (t *timeline) damaged() bool {
	d := t.d
	return t.vantage != AtSender && d.Damaged >= int64(threshold.MinSegments.Value) &&
		2*d.Damaged >= d.Retransmitted && 2*d.Damaged < d.Segments
}

// passedBefore returns how many bytes were retransmitted that had passed the tap before and that the receiver did not
// report as received twice.
func (t *timeline) passedBefore() int64 {
	return max(t.d.Repeated-t.d.Spurious*int64(max(t.d.MSS, 536)), 0)
}

// lostBehind reports whether segments were lost after they had passed a tap at the receiver.
func (t *timeline) lostBehind() bool {
	return t.vantage == AtReceiver && t.d.LossEvents >= int64(threshold.MinSegments.Value) &&
		t.passedBefore() > t.d.Replaced
}

// avoidance returns by how many segments a round trip the bytes in flight grew while the congestion window opened after
// slow start, without a loss, and from how many bytes on. 0, 0: it did not open so.
func (t *timeline) avoidance() (segments float64, from int64) {
	begin := 0
	for begin < t.openingSlices && t.d.Slices[begin].Clock[flow.SlowStart] > 0 {
		begin++
	}
	if begin+1 >= t.openingSlices {
		return 0, 0
	}
	rounds := 0
	for i := begin + 1; i < t.openingSlices; i++ {
		rounds += int(t.d.Slices[i].Rounds)
	}
	from = t.d.Slices[begin].OutMax
	grown := t.d.Slices[t.openingSlices-1].OutMax - from
	return float64(grown) / float64(max(t.d.MSS, 536)) / float64(max(rounds, 1)), from
}

// avoidsCongestion reports whether congestion avoidance opened the congestion window without a loss, so
// that ssthresh was low. Slow start adds a segment for each acknowledgement (RFC 5681, 3.1).
func (t *timeline) avoidsCongestion() bool {
	segments, _ := t.avoidance()
	acks := float64(t.d.Acknowledgements) / float64(max(t.rounds, 1))
	return segments > 0 && segments < threshold.AvoidanceGrowth.Value*acks
}

// blockMeans returns the mean of each block of slices.
func blockMeans(all []float64, block int) (means []float64) {
	for part := range slices.Chunk(all[:len(all)/block*block], block) {
		sum := 0.0
		for _, v := range part {
			sum += v
		}
		means = append(means, sum/float64(block))
	}
	return means
}

// rising is after how many slices what was outstanding had reached its height, if it
// rose on the way as a congestion window does, which nothing but a loss makes smaller;
// else 0.
func rising(run []float64, block int) int {
	means := blockMeans(run, block)
	if len(means) < int(threshold.RisingBlocks.Value) {
		return 0
	}
	steps := 0
	top := means[0]
	for i := 1; i < len(means); i++ {
		if means[i] < threshold.RisingFallen.Value*top {
			return 0
		}
		steps += cmp.Compare(means[i], means[i-1])
		top = max(top, means[i])
	}
	if float64(steps) < threshold.RisingMostly.Value*float64(len(means)-1) ||
		top < threshold.RisingEnough.Value*means[0] {
		return 0
	}
	return (slices.IndexFunc(means, func(mean float64) bool { return mean > threshold.RisingReached.Value*top }) +
		1) * block
}

// lossOrLink reports whether segments were lost at a rate near what the path delivers of data that is
// outstanding at once, in a capture without the handshake: a link whose queue never runs empty
// looks like that, since the empty path's round trip was not seen.
func (t *timeline) lossOrLink() bool {
	return t.losing && !t.linkIsFull && !(t.c.SYN && t.c.SYNACK) && t.pathPace > 0 &&
		t.parallelFactor*max(t.goodput, quantileOf(t, 0.5)) >= t.pathPace/threshold.FilledWithin.Value
}

// synWait returns the time until the answered SYN was sent, seconds. A SYN that was retransmitted before an answer
// could come was not lost: its timer starts at 1 s (RFC 6298, 2.1) on any path.
func (t *timeline) synWait() float64 {
	wait := float64(t.c.SYNWait) / 1e9
	if wait < t.baseRTT {
		return 0
	}
	return wait
}

// wall is the time of the direction and of the lost SYNs before it, seconds.
func (t *timeline) wall() float64 { return t.length + t.synWait() }

// synsLost reports whether waiting for lost SYNs took most of the time.
func (t *timeline) synsLost() bool {
	return t.synWait() > threshold.HeadlineShare.Value*t.wall()
}

// lossOf returns the limiter while a congestion window grew back, or a segment was retransmitted.
func (t *timeline) lossOf(s *flow.Slice) verdict.Name {
	if t.evenLoss && !stalled(s) {
		return verdict.Unknown
	}
	return verdict.Congestion
}

// repaired reports whether a slice is after a repair in an exchange of blocks and messages. The round trips of the
// exchange are most of the time, losses or not, so no congestion window limits the blocks after a repair.
func (t *timeline) repaired(s *flow.Slice) bool {
	return s.Losses == 0 && s.Retransmitted == 0 && exchanging.IsTrue(t)
}

// recoveryOf is what limited during a repair: the link, where it was kept full all the same.
//
// Where less than a segment was outstanding, its timer delays the next message, which no congestion window does.
func (t *timeline) recoveryOf(s *flow.Slice) verdict.Name {
	if t.belowSegment {
		return verdict.Application
	}
	if !stalled(s) && (t.linkIsFull || t.queueing && t.full(s) || t.neverEmpty(s) || t.lineQueued(s) && t.full(s)) {
		return verdict.Bottleneck
	}
	return t.lossOf(s)
}

// stalled reports whether nothing got through in a slice for a second and more.
func stalled(s *flow.Slice) bool {
	return s.Acked == 0 && s.End-s.Start >= int64(time.Second)
}

// oversized reports whether all segments longer than the MSS were lost and hardly any other data. The sender's device
// does not split its super-segments, or a tunnel carries less than the MSS.
func (t *timeline) oversized() bool {
	o := t.d.Oversized
	return o != nil && !o.Passed && t.d.LossEvents >= int64(threshold.OversizedEvents.Value) &&
		o.Lost >= int64(threshold.MinSegments.Value)*int64(t.d.MSS) &&
		float64(o.OtherLost) <= threshold.SmallShare.Value*float64(o.Lost)
}
