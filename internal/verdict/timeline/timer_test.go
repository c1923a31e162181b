package timeline

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// blockwise plays a sender that sends the next block when all of this one is acknowledged, over a line that takes
// each nanoseconds for a segment. The receiver acknowledges every second segment; a timer acknowledges a last odd one.
func blockwise(t *testing.T, bytes int, rtt, timer, each int64, timestamps bool) (Diagnosis, *flow.Direction) {
	t.Helper()
	return blocksWithTimer(t, 60, 60, bytes, rtt, timer, each, timestamps)
}

// blocksWithTimer delays the acknowledgement of some blocks. The last block is not one of them.
func blocksWithTimer(t *testing.T, blocks, delayed, bytes int, rtt, timer, each int64, timestamps bool,
) (Diagnosis, *flow.Direction) {
	t.Helper()
	x := newTape(rtt, 0)
	mss := 1460
	if timestamps {
		mss = 1448
	}
	at := 2 * rtt
	pos := 0
	for block := range blocks {
		end := pos + bytes
		arrives := at
		unacked := 0
		for sent := at; pos < end; sent += 12_000 {
			length := min(mss, end-pos)
			x.data(sent, pos, length, 0)
			pos += length
			arrives = max(arrives, sent) + each*int64(length+40)/int64(mss+40)
			unacked++
			if unacked == 2 {
				unacked = 0
				x.ack(arrives+rtt, pos, 4<<20)
			}
		}
		at = arrives + rtt
		if unacked > 0 {
			if block >= blocks-1-delayed && block < blocks-1 {
				at += timer
			}
			x.ack(at, pos, 4<<20)
		}
		at += 60_000
	}
	if timestamps {
		x.addTimestamps(rtt)
	}
	return x.judge(t)
}

// A sender that waits for a delayed acknowledgement after each block is not a full link.
func TestJudge_DelayedAckAfterEachBlock(t *testing.T) {
	for _, bytes := range []int{4096, 7000, 10_000, 18_000, 36_000, 65_000} { // an odd number of segments
		for _, timer := range []int64{40 * ms, 100 * ms, 200 * ms} {
			for _, rtt := range []int64{400_000, 2 * ms, 10 * ms} {
				for _, timestamps := range []bool{false, true} {
					g, _ := blockwise(t, bytes, rtt, timer, 12_000, timestamps)
					e := evidenceOf(&g, verdict.CapturedAckTimer)
					if g.Limiter != verdict.NagleDelayedAck || g.Subtype != verdict.AckTimer {
						t.Errorf("%d bytes, timer %d ms, %d µs, %t: %s %s (%s) %v", bytes, timer/ms, rtt/1000, timestamps,
							g.Confidence, g.Limiter, g.Subtype, g.Shares)
					} else if mean := e["timer_s"] * 1e9; mean < 0.9*float64(timer) || mean > 1.1*float64(timer) {
						t.Errorf("%d bytes, timer %d ms, %d µs: %v", bytes, timer/ms, rtt/1000, e)
					}
				}
			}
		}
	}
}

// Away from the sender, a slow line lets each pair of segments be acknowledged before the next arrives.
func TestJudge_DelayedAckSeenAwayFromTheSender(t *testing.T) {
	for _, loop := range []int64{50, 99} { // percent of the round trip
		for _, bps := range []float64{12e6, 60e6, 400e6} {
			for _, rtt := range []int64{400_000, 2 * ms, 10 * ms} {
				for _, timestamps := range []bool{false, true} {
					for _, block := range []int{4200, 9000, 33_000, 65_000} { // an odd number of segments
						x := transfer{bytes: 40 * block, block: block, bps: bps, rtt: rtt, loop: rtt * loop / 100, timestamps: timestamps,
							window: 4 << 20, scale: 7, ackEvery: 2, delayedAck: 200 * ms}
						if g, _, _ := x.play(t); g.Limiter != verdict.NagleDelayedAck || g.Subtype != verdict.AckTimer {
							t.Errorf("%s %s (%s) %v: %+v", g.Confidence, g.Limiter, g.Subtype, g.Shares, x)
						}
					}
				}
			}
		}
	}
}

// A sender with one segment outstanding waits for the timer after each: at the sender and at the receiver, a handshake
// that took a millisecond leaves no room for a slow line.
func TestJudge_DelayedAckOfSingleSegments(t *testing.T) {
	for _, timestamps := range []bool{false, true} {
		for _, loop := range []int64{1, 99} { // percent of the round trip
			x := transfer{bps: 20e6, rtt: ms, loop: ms * loop / 100, tapBeforeLine: loop == 1, timestamps: timestamps,
				window: 1 << 20, scale: 7, ackEvery: 2, delayedAck: 200 * ms}
			x.block = x.mss()
			x.bytes = 60 * x.block
			g, _, _ := x.play(t)
			if g.Limiter != verdict.NagleDelayedAck || g.Subtype != verdict.AckTimer || g.Confidence == verdict.High {
				t.Errorf("%s %s (%s) %v: %+v", g.Confidence, g.Limiter, g.Subtype, g.Shares, x)
			}
		}
	}
}

// isTimerOrOpen reports whether the verdict is the receiver's timer, or open with the timer among the candidates.
func isTimerOrOpen(g *Diagnosis) bool {
	return g.Limiter == verdict.NagleDelayedAck && g.Subtype == verdict.AckTimer ||
		g.Limiter == verdict.Unknown && slices.Contains(g.Candidates, verdict.NagleDelayedAck)
}

