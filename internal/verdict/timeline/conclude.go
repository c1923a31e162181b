package timeline

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// conclude adds to a headline its subtype, candidates, confidence, evidence and prediction.
func (t *timeline) conclude(g *Diagnosis) {
	t.programs(g)
	switch g.Limiter {
	case verdict.ReceiverWindow:
		g.Subtype = t.windowSubtype()
		if t.scaleMismatch() {
			g.Subtype = verdict.ScaleMismatch
		} else if t.noUpdates() {
			g.Subtype = verdict.NoUpdates
		}
	case verdict.Congestion:
		if t.lostSYNsDominate() {
			g.Subtype = verdict.LostSYNs
		} else if t.policed() {
			g.Subtype = verdict.Policer
		} else if t.markedMostly() {
			g.Subtype = verdict.Marked
		}
	case verdict.MTUBlackHole:
		if t.oversized() {
			g.Subtype = verdict.Oversized
		}
	case verdict.SlowStart:
		if t.idleRestarts() {
			g.Subtype = verdict.IdleRestart
		}
	case verdict.NagleDelayedAck:
		if t.blockwise {
			g.Subtype = verdict.AckTimer
		}
	case verdict.Sender:
		g.Candidates = t.senderCandidates()
		if t.vantage != AtSender {
			g.Candidates = append(g.Candidates, verdict.AckPath) // late acknowledgements look like a late sender
		}
	case verdict.Unknown:
		g.Candidates = t.unknownCandidates()
	}
	g.Confidence = t.confidence(g)
	for _, name := range g.Shares.Top() {
		if g.Shares[name] < threshold.EvidenceShare.Value {
			continue
		}
		code, values := t.describe(name, g.Shares[name])
		if name == verdict.Application && g.Subtype != "" && g.Limiter == name {
			values = verdict.Values{"time_ratio": g.Shares[name]}
			code = t.describeProgram(g.Subtype, values)
		}
		if code != "" {
			g.Evidence = append(g.Evidence, verdict.Evidence{Limiter: name, Code: code, Values: values})
		}
	}
	if e, ok := t.describeBlocks(g.Limiter); ok {
		g.Evidence = append(g.Evidence, e)
	}
	g.Evidence = append(g.Evidence, t.caveats(g)...)
	g.Prediction = t.predict(g.Verdict)
}

// cutsSegments reports whether more segments than the last of a transfer are below the MSS.
func (t *timeline) cutsSegments() bool {
	return float64(t.d.SmallSegments) > threshold.SmallShare*float64(t.d.Segments)
}

// senderCandidates are what may hold a sender back that has room in every window, the
// likeliest first.
func (t *timeline) senderCandidates() []verdict.Name {
	d := t.d
	flat, _, _ := t.flat(float64(d.MaxOut))
	switch {
	case t.cutsSegments() && !t.equalBlocks():
		return []verdict.Name{verdict.Application, verdict.SendBuffer, verdict.Pacing, verdict.LocalQueue, verdict.CPU,
			verdict.Congestion}
	case t.equalBlocks(), flat > threshold.FlatLong*t.length,
		float64(d.Silences)/1e9 > threshold.PausingShare.Value*t.length: // not paced
		return []verdict.Name{verdict.SendBuffer, verdict.Pacing, verdict.Application, verdict.LocalQueue, verdict.CPU,
			verdict.Congestion}
	}
	return []verdict.Name{verdict.Pacing, verdict.Application, verdict.SendBuffer, verdict.LocalQueue, verdict.CPU,
		verdict.Congestion}
}

