package timeline

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// oneWay reports whether only the data was captured, not what answered it; or of that only what
// carried data itself: receivers acknowledge every other segment (RFC 5681, 4.2).
func (t *timeline) oneWay() bool {
	d := t.d
	unacknowledged := d.Bytes - d.Acked
	earned := int64(threshold.EarnedSegments.Value) * int64(max(d.MSS, 536))
	if d.Acknowledgements < int64(threshold.MinSegments.Value) && unacknowledged > earned {
		return true // no sender goes so far without acknowledgements
	}
	if d.Timeouts > 0 || d.Silent > 0 {
		return false
	}
	much := d.MaxOut >= int64(threshold.QueueSegments.Value)*int64(max(d.MSS, 536))
	if d.Acks == 0 && 2*d.Segments >= int64(threshold.OneWaySegments.Value) && much {
		return true
	}
	return d.Segments >= int64(threshold.OneWaySegments.Value) &&
		float64(d.Acknowledgements) < threshold.OneWay.Value*float64(d.Segments)
}

// oneDirection returns the verdict on a capture of one direction only.
func (t *timeline) oneDirection() verdict.Verdict {
	d := t.d
	return verdict.Unobserved(verdict.Evidence{Code: verdict.CapturedOneDirection, Values: verdict.Values{
		"segments": float64(d.Segments), "acknowledgements": float64(d.Acknowledgements),
		"bytes": float64(d.Bytes), "duration_s": t.length,
		"retransmitted_segments": float64(d.Retransmitted)}}, verdict.Sender, verdict.ReceiverWindow, verdict.Congestion)
}

// jumped reports whether neither packets nor acknowledgements show the direction's bytes, as after a jump of the
// sequence numbers. Such a direction has no goodput.
func (t *timeline) jumped() bool {
	return float64(t.d.Bytes) > threshold.BytesShown.Value*float64(t.d.Shown())
}

// gaps makes the verdict unknown where too much of a direction is not in the capture.
func (t *timeline) gaps(g *Diagnosis) bool {
	d := t.d
	if float64(d.Missing) <= threshold.UnreliableSlice.Value*float64(d.Bytes) && !t.oneWay() && !t.jumped() {
		return false
	}
	missing := d.Missing + d.Unseen
	if t.jumped() {
		missing = max(missing, d.Bytes-d.Captured)
	}
	v := verdict.Values{"time_ratio": 1}
	addMissing(v, missing, d.Bytes)
	g.Verdict = verdict.Unobserved(verdict.Evidence{Code: verdict.CapturedGaps, Values: v}, verdict.Sender,
		verdict.ReceiverWindow, verdict.Congestion)
	return true
}

// addMissing adds how many bytes of a direction are not in the capture, and their share.
func addMissing(v verdict.Values, missing, bytes int64) {
	v["missing_bytes"] = float64(missing)
	v["missing_ratio"] = min(float64(missing)/float64(max(bytes, 1)), 1)
}

// silence is for how long the other end had said nothing when its peer gave up, seconds.
func (t *timeline) silence() float64 {
	return float64(max(t.c.Ended, t.d.Last)-t.d.Silent) / 1e9
}

// gone reports whether the other end was silent for most of the time. The limiter before it went away does not matter
// then.
func (t *timeline) gone(g *Diagnosis) bool {
	return t.d.Silent > 0 && !t.oneWay() && g.Limiter != verdict.MTUBlackHole &&
		t.silence() > threshold.HeadlineShare.Value*float64(t.c.Ended-t.d.First)/1e9
}

func (t *timeline) silent() verdict.Evidence {
	return verdict.Evidence{Limiter: verdict.Unknown, Code: verdict.CapturedSilent,
		Values: verdict.Values{"from_s": float64(t.d.Silent) / 1e9, "silent_s": t.silence()}}
}

// figures are what the verdict has to agree with.
func (t *timeline) figures() verdict.Figures {
	d := t.d
	f := verdict.Figures{LengthS: t.length, FullLinkBps: t.capacity * 8,
		CarriedBytes: t.parallelFactor * (float64(d.Bytes) + float64(d.Retransmitted)*float64(d.MSS)),
		MinRTTS:      t.baseRTT, RTTLoadedS: t.meanRTT().Seconds(), Queue: t.queueing,
		SlowStarts: float64(1 + d.Pauses + d.Timeouts), Retransmitted: float64(d.Retransmitted - d.Spurious),
		LossAllowsBps: t.lossAllows() * 8, GoodputBps: t.goodput * 8}
	t.fullWindow(&f)
	if t.vantage == AtSender {
		f.IdleRatio = t.clock(flow.Idle) / t.wall() // as the shares are
	}
	return f
}

// fullWindow sums the slices in which the window was what limited: its mean size, the rate
// that came and the round trips that were.
func (t *timeline) fullWindow(f *verdict.Figures) {
	if t.noUpdates() { // the window says nothing of the rate
		return
	}
	var window, used, came, took, rtt, timed float64
	for i := range t.d.Slices {
		s := &t.d.Slices[i]
		full := float64(s.Clock[flow.Full]+s.Clock[flow.Closed]) / 1e9
		if s.WindowMax == 0 || full < threshold.HeadlineShare.Value*sliceTime(s) || t.windowOf(s) != verdict.ReceiverWindow {
			continue
		}
		least, most := t.usable(s.WindowMax)
		window += most * sliceTime(s)
		used += least * sliceTime(s)
		came += float64(s.Acked + s.Repeated)
		took += sliceTime(s)
		rtt += float64(s.RTTSum) / 1e9
		timed += float64(s.RTTs)
	}
	if took > 0 {
		f.WindowBytes = window / took
		f.WindowUsedBytes = used / took
		f.WindowRateBps = came * 8 / took
	}
	if timed > 0 && f.WindowBytes > 0 {
		f.WindowTripS = max(t.baseRTT, rtt/timed)
	}
}

// lossAllows is the rate that so few losses leave a congestion window, bytes/s: Mathis et al.
// 1997 for Reno, and CUBIC is not slower. 0 where repairs themselves took the time.
func (t *timeline) lossAllows() float64 {
	rtt := max(t.meanRTT().Seconds(), t.baseRTT)
	if t.d.LossEvents == 0 || rtt == 0 || t.clock(flow.Recovery) > threshold.RepairsMatter.Value*t.length {
		return 0
	}
	// All retransmissions count, though some come together: rather too many.
	p := float64(max(t.d.LossEvents, t.d.Retransmitted)) / float64(t.d.Segments)
	if p > threshold.LossTimesOut.Value {
		return 0
	}
	return float64(t.d.MSS) / rtt * math.Sqrt(1.5/p)
}
