package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// The methods describe… add the values of an evidence to v, as package verdict lists them with its
// code.

func (t *timeline) describeClosed(v verdict.Values) {
	v["window_bytes"] = float64(t.d.WindowMax)
	v["zero_windows"] = float64(t.d.ZeroWindows)
}

func (t *timeline) describeIdle(v verdict.Values) { v["idle_s"] = t.clock(flow.Idle) }

func (t *timeline) describeNagle(v verdict.Values) { v["held_s"] = t.clock(flow.NagleWait) }

func (t *timeline) describeTimerWaits(v verdict.Values) {
	waited := t.clock(flow.AckTimer)
	v["waited_s"] = waited
	v["waits"] = float64(t.d.TimerWaits)
	v["timer_s"] = waited / float64(t.d.TimerWaits)
}

func (t *timeline) describeWindowTimer(v verdict.Values) {
	t.describeTimerWaits(v)
	v["window_bytes"] = float64(t.d.WindowMax)
}

func (t *timeline) describeTimer(v verdict.Values) {
	t.describeTimerWaits(v)
	v["block_bytes"] = float64(t.d.Bytes) / float64(max(t.d.Restarts, 1))
}

func (t *timeline) describeOversized(v verdict.Values) {
	v["mss_bytes"] = float64(t.d.MSS)
	v["largest_bytes"] = float64(t.d.MaxSegment)
	v["lost_bytes"] = float64(t.d.Oversized.Lost)
}

func (t *timeline) describeBlackHole(v verdict.Values) {
	v["icmp_too_big"] = float64(t.d.TooBig)
	if t.d.TooBig > 0 {
		v["router_mtu_bytes"] = float64(t.d.RouterMTU)
	}
}

func (t *timeline) describeRestarts(v verdict.Values) {
	v["restarts"] = float64(t.d.IdleRestarts.Count)
	v["idle_s"] = float64(t.d.IdleRestarts.Idle) / 1e9
	if t.baseRTT > 0 {
		v["rtt_s"] = t.baseRTT
	}
}

func (t *timeline) describeSlowStart(v verdict.Values) {
	v["round_trips"] = t.length / max(t.baseRTT, 1e-6)
	v["rtt_s"] = t.baseRTT
}

func (t *timeline) describeDamaged(v verdict.Values) {
	v["damaged_segments"] = float64(t.d.Damaged)
	v["segments"] = float64(t.d.Segments)
}

func (t *timeline) describeLostBehind(v verdict.Values) {
	v["passed_bytes"] = float64(t.passedBefore())
	v["retransmitted_bytes"] = float64(t.passedBefore() + t.d.Replaced)
}

func (t *timeline) describeAvoidance(v verdict.Values) {
	segments, from := t.avoidance()
	v["segments_per_round"] = segments
	v["from_bytes"] = float64(from)
	v["rtt_s"] = t.baseRTT
}

func (t *timeline) describeLostSYNs(v verdict.Values) {
	v["syns"] = float64(t.c.LostSYNs)
	if t.c.LostSYNACKs > 0 {
		v["syn_acks"] = float64(t.c.LostSYNACKs)
	}
	v["wait_s"] = t.synWait()
	v["total_s"] = t.wall()
}

func (t *timeline) describeRTTs(v verdict.Values) {
	v["rtt_s"] = t.meanRTT().Seconds()
	v["rtt_base_s"] = t.baseRTT
}

// withoutSYNs takes the wait for lost SYNs from congestion's time: the congestion window did not
// take it.
func (t *timeline) withoutSYNs(v verdict.Values) {
	v["time_ratio"] = max(v["time_ratio"]-t.synWait()/t.wall(), 0)
}

func (t *timeline) describeMarks(v verdict.Values) {
	t.withoutSYNs(v)
	t.describeRTTs(v)
	v["marks"] = float64(t.d.Marks)
}

func (t *timeline) describeLoss(v verdict.Values) {
	t.withoutSYNs(v)
	t.describeRTTs(v)
	v["retransmitted_segments"] = float64(t.d.Retransmitted)
	v["segments"] = float64(t.d.Segments)
	v["loss_events"] = float64(t.d.LossEvents)
	v["timeouts"] = float64(t.d.Timeouts)
}

func (t *timeline) describeLink(v verdict.Values) {
	t.describeRTTs(v)
	t.pathRate(verdict.Bottleneck, v)
	if t.queueing {
		v["queue"] = 1
	}
	if t.clock(flow.Full) > threshold.AlsoFull.Value*t.length {
		v["window_allows_bps"] = t.allows(t.d.WindowMax)
	}
}

func (t *timeline) describeSender(v verdict.Values) {
	v["outstanding_bytes"] = float64(t.d.MaxOut)
	v["window_bytes"] = float64(t.d.WindowMax)
	v["retransmitted_segments"] = float64(t.d.Retransmitted - t.d.Spurious)
	if t.losing {
		v["losing"] = 1
	}
}

func (t *timeline) describeAbandoned(v verdict.Values) {
	v["from_s"] = float64(t.d.Last-t.d.Abandoned) / 1e9
	v["abandoned_s"] = float64(t.d.Abandoned) / 1e9
	v["unacknowledged_bytes"] = float64(t.d.Bytes - t.d.Acked)
}

func (t *timeline) describeUnclear(v verdict.Values) {
	v["waits"] = float64(t.d.UnclearWaits)
	v["wait_s"] = float64(t.d.UnclearWaited) / 1e9 / float64(t.d.UnclearWaits)
}

func (t *timeline) describeUnseen(v verdict.Values) { addMissing(v, t.d.Unseen, t.d.Bytes) }

func (t *timeline) describeEmptyRTT(v verdict.Values) { v["rtt_base_s"] = t.baseRTT }

func (t *timeline) describeUnknownRate(v verdict.Values) { t.pathRate(verdict.Unknown, v) }

func (t *timeline) describeScale(v verdict.Values) { v["window_scale_least"] = float64(t.d.Scale) }

func (t *timeline) describeSACK(v verdict.Values) {
	v["blocks"] = float64(t.d.SACKBlocks)
	v["outside"] = float64(t.d.SACKOutside)
}

func (t *timeline) describeMismatch(v verdict.Values) {
	m, _ := t.c.ScaleMismatch(t.d)
	v["handshake_window_bytes"] = float64(m.Offered)
	v["first_window_bytes"] = float64(m.First)
	v["window_scale"] = float64(t.d.Scale)
	if m.Scale >= 0 {
		v["applied_scale"] = float64(m.Scale)
	}
}

func (t *timeline) describeSilence(v verdict.Values) {
	v["from_s"] = float64(t.d.Silent) / 1e9
	v["silent_s"] = t.silence()
}

func (t *timeline) describeOutage(v verdict.Values) {
	v["from_s"] = float64(t.d.StallFrom) / 1e9
	v["to_s"] = float64(t.d.StallTo) / 1e9
	v["stalled_s"] = float64(t.d.Stalled) / 1e9
}

func (t *timeline) describeClock(v verdict.Values) {
	v["grain_s"] = float64(t.c.Grain) / 1e9
	v["rtt_s"] = t.baseRTT
}