// describe returns the evidence for a limiter with its share of the time.
func (t *timeline) describe(name verdict.Name, share float64) (verdict.Code, verdict.Values) {
	d := t.d
	v := verdict.Values{"time_ratio": share}
	switch name {
	case verdict.ReceiverWindow:
		return t.describeWindow(v)
	case verdict.ReceiverApplication:
		v["window_bytes"] = float64(d.WindowMax)
		v["zero_windows"] = float64(d.ZeroWindows)
		return verdict.CapturedWindowClosed, v
	case verdict.Application:
		if idle := t.clock(flow.Idle); idle > threshold.IdleOfApplication*share*t.wall() {
			v["idle_s"] = idle
			return verdict.CapturedIdle, v
		}
		return verdict.CapturedStopAndWait, v
	case verdict.NagleDelayedAck:
		if waited := t.clock(flow.AckTimer); t.blockwise {
			v["waited_s"] = waited
			v["waits"] = float64(d.TimerWaits)
			v["timer_s"] = waited / float64(d.TimerWaits)
			if 2*d.WindowTimerWaits > d.TimerWaits {
				v["window_bytes"] = float64(d.WindowMax)
				return verdict.WindowAwaitsAckTimer, v
			}
			v["block_bytes"] = float64(d.Bytes) / float64(max(d.Restarts, 1))
			return verdict.CapturedAckTimer, v
		}
		v["held_s"] = t.clock(flow.NagleWait)
		return verdict.CapturedNagle, v
	case verdict.MTUBlackHole:
		if t.oversized() {
			v["mss_bytes"] = float64(d.MSS)
			v["largest_bytes"] = float64(d.MaxSegment)
			v["lost_bytes"] = float64(d.Oversized.Lost)
			return verdict.CapturedOversized, v
		}
		v["icmp_too_big"] = float64(d.TooBig)
		if d.TooBig > 0 {
			v["router_mtu_bytes"] = float64(d.RouterMTU)
		}
		return verdict.CapturedBlackHole, v
	case verdict.SlowStart:
		if t.idleRestarts() {
			v["restarts"] = float64(d.IdleRestarts.Count)
			v["idle_s"] = float64(d.IdleRestarts.Idle) / 1e9
			if t.baseRTT > 0 {
				v["rtt_s"] = t.baseRTT
			}
			return verdict.CapturedIdleRestart, v
		}
		v["round_trips"] = t.length / max(t.baseRTT, 1e-6)
		v["rtt_s"] = t.baseRTT
		return verdict.CapturedSlowStart, v
	case verdict.Congestion:
		if t.lostSYNsDominate() {
			return verdict.CapturedLostSYNs, t.lostSYNs(v)
		}
		v["time_ratio"] = max(share-t.synWait()/t.wall(), 0) // the window did not take the wait
		if t.markedMostly() {
			v["marks"] = float64(d.Marks)
			v["rtt_s"] = t.meanRTT().Seconds()
			v["rtt_base_s"] = t.baseRTT
			return verdict.CapturedMarks, v
		}
		v["retransmitted_segments"] = float64(d.Retransmitted)
		v["segments"] = float64(d.Segments)
		v["loss_events"] = float64(d.LossEvents)
		v["timeouts"] = float64(d.Timeouts)
		v["rtt_s"] = t.meanRTT().Seconds()
		v["rtt_base_s"] = t.baseRTT
		return verdict.CapturedLoss, v
	case verdict.Bottleneck:
		v["rtt_s"] = t.meanRTT().Seconds()
		t.pathRate(name, v)
		v["rtt_base_s"] = t.baseRTT
		if t.queueing {
			v["queue"] = 1
		}
		if t.clock(flow.Full) > threshold.AlsoFull.Value*t.length {
			v["window_allows_bps"] = t.allows(d.WindowMax)
		}
		return verdict.CapturedFullLink, v
	case verdict.AckPath:
		v["rtt_s"] = t.meanRTT().Seconds()
		v["rtt_base_s"] = t.baseRTT
		return verdict.CapturedAckQueue, v
	case verdict.Sender:
		v["outstanding_bytes"] = float64(d.MaxOut)
		v["window_bytes"] = float64(d.WindowMax)
		v["retransmitted_segments"] = float64(d.Retransmitted - d.Spurious)
		if t.losing {
			v["losing"] = 1
		}
		return verdict.CapturedSenderWaits, v
	case verdict.Unknown:
		return t.missing(v)
	}
	return "", nil
}

