package live

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// watchedDirection is a window of samples of one connection whose program is not ours: its kernel
// is asked from outside (inet_diag), at one end. Sizes are bytes.
type watchedDirection struct {
	// Sends selects the judged direction: true for data that this end sends, false for data that it receives.
	Sends bool
	// Samples are in order of time. The first is the state before the window;
	// counters may have run since the connection began.
	Samples    []transfer.Sample
	Congestion string              // "" not known
	Handshake  *transfer.Handshake // nil: not known
	Send       transfer.Buffer
	Receive    transfer.Buffer
	PacingBps  float64 // SO_MAX_PACING_RATE; 0: none, or not known
	// Answered is the share of the samples at which nothing had come since this end's program sent
	// something last.
	Answered float64
	// DataSent is the number of segments with payload that this end sent in the window; 0: not
	// known.
	DataSent    int64
	dataArrived bool // full segments have arrived in the connection's life
	queue       sendQueue
	// ReceiveRTTs are the receiver's own estimates of the round trip while data came without pauses; nil: not known.
	ReceiveRTTs []time.Duration
}

// programOrBuffer are the limiters that only the program's own clocks distinguish.
var programOrBuffer = []verdict.Name{verdict.Application, verdict.SendBuffer}

// judgeWatched returns the limiter of a watched connection in the window. Without the program's
// clocks and the other end, a program that writes little and a small send buffer that the
// kernel's clock misses look alike: that time goes to Sender, with both as candidates.
// The evidence lists the other unknowns.
func judgeWatched(w *watchedDirection) verdict.Verdict {
	if len(w.Samples) < 2 {
		return verdict.Unobserved(verdict.Evidence{Code: verdict.NotSampled}, unobservedCandidates...)
	}
	scratch := copies.Get().(*[]transfer.Sample)
	defer copies.Put(scratch)
	r := w.result(scratch)
	v := lowerConfidence(judge(r, scope{watched: w.facts()}), r)
	v.Evidence = append(v.Evidence, w.unknowns()...)
	if v.Limiter == verdict.Sender && len(v.Candidates) == 0 {
		v.Candidates = append(v.Candidates, programOrBuffer...)
	}
	return v
}

// JudgeShared judges several watched connections that send to one host as one transfer. It returns the values of
// verdict.SharedLink for the link that they fill together, or nil if they do not or it is not known.
func JudgeShared(all []*Watched) verdict.Values {
	r := &transfer.Result{Near: &transfer.End{}, Complete: true, Spec: transfer.Spec{Direction: transfer.Up}}
	for i := range all {
		w := all[i].direction(true)
		if len(w.Samples) < 2 {
			return nil
		}
		r.Near.Streams = append(r.Near.Streams, w.result(new([]transfer.Sample)).Near.Streams...)
	}
	least := minRTTOf(r.Near)
	if least <= 0 || !isSampled(r.Near) {
		return nil
	}
	a := newAnalysis(r, least, scope{watched: &watchedFacts{}})
	if len(a.connections) < 2 || a.network.name != verdict.Bottleneck || a.network.code != verdict.FullLink {
		return nil
	}
	return verdict.Values{"connections": float64(len(a.connections)), "steady_bps": a.path.meanRate,
		"rtt_s": a.path.meanRTT.Seconds(), "rtt_base_s": a.path.baseRTT.Seconds()}
}

// copies are samples that a judgement has changed for itself. No verdict points into them.
var copies = sync.Pool{New: func() any { return new([]transfer.Sample) }}

// facts returns what the rules read besides the samples.
func (w *watchedDirection) facts() *watchedFacts {
	return &watchedFacts{lossBefore: w.Samples[0].Retransmitted > 0, dataArrived: w.dataArrived, queue: w.queue}
}

