package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// arrivalFacts are a receiver's measurements of a transfer without data from the sender's kernel, in which the
// sending program reports when it had nothing to send: a browser's upload.
type arrivalFacts struct {
	idle       float64 // the share of the time in which the program had nothing queued
	mean, top  float64 // bit/s: once started, and the best that lasted
	deviation  float64 // of the rates over shorter spans, as a share of their mean
	disordered float64 // segments that arrived out of order, as a share: each loss makes some
	mss        int     // of the largest connection's segments, bytes
	// Round trips of what the receiver says meanwhile, by its kernel, in seconds: the least one
	// and under load; 0: not known. Programs that run late do not lengthen them, but delayed
	// acknowledgements do.
	base, rtt float64
	standing  float64 // of rtt, without its usual deviation
	// The same by the sending program's own probes before and during the transfer; 0: none. The program may
	// run late, but waits for no acknowledgement.
	idleEcho, loadedEcho float64
	standingEcho         float64 // exceeded by all probes under load but FastProbes of them; 0: not known
	late                 float64 // the share of the time in which the program was to run and did not
}

// judgeArrivals settles what judgeReceiver left unknown, by what the sending program reports or by the probes.
func judgeArrivals(r *transfer.Result, v verdict.Verdict) verdict.Verdict {
	if v.Limiter != verdict.Unknown || r.Receiver() == nil {
		return v
	}
	idle, known := programIdle(r.Sender())
	rules := arrivalRules
	if !known {
		rules = probeRules
	}
	a := newArrivals(r, idle)
	d := decide(rules, &a)
	name := d.limiter
	if name == verdict.Unknown {
		return v
	}
	rest := v.Shares[verdict.Unknown]
	delete(v.Shares, verdict.Unknown)
	if share := rest * idle; name != verdict.Application && share > 0 {
		v.Shares[verdict.Application] += share
		rest -= share
	}
	v.Shares[name] += rest
	v.Limiter = name
	v.Confidence = d.confidence
	v.Candidates = slices.Clone(d.candidates)
	values := verdict.Values{"steady_bps": a.mean, "best_bps": a.top, "out_of_order_ratio": a.disordered,
		"time_ratio": idle}
	if name == verdict.CPU {
		values["time_ratio"] = a.late
	}
	if !known || !showsQueue(a.base, a.rtt) && showsQueue(a.idleEcho, a.loadedEcho) {
		values["rtt_s"] = a.loadedEcho
		values["rtt_base_s"] = a.idleEcho
	} else if a.base > 0 {
		values["rtt_s"] = a.rtt
		values["rtt_base_s"] = a.base
	}
	v.Evidence = slices.DeleteFunc(v.Evidence, func(e verdict.Evidence) bool { return e.Code == verdict.SenderUnseen })
	v.Evidence = append(v.Evidence, verdict.Evidence{Limiter: name, Code: d.code, Values: values})
	return v
}

// programIdle returns the time without anything to send: idle by the kernel's clock or, for a program that writes
// often and so always has something in flight, the time in which it paused or awaited an answer while all data was
// sent. A writer that waits for buffer space is not idle.
func programIdle(e *transfer.End) (share float64, known bool) {
	if e == nil {
		return 0, false
	}
	var paused, total time.Duration
	for i := range e.Streams {
		s := e.Streams[i].Samples
		if n := len(s); n > 0 && s[n-1].Have&transfer.HaveProgram != 0 && s[n-1].At > 0 {
			paused += min(max(s[n-1].Paused, 0), s[n-1].At)
			total += s[n-1].At
		}
	}
	return ratio(paused, total), total > 0
}