// caveats are what lowers the worth of the verdict.
func (t *timeline) caveats(g *Diagnosis) (all []verdict.Evidence) {
	d := t.d
	add := func(n verdict.Name, c verdict.Code, v verdict.Values) {
		all = append(all, verdict.Evidence{Limiter: n, Code: c, Values: v})
	}
	if t.synWait() > 0 && !t.lostSYNsDominate() {
		add(verdict.Congestion, verdict.CapturedLostSYNs, t.lostSYNs(verdict.Values{}))
	}
	if d.SACKOutside >= threshold.FewSegments && 2*d.SACKOutside > d.SACKBlocks {
		add(verdict.Congestion, verdict.CapturedSACKOutside, verdict.Values{"blocks": float64(d.SACKBlocks),
			"outside": float64(d.SACKOutside)})
	}
	small := g.Limiter == verdict.ReceiverWindow && g.Subtype != verdict.Unscaled
	if d.NoScale && (small || t.time[verdict.ReceiverWindow] == 0 && d.MaxOut > threshold.UnscaledReported) {
		add(verdict.ReceiverWindow, verdict.CapturedUnscaled, nil)
	}
	if t.scaleMismatch() && t.time[verdict.ReceiverWindow] > 0 {
		m, _ := t.c.ScaleMismatch(d)
		v := verdict.Values{"handshake_window_bytes": float64(m.Offered), "first_window_bytes": float64(m.First),
			"window_scale": float64(d.Scale)}
		if m.Scale >= 0 {
			v["applied_scale"] = float64(m.Scale)
		}
		add(verdict.ReceiverWindow, verdict.CapturedScaleMismatch, v)
	}
	if d.NoScale && t.c.BareSYNACK() &&
		(t.time[verdict.ReceiverWindow] > 0 || d.MaxOut > threshold.UnscaledReported) {
		add(verdict.ReceiverWindow, verdict.CapturedBareSynAck, nil)
	}
	if d.Unseen > 0 && float64(d.Unseen) <= threshold.UnreliableCapture*float64(d.Bytes) {
		add(verdict.Unknown, verdict.CapturedFewGaps, verdict.Values{"missing_bytes": float64(d.Unseen)})
	}
	if d.Silent > 0 {
		add(verdict.Unknown, verdict.CapturedSilent, verdict.Values{"from_s": float64(d.Silent) / 1e9,
			"silent_s": t.silence()})
	} else if d.Stalled > 0 {
		add(verdict.Congestion, verdict.CapturedOutage, verdict.Values{"from_s": float64(d.StallFrom) / 1e9,
			"to_s": float64(d.StallTo) / 1e9, "stalled_s": float64(d.Stalled) / 1e9})
	}
	if t.coarse() {
		add(verdict.Unknown, verdict.CapturedCoarseClock, verdict.Values{"grain_s": float64(t.c.Grain) / 1e9,
			"rtt_s": t.baseRTT})
	}
	if t.c.ClockSteps > 0 {
		add(verdict.Unknown, verdict.CapturedClockSteps, verdict.Values{"steps": float64(t.c.ClockSteps)})
	}
	return all
}

// pathRate adds the best rate, which lasted for the limiter's time; else the mean rate in that time. The best of a
// connection that shares the link, or is often idle, does not last.
func (t *timeline) pathRate(name verdict.Name, v verdict.Values) {
	mean := t.delivered[name] / max(t.time[name], 1e-9)
	if t.capacity > threshold.CarriedMax.Value*mean && mean > 0 {
		v["mean_bps"] = mean * 8
		return
	}
	v["best_bps"] = t.capacity * 8
}

func (t *timeline) clock(c flow.Clock) (sum float64) {
	for i := range t.d.Slices {
		sum += float64(t.d.Slices[i].Clock[c]) / 1e9
	}
	return sum
}

func (t *timeline) meanRTT() time.Duration {
	var sum, n int64
	for i := range t.d.Slices {
		sum += t.d.Slices[i].RTTSum
		n += int64(t.d.Slices[i].RTTs)
	}
	if n == 0 {
		return 0
	}
	return time.Duration(sum / n)
}