// TestJudge_OnlyAckOfABlock checks blocks that have a single acknowledgement, which the receiver's timer sends. A line
// that is slow enough to explain it would have delayed the handshake as well, or spaced the acknowledgements of a long
// block.
func TestJudge_OnlyAckOfABlock(t *testing.T) {
	tests := []struct{ segments, every int }{{1, 2}, {2, 3}, {3, 9}, {5, 99}, {12, 99}, {45, 99}}
	for _, test := range tests {
		for _, loop := range []int64{1, 50, 99} { // percent of the round trip
			for _, rtt := range []int64{400_000, 3 * ms, 10 * ms} {
				for _, timer := range []int64{40 * ms, 200 * ms} {
					for _, timestamps := range []bool{false, true} {
						x := transfer{bps: 300e6, rtt: rtt, loop: rtt * loop / 100, tapBeforeLine: loop == 1,
							timestamps: timestamps, window: 4 << 20, scale: 7, ackEvery: test.every, delayedAck: timer}
						x.block = test.segments*x.mss() - 400*min(test.segments-1, 1) // smaller ones alone are Nagle's
						x.bytes = 40 * x.block
						g, d, _ := x.play(t)
						clear := test.segments > 3 || loop == 99 || timer/rtt > 120
						if !isTimerOrOpen(&g) || clear && (g.Limiter == verdict.Unknown || g.Confidence != verdict.Medium) {
							t.Errorf("%s %s (%s) %v %v, %d and %d waits: %+v", g.Confidence, g.Limiter, g.Subtype, g.Candidates,
								g.Shares, d.LoneTimerWaits, d.UnclearWaits, x)
						}
					}
				}
			}
		}
	}
}

// TestJudge_OnlyAckBehindSlowLine checks blocks of one and two segments with a single acknowledgement, over a line that
// takes as long for them as a timer might.
func TestJudge_OnlyAckBehindSlowLine(t *testing.T) {
	for _, segments := range []int{1, 2} {
		for _, loop := range []int64{1, 50} { // percent of the round trip
			for _, bps := range []float64{64e3, 128e3, 250e3} {
				x := transfer{bps: bps, loop: ms, tapBeforeLine: true, window: 4 << 20, scale: 7, ackEvery: segments,
					delayedAck: 500 * ms}
				x.rtt = int64(2 * 52 * 8e9 / bps) // a SYN and a SYN-ACK
				x.loop = x.rtt * loop / 100
				x.block = segments * x.mss()
				x.bytes = 40 * x.block
				g, _, _ := x.play(t)
				if g.Limiter == verdict.NagleDelayedAck || g.Limiter == verdict.Sender {
					t.Errorf("%s %s (%s) %v %v: %+v", g.Confidence, g.Limiter, g.Subtype, g.Candidates, g.Shares, x)
				}
			}
		}
	}
}

// TestJudge_TimerWithoutHandshake checks that single acknowledgements after 40 ms and more are no sure sender where the
// round trip of the empty path is not known.
func TestJudge_TimerWithoutHandshake(t *testing.T) {
	for _, segments := range []int{1, 2, 3} {
		for _, timer := range []int64{40 * ms, 200 * ms} {
			x := newTape(3*ms, 0)
			for i := range 60 {
				at := 10*ms + int64(i)*(timer+3*ms)
				for k := range segments {
					x.data(at+int64(k)*10_000, (i*segments+k)*1460, 1460, 0)
				}
				x.ack(at+timer+3*ms-100_000, (i+1)*segments*1460, 4<<20)
			}
			x.all = x.all[3:]
			if g, _ := x.judge(t); !isTimerOrOpen(&g) {
				t.Errorf("%d segments, timer of %d ms: %s %s %v %v", segments, timer/ms, g.Confidence, g.Limiter,
					g.Candidates, g.Shares)
			}
		}
	}
}

// A slow line takes as long for the last segment of a block as for the others: no timer.
func TestJudge_SlowLineIsNoDelayedAck(t *testing.T) {
	for _, each := range []int64{47 * ms, 187 * ms} { // 256 and 64 kbit/s
		for _, bytes := range []int{4 * 1460, 8192, 16 * 1460} { // an even number of segments
			if _, d := blockwise(t, bytes, 20*ms, 200*ms, each, false); d.TimerWaits > 0 {
				t.Errorf("%d ms a segment, blocks of %d bytes: %d waits for a timer", each/ms, bytes, d.TimerWaits)
			}
		}
	}
}

// A single delayed acknowledgement is no pattern, even where it is most of a short transfer.
func TestJudge_OneDelayedAck(t *testing.T) {
	for _, blocks := range []int{5, 9} {
		for _, bytes := range []int{10_000, 36_000} {
			g, d := blocksWithTimer(t, blocks, 1, bytes, 400_000, 40*ms, 12_000, true)
			if d.TimerWaits != 1 || g.Subtype == verdict.AckTimer {
				t.Errorf("%d blocks of %d bytes, %d waits: %s %s (%s) %v", blocks, bytes, d.TimerWaits, g.Confidence, g.Limiter,
					g.Subtype, g.Shares)
			}
		}
	}
}

// addTimestamps adds the timestamps option to all segments, in milliseconds.
func (x *tape) addTimestamps(rtt int64) {
	for i := range x.all {
		s := &x.all[i]
		s.Options |= flow.HasTimestamps
		s.TSVal = uint32(1 + s.At/ms)
		s.TSEcr = uint32(1 + max(s.At-rtt, 0)/ms)
		if s.Src == serverEnd {
			s.TSVal += 7000
			s.TSEcr = uint32(1 + max(s.At-rtt, 0)/ms)
		} else if s.Flags&flow.ACK != 0 {
			s.TSEcr = 7000 + uint32(1+s.At/ms)
		}
	}
}
