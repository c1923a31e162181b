package live

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// evidence returns the observations behind the shares, the largest share first, and then the windows that were full
// without limiting.
func (a *analysis) evidence(shares verdict.Shares) (all []verdict.Evidence) {
	whole := a.beforeQueue(shares)
	for _, name := range whole.Top() {
		share := whole[name]
		if share < threshold.EvidenceShare.Value {
			continue
		}
		code, values := a.evidenceOf(name, share)
		if code == "" {
			continue
		}
		all = append(all, verdict.Evidence{Limiter: name, Code: code, Values: values})
	}
	if shares[verdict.Bottleneck] >= threshold.EvidenceShare.Value {
		all = append(all, a.alsoFull()...)
	}
	all = append(all, a.equalWindows()...)
	return append(all, a.queueEvidence()...)
}

// bestRate returns the best rate that lasted, or the mean while a link was full, in bit/s. The latter is higher if it
// was full for a few round trips only.
func (a *analysis) bestRate() float64 {
	if a.linkTime <= 0 {
		return a.path.lastingRate
	}
	return max(a.path.lastingRate, a.linkRate())
}

// linkRate returns the mean rate while a link was full, in bit/s.
func (a *analysis) linkRate() float64 {
	return a.linkBits / a.linkTime.Seconds() * float64(len(a.connections))
}

func (a *analysis) evidenceOf(name verdict.Name, share float64) (verdict.Code, verdict.Values) {
	took := verdict.Values{"time_ratio": share}
	switch name {
	case a.network.name:
		if a.network.values["best_bps"] > 0 {
			a.network.values["best_bps"] = a.bestRate()
		}
		if name == verdict.Bottleneck && share < threshold.HeadlineShare.Value && a.linkTime > 0 {
			a.network.values["steady_bps"] = a.linkRate()
		}
		return a.network.code, a.network.values
	case verdict.Bottleneck:
		took["best_bps"] = a.bestRate()
		return verdict.FullLinkOnceOpen, took
	case verdict.Unknown:
		return a.unknownEvidence(took)
	case verdict.Application:
		return verdict.NothingToSend, a.idleValues(took)
	case verdict.SendBuffer:
		return verdict.SendBufferFull, a.sendBufferValues()
	case verdict.ReceiverWindow:
		size := a.median((*connection).window)
		took["window_bytes"] = float64(size)
		took["rtt_s"] = a.path.meanRTT.Seconds()
		took["allows_bps"] = a.path.rateAtMeanRTT(size)
		a.path.addHeadroom(took)
		return verdict.ReceiveWindowFull, took
	case verdict.ReceiverApplication:
		return a.readerEvidence(took)
	case verdict.SlowStart:
		took["round_trips"] = float64(a.total) / float64(len(a.connections)) / float64(max(a.path.minRTT, 1))
		took["rtt_s"] = a.path.minRTT.Seconds()
		return verdict.StillInSlowStart, took
	case verdict.NagleDelayedAck:
		if awaitsAckTimer.IsTrue(a.whole()) {
			window := float64(a.median((*connection).window))
			took["window_bytes"] = window
			took["rtt_s"] = max(a.path.meanRTT.Seconds(), window*8/a.path.meanRate) // of all its segments
			took["rtt_base_s"] = a.path.minRTT.Seconds()
			return verdict.WindowAwaitsAckTimer, took
		}
		return verdict.NagleDelayedSegment, took
	case verdict.MTUBlackHole:
		return verdict.TimeoutsOnly, took
	case verdict.Pacing:
		if asked := a.connections[0].spec.PacingBps; asked > 0 {
			took["pacing_bps"] = asked
		}
		return verdict.Paced, took
	case verdict.LocalQueue:
		took["cwnd_bytes"] = float64(a.median((*connection).congestionWindow))
		took["in_flight_bytes"] = float64(a.median((*connection).outstanding))
		took["retransmitted_ratio"] = a.path.retransmitRatio
		return verdict.QueuedLocally, took
	case verdict.CPU:
		return a.cpuEvidence()
	case verdict.Sender:
		took["outstanding_bytes"] = float64(a.median((*connection).outstanding))
		return verdict.ProgramOrBuffer, took
	}
	return "", nil
}

func (a *analysis) idleValues(v verdict.Values) verdict.Values {
	v["idle_s"] = a.sum((*connection).idle).Seconds()
	v["total_s"] = a.total.Seconds()
	if c := a.connections[0]; c.isBelowSegment() {
		v["outstanding_bytes"] = float64(a.median((*connection).outstanding))
	}
	if paused := a.sum((*connection).paused); paused > 0 {
		v["paused_s"] = paused.Seconds()
	}
	if awaited := a.sum((*connection).awaited); awaited > 0 {
		v["awaited_s"] = awaited.Seconds()
	}
	return v
}