func newArrivals(r *transfer.Result, idle float64) (a arrivalFacts) {
	a.idle = idle
	if sender := r.Sender(); sender != nil && sender.CPU != nil {
		a.late = sender.CPU.RunqueueWait
	}
	end := r.Receiver()
	start := scale(threshold.SpanOfArrivals.Time(), threshold.StartSpans.Value)
	a.base = minRTTOf(end).Seconds()
	a.rtt = end.LoadedRTT(start).Seconds()
	a.standing = end.LoadedRTTLessVar(start).Seconds()
	span := max(scale(minRTTOf(end), threshold.RoundTrips.Value), threshold.ShortestRound.Time(),
		threshold.SpanOfArrivals.Time())
	from := threshold.MaxTime.Time()
	to := time.Duration(0)
	for i := range end.Streams {
		from = min(from, end.Streams[i].First)
		to = max(to, end.Streams[i].Last)
	}
	// Slow start loses what it overshoots by, once: that limits nothing.
	started := from + min(max(to-from, 0)/4, start)
	if s, ok := r.Startup(); ok {
		started = max(started, from+s.End)
	}
	a.addProbes(r.Latency, min(ratio(started, to), 1))
	var segments, disordered float64
	for i := range end.Streams {
		s := &end.Streams[i]
		first := slices.IndexFunc(s.Samples, func(one transfer.Sample) bool { return one.At >= started })
		if n := len(s.Samples); first >= 0 {
			mss := s.Handshake.SegmentSize()
			a.mss = max(a.mss, int(mss))
			early := &s.Samples[first]
			late := &s.Samples[n-1]
			segments += float64(late.Received-early.Received) / float64(mss)
			disordered += float64(late.RcvOOOPack - early.RcvOOOPack)
		}
	}
	if segments > 0 {
		a.disordered = min(disordered/segments, 1)
	}
	rates := startedRates(end, from, started, to, span)
	if len(rates) == 0 {
		return a
	}
	a.mean = meanOf(rates)
	a.top = bestLasting(rates)
	short := startedRates(end, from, started, to,
		max(scale(minRTTOf(end), threshold.EvenRoundTrips.Value), threshold.SpanOfArrivals.Time()))
	if mean, dev := stats.MeanDev(short); mean > 0 {
		a.deviation = dev / mean
	}
	return a
}

// addProbes adds the round trips of the probes. Those in the first share of the transfer were made in slow start, which
// has built no queue yet.
func (a *arrivalFacts) addProbes(l *transfer.Latency, share float64) {
	if l == nil || len(l.Idle) == 0 {
		return
	}
	loaded := slices.Clone(l.Loaded[int(share*float64(len(l.Loaded))):])
	if len(loaded) == 0 {
		return
	}
	a.idleEcho = medianOf(l.Idle)
	a.loadedEcho = medianOf(loaded)
	// A single idle one is a kernel's least round trip.
	if len(l.Idle) > 1 && len(loaded) >= int(threshold.FewProbes.Value) {
		slices.Sort(loaded)
		a.standingEcho = loaded[int(threshold.FastProbes.Value*float64(len(loaded)))].Seconds()
	}
}

// startedRates are the rates in bit/s at which an end received, span by span, without slow start.
func startedRates(e *transfer.End, from, started, to, span time.Duration) (rates []float64) {
	before := receivedBy(e, from)
	first := 0
	for t := from + span; t <= to; t += span {
		now := receivedBy(e, t)
		rates = append(rates, max(now-before, 0)*8/span.Seconds())
		before = now
		if t-span < started && t+span <= to {
			first = len(rates)
		}
	}
	return rates[max(first, min(len(rates)/4, int(threshold.StartSpans.Value))):]
}

// receivedBy is the payload that an end had received at a time, all streams together.
func receivedBy(e *transfer.End, at time.Duration) (sum float64) {
	for i := range e.Streams {
		s := e.Streams[i].Samples
		n := 0
		for n < len(s) && s[n].At <= at {
			n++
		}
		switch {
		case n == 0:
		case n == len(s):
			sum += float64(s[n-1].Received)
		default:
			a := &s[n-1]
			b := &s[n]
			sum += float64(a.Received) + float64(b.Received-a.Received)*ratio(at-a.At, b.At-a.At)
		}
	}
	return sum
}

func meanOf(all []float64) float64 {
	mean, _ := stats.MeanDev(all)
	return mean
}

func medianOf(times []time.Duration) float64 {
	all := make([]float64, len(times))
	for i, t := range times {
		all[i] = t.Seconds()
	}
	return stats.Median(all)
}

// lossExplains reports whether the loss rate explains the rate (Mathis et al. 1997). The share of segments out of
// order is at least the loss rate, so Reno would reach at least the computed rate.
func (a *arrivalFacts) lossExplains() bool {
	rtt := time.Duration(a.base * float64(time.Second)) // a host's own work may lengthen the others
	return a.mean >= threshold.LossExplains.Value*model.Mathis(a.mss, rtt, a.disordered)
}

// showsQueue says that round trips under load show a queue that is in the path.
func showsQueue(base, loaded float64) bool {
	return base > 0 && loaded >= (1+threshold.StandingQueue.Value)*base &&
		loaded-base >= threshold.SmallPacketQueue.Time().Seconds()
}
