package timeline

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// sendBlocks plays a sender that sends the next block when all of the last one is acknowledged, over a line of bps
// bit/s. The receiver acknowledges each group of every segments, and the last segment.
func sendBlocks(t *testing.T, bps float64, block, every int, rtt int64) (Diagnosis, *flow.Direction) {
	t.Helper()
	x := newTape(rtt, 0)
	const mss = 1460
	at := 2 * rtt
	pos := 0
	for range 40 {
		free := at
		unacked := 0
		for end := pos + block; pos < end; {
			length := min(mss, end-pos)
			var flags flow.Flags
			if pos+length == end {
				flags = flow.PSH
			}
			free += int64(float64(length+40) * 8e9 / bps)
			x.data(at, pos, length, flags)
			pos += length
			unacked++
			if unacked == every || pos == end {
				unacked = 0
				x.ack(free+rtt, pos, 256<<10)
			}
			at += 100_000
		}
		at = free + rtt + 200_000
	}
	return x.judge(t)
}

// Blocks that fill a line are limited by the line. Blocks that mostly wait for their acknowledgement are not. No
// prediction exceeds the line's rate.
func TestJudge_BlocksOverSlowLine(t *testing.T) {
	full, partly := 0, 0
	for _, bps := range []float64{64e3, 125e3, 512e3, 2e6} {
		for _, block := range []int{5000, 8192, 24 << 10, 64 << 10} {
			for _, rtt := range []int64{10, 30, 100, 300} {
				payload := bps * float64(block) / float64(block+40*((block+1459)/1460))
				for _, every := range []int{1, 2} {
					g, d := sendBlocks(t, bps, block, every, rtt*ms)
					share := g.GoodputBps / payload
					bad := !slices.ContainsFunc(g.Evidence, func(e verdict.Evidence) bool {
						return e.Code == verdict.CapturedBlocks && e.Values["block_bytes"] == float64(block) &&
							e.Limiter == verdict.SendBuffer && e.Values["block_bps"] > 0.95*payload &&
							e.Values["block_bps"] < 1.02*payload
					})
					switch {
					case share >= 0.91:
						full++
						bad = bad || g.Limiter != verdict.Bottleneck
					case share <= 0.85:
						partly++
						bad = bad || g.Limiter != verdict.Sender || g.Candidates[0] != verdict.SendBuffer
					}
					if bad || g.Prediction != nil && g.Prediction.LowBps > 1.02*payload {
						t.Errorf("%.0f bit/s, %d bytes, %d ms, every %d: %.2f full, %s %s %v %v %v, %+v, %+v", bps, block, rtt, every,
							share, g.Confidence, g.Limiter, g.Shares, g.Candidates, g.Evidence, d.Blocks, g.Prediction)
					}
				}
			}
		}
	}
	if full < 40 || partly < 40 {
		t.Errorf("%d full lines and %d others", full, partly)
	}
}

// receiveBlocks plays the same blocks to a tap at the receiver, which acknowledges every second segment and the last
// one at once. A paced sender waits by the length of the segment before, on a line that is faster.
func receiveBlocks(t *testing.T, bps float64, block int, rtt int64, paced bool) (Diagnosis, *flow.Direction) {
	t.Helper()
	x := newTape(rtt, rtt*99/100)
	const mss = 1460
	at := 2 * rtt
	pos := 0
	for range 40 {
		unacked := 0
		length := 0
		for end := pos + block; pos < end; {
			before := length
			length = min(mss, end-pos)
			var flags flow.Flags
			if pos+length == end {
				flags = flow.PSH
			}
			size := length
			if paced {
				size = before
			}
			at += int64(float64(size+40) * 8e9 / bps)
			x.data(at+rtt/2, pos, length, flags)
			pos += length
			unacked++
			if unacked == 2 || pos == end {
				unacked = 0
				x.ack(at+rtt/2+rtt/100, pos, 256<<10)
			}
		}
		at += rtt + 200_000
	}
	return x.judge(t)
}

// TestJudge_BlocksAtReceiver checks that a tap at the receiver distinguishes a full slow line, where segments arrive in
// proportion to their lengths, from a sender that paces.
func TestJudge_BlocksAtReceiver(t *testing.T) {
	full, partly := 0, 0
	for _, bps := range []float64{64e3, 200e3, 512e3, 2e6} {
		for _, block := range []int{5000, 8192, 24 << 10, 64 << 10} {
			for _, rtt := range []int64{8, 40, 120, 300} {
				payload := bps * float64(block) / float64(block+40*((block+1459)/1460))
				g, d := receiveBlocks(t, bps, block, rtt*ms, false)
				share := g.GoodputBps / payload
				bad := g.Prediction != nil && g.Prediction.LowBps > 1.02*payload
				switch {
				case share >= 0.92:
					full++
					bad = bad || g.Limiter != verdict.Bottleneck
				case share <= 0.85:
					partly++
					bad = bad || g.Limiter == verdict.Bottleneck || g.Confidence == verdict.High
				}
				if bad {
					t.Errorf("%.0f bit/s, %d bytes, %d ms: %.2f full, %s %s %v %v, %+v, %+v", bps, block, rtt, share,
						g.Confidence, g.Limiter, g.Candidates, g.Evidence, d.Spacing, d.Pauses)
				}
				if g, _ := receiveBlocks(t, bps, block, rtt*ms, true); g.Limiter == verdict.Bottleneck {
					t.Errorf("%.0f bit/s, %d bytes, %d ms, paced: %s %s", bps, block, rtt, g.Confidence, g.Limiter)
				}
			}
		}
	}
	if full < 20 || partly < 20 {
		t.Errorf("%d full lines and %d others", full, partly)
	}
}

// TestJudge_BlocksOfTwoSegmentsFillTheLine checks blocks of one full segment and a short one up a line that is 95 %
// full.
func TestJudge_BlocksOfTwoSegmentsFillTheLine(t *testing.T) {
	for _, bps := range []float64{100e3, 600e3, 2e6} {
		for _, block := range []int{1960, 2048, 2700} {
			onLine := int64(float64(block+80) * 8e9 / bps)
			if g, _ := sendBlocks(t, bps, block, 1, onLine/19); g.Limiter != verdict.Bottleneck {
				t.Errorf("%.0f bit/s, %d bytes: %s %s %v", bps, block, g.Confidence, g.Limiter, g.Shares)
			}
			if g, _ := sendBlocks(t, bps, block, 1, onLine); g.Limiter == verdict.Bottleneck {
				t.Errorf("%.0f bit/s half full, %d bytes: %s %s %v", bps, block, g.Confidence, g.Limiter, g.Shares)
			}
		}
	}
}

// TestJudge_AckTimerWhileALineDelivers checks a full line whose segments take longer than the receiver's timer. The
// timer delays the first acknowledgement of a block and not the last, which two segments cause.
func TestJudge_AckTimerWhileALineDelivers(t *testing.T) {
	for _, bps := range []float64{120e3, 200e3, 280e3} {
		x := transfer{bytes: 60 * 8192, block: 8192, bps: bps, rtt: 5 * ms, tapBeforeLine: true, window: 1 << 20, scale: 7,
			ackEvery: 2, delayedAck: 40 * ms}
		if g, _, _ := x.play(t); g.Limiter != verdict.Bottleneck {
			t.Errorf("%.0f bit/s: %s %s %v", bps, g.Confidence, g.Limiter, g.Shares)
		}
	}
}