// result puts the window into the form of a transfer with one end that can be seen, in scratch.
func (w *watchedDirection) result(scratch *[]transfer.Sample) *transfer.Result {
	before := &w.Samples[0]
	samples := append((*scratch)[:0], w.Samples...)
	for i := range samples {
		since(&samples[i], before)
	}
	*scratch = samples
	last := &samples[len(samples)-1]
	stream := transfer.Stream{Congestion: w.Congestion, Handshake: w.Handshake, SendBuffer: w.Send,
		ReceiveBuffer: w.Receive,
		First:         before.At, Last: last.At, Samples: samples}
	end := &transfer.End{Streams: []transfer.Stream{stream}}
	r := &transfer.Result{Near: end, Complete: true, Spec: transfer.Spec{Direction: transfer.Down,
		Time: last.At - before.At}}
	end.Streams[0].Bytes = last.Received
	if last.MinRTT > 0 && len(w.ReceiveRTTs) > 0 {
		r.Latency = &transfer.Latency{Method: "TCP", Idle: []time.Duration{last.MinRTT}, Loaded: w.ReceiveRTTs}
	}
	if w.Sends {
		r.Spec.Direction = transfer.Up
		r.Spec.Near.PacingBps = w.PacingBps
		end.Streams[0].Bytes = last.Acked
	}
	return r
}

// since makes a sample count its counters from an earlier one on.
func since(s, from *transfer.Sample) {
	s.Busy = max(s.Busy-from.Busy, 0)
	s.RwndLimited = max(s.RwndLimited-from.RwndLimited, 0)
	s.SndbufLimited = max(s.SndbufLimited-from.SndbufLimited, 0)
	s.Retransmitted = max(s.Retransmitted-from.Retransmitted, 0)
	s.RetransmittedBytes = max(s.RetransmittedBytes-from.RetransmittedBytes, 0)
	s.DSACKDups = max(s.DSACKDups-from.DSACKDups, 0)
	s.ReordSeen = max(s.ReordSeen-from.ReordSeen, 0)
	s.Acked = max(s.Acked-from.Acked, 0)
	s.Sent = max(s.Sent-from.Sent, 0)
	s.Received = max(s.Received-from.Received, 0)
	s.SegmentsIn = max(s.SegmentsIn-from.SegmentsIn, 0)
	s.Have &^= transfer.HaveProgram
}

// unknowns returns the evidence for missing data: the program's clocks, the other end, and fields that this kernel
// does not report.
func (w *watchedDirection) unknowns() []verdict.Evidence {
	values := verdict.Values{"window_s": (w.Samples[len(w.Samples)-1].At - w.Samples[0].At).Seconds(),
		"samples": float64(len(w.Samples))}
	all := []verdict.Evidence{{Limiter: verdict.Unknown, Code: verdict.WatchedFromOutside, Values: values}}
	missing := verdict.Values{}
	have := common(w.Samples)
	for name, fields := range map[string]transfer.Fields{"limit_clocks": transfer.HaveLimits,
		"unsent":         transfer.HaveNotSent,
		"receive_window": transfer.HaveSendWnd, "rate": transfer.HaveRate} {
		if w.Sends && have&fields == 0 {
			missing[name] = 1
		}
	}
	if len(missing) > 0 {
		all = append(all, verdict.Evidence{Limiter: verdict.Unknown, Code: verdict.KernelFieldsMissing, Values: missing})
	}
	return all
}

// addWatched adds what samples further apart than round trips show of a watched connection: the evenness by the
// kernel's delivery rates, and the jitter of the round trips.
func (p *path) addWatched(all []*connection) {
	p.linkHeadroom = 0 // the least round trip may be a full segment's
	best := 0.0
	for _, c := range all {
		if !c.has(transfer.HaveRate) {
			return
		}
		rates := make([]float64, len(c.samples))
		for i := range c.samples {
			rates[i] = c.samples[i].DeliveryBps
		}
		slices.Sort(rates)
		best += rates[int(float64(len(rates)-1)*threshold.EvenBest.Value)]
	}
	if p.evenness == 0 && best > 0 && len(all) == 1 { // of several the best comes at different times
		p.evenness = min(p.meanRate/best, 1)
		p.evennessByDeliveryRate = true
	}
	if waits := p.meanRTT - p.minRTT; waits > 0 {
		p.rttJitterRatio = p.deviation(all).Seconds() / waits.Seconds()
	}
}

// deviation returns the standard deviation of srtt after slow start.
func (p *path) deviation(all []*connection) time.Duration {
	var squares, n float64
	for _, c := range all {
		for i := range c.samples {
			if s := &c.samples[i]; s.Have&transfer.HaveRTT != 0 && s.At > p.startedAt {
				d := (s.RTT - p.meanRTT).Seconds()
				squares = squares + d*d
				n = n + 1
			}
		}
	}
	return seconds(math.Sqrt(squares / max(n, 1)))
}