func (a *analysis) sendBufferValues() verdict.Values {
	size := a.median((*connection).outstanding)
	v := verdict.Values{"outstanding_bytes": float64(size), "rtt_s": a.path.meanRTT.Seconds(),
		"allows_bps":    a.path.rateAtMeanRTT(size),
		"granted_bytes": float64(a.connections[0].sender.SendBuffer.Granted)}
	if a.watched == nil { // another program's own clock is not known
		v["blocked_ratio"] = ratio(a.sum((*connection).blocked), a.total)
	}
	a.path.addHeadroom(v)
	if _, quota, ok := strings.Cut(a.sender.BufferRule, ":"); ok { // "afd:8192"
		if bytes, err := strconv.Atoi(quota); err == nil {
			v["rule_bytes"] = float64(bytes)
		}
	}
	return v
}

func (a *analysis) readerEvidence(took verdict.Values) (verdict.Code, verdict.Values) {
	if a.receiver == nil {
		return verdict.WindowCloses, took
	}
	var unread, paused, n float64
	for _, c := range a.connections {
		for i := range c.rounds {
			r := &c.rounds[i]
			unread += mean(r.receiverSamples, func(s *transfer.Sample) float64 { return float64(s.Queued) })
			n++
			paused += c.readerPaused(r).Seconds()
		}
	}
	took["unread_bytes"] = unread / max(n, 1)
	took["paused_s"] = paused
	return verdict.Unread, took
}

func (a *analysis) cpuEvidence() (verdict.Code, verdict.Values) {
	running := a.connections[0].runningRatio
	runDelay := a.connections[0].runqueueRatio
	if saturated(a.sender) || running >= threshold.SaturatedThread.Value {
		v := verdict.Values{"running_ratio": running}
		if a.sender.CPU != nil {
			v["busiest_thread_ratio"] = a.sender.CPU.BusiestThread
			if c := a.sender.CPU.Copies; c != nil && !*c {
				v["uncopied"] = 1
			}
		}
		return verdict.SenderCPU, v
	}
	switch {
	case runDelay >= threshold.RunDelay.Value:
		return verdict.SenderRunqueueWait, verdict.Values{"starved_ratio": runDelay}
	case a.receiver == nil || a.receiver.CPU == nil:
		return verdict.ReceiverRunqueueWait, nil
	case !saturated(a.receiver):
		return verdict.ReceiverRunqueueWait, verdict.Values{"starved_ratio": a.receiver.CPU.RunqueueWait}
	}
	return verdict.ReceiverCPU, verdict.Values{"busiest_thread_ratio": a.receiver.CPU.BusiestThread}
}

// alsoFull names the windows that were full behind a full link and did not limit.
func (a *analysis) alsoFull() (all []verdict.Evidence) {
	for _, w := range []struct {
		name     verdict.Name
		code     verdict.Code
		full     time.Duration
		limiting time.Duration
		bytes    func(*connection, *round) int64
	}{
		{verdict.ReceiverWindow, verdict.ReceiveWindowAlsoFull, a.sum((*connection).windowLimited),
			a.time[verdict.ReceiverWindow] + a.time[verdict.ReceiverApplication], (*connection).window},
		{verdict.SendBuffer, verdict.SendBufferAlsoFull, a.sum((*connection).sendLimited), a.time[verdict.SendBuffer],
			(*connection).outstanding},
	} {
		if full := ratio(w.full, a.total); full > threshold.AlsoFull.Value && w.limiting < w.full/2 {
			size := a.median(w.bytes)
			all = append(all, verdict.Evidence{Limiter: w.name, Code: w.code, Values: verdict.Values{
				"window_bytes": float64(size), "full_ratio": full, "allows_bps": a.path.rateAtBaseRTT(size)}})
		}
	}
	return all
}

func (c *connection) congestionWindow(r *round) int64 { return r.end.Cwnd }

// sum adds a clock up over all rounds of all connections.
func (a *analysis) sum(clock func(*connection, *round) time.Duration) (sum time.Duration) {
	for _, c := range a.connections {
		for i := range c.rounds {
			sum += clock(c, &c.rounds[i])
		}
	}
	return sum
}

// median returns the median of a size over all rounds of all connections.
func (a *analysis) median(size func(*connection, *round) int64) int64 {
	n := 0
	for _, c := range a.connections {
		n += len(c.rounds)
	}
	all := make([]int64, 0, n)
	for _, c := range a.connections {
		for i := range c.rounds {
			all = append(all, size(c, &c.rounds[i]))
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func ratio(a, b time.Duration) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}
