// Package timeline judges captures: the timeline that package flow made of each direction of a connection becomes
// shares of time, a verdict with evidence, and a prediction.
package timeline

import (
	"maps"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

// Band is a span of a direction with the limiter of most of its time. Times count from the first segment of the
// connection.
type Band struct {
	Start, End time.Duration
	Limiter    verdict.Name
}

// Diagnosis is the result for one direction of one connection.
type Diagnosis struct {
	verdict.Verdict
	Vantage    Vantage
	GoodputBps float64
	Bands      []Band
	Prediction *Prediction // nil: nothing follows
	// PathBps is the pace at which data that was outstanding at once got through, and RTT
	// the empty path's round trip; 0 not known.
	PathBps float64
	RTT     time.Duration
	// LostTime is the wall time that limiters other than the link and the sending program
	// took, with SYNWait, the time before the handshake in which SYNs were lost.
	LostTime, SYNWait time.Duration
	// Trust reports whether the capture's losses and times can be relied on.
	Trust trust.Trust
}

// timeline is one direction of a captured connection before the judge.
type timeline struct {
	c *flow.Connection
	d *flow.Direction

	length          float64 // wall time, seconds
	baseRTT         float64 // the empty path's round trip of a full segment, seconds; 0 unknown
	capacity        float64 // the best rate that lasted, bytes/s
	goodput         float64 // bytes/s
	pathPace        float64 // rate of data that is outstanding at once, bytes/s; 0 unknown
	rounds          int
	pausing         bool    // real pauses in the sending
	blockwise       bool    // waits for the receiver's delayed-ACK timer took a tenth of the time and more
	unclear         bool    // waits for the only acknowledgement of a block were most of the time, and its cause is open
	parallelFactor  float64 // bytes of all connections between the hosts, as a multiple of this one
	queueing        bool    // a standing queue was seen in much of the time
	sentFaster      bool    // data was sent faster than it ever arrived
	losing          bool    // losses are frequent enough to limit
	marked          bool    // queues' marks (ECN) are frequent enough to limit
	linkIsFull      bool    // linkFull, serialises or arrivesEvenly
	even            bool    // acknowledgements come to the sender at one pace, without pauses
	arrivesEven     bool    // arrivesEvenly
	lineBusy        bool    // keepsLineBusy
	inBursts        bool    // arrivesInBursts
	serialised      bool    // blocks wait for the line alone
	evenLoss        bool    // losses at the rate of the path, without the handshake
	policed         bool    // isPoliced
	belowSegment    bool    // less than a segment was outstanding at a time: no congestion window, no line was full
	isShort         bool    // it ended before the congestion window had opened
	unseenQueueTime float64 // time in which this tap does not see a queue, seconds
	waitedTime      float64 // time in which data or acknowledgements waited, seconds
	vantage         Vantage
	trust           trust.Trust
	verdict         verdict.Verdict // as far as it is known
	flightLevel     float64         // levelOfFlight
	// recovering says of each slice that its congestion window still grew back from a loss.
	recovering     []bool
	openingSlices  int            // slices in which it opened, without any loss
	avoiding       bool           // congestion avoidance opened it, not slow start
	networkLimiter []verdict.Name // for each slice, the limiter while nothing else limited
	time           map[verdict.Name]float64
	delivered      map[verdict.Name]float64 // bytes acknowledged in that time
}

// Judge returns the limiter of one direction of a captured connection, with evidence.
//
// The clocks of the flow show the plain states: an idle sender, a full or closed window, a repair. The whole transfer
// decides about the rest, and whether a full window or a repair cost anything: the link may have been full all the
// same.
//
// The others are directions of either of its hosts: connections share a link, and it is full when all of them together
// fill it.
//
// A verdict that does not agree with its own figures is judged once more by a round trip
// that several slices support, and is unknown where that does not fit either.
func Judge(c *flow.Connection, d *flow.Direction, others ...Parallel) Diagnosis {
	t := newTimeline(c, d, others, 0)
	g := t.judge()
	if t.gone(&g) {
		g.Verdict = verdict.Refuted(g.Verdict, t.silent())
		g.Prediction = nil
		return g
	}
	wrong := verdict.Check(g.Verdict, t.figures())
	if len(wrong) == 0 {
		return g
	}
	if base := t.supportedRTT(); base > t.baseRTT {
		t := newTimeline(c, d, others, base)
		again := t.judge()
		if len(verdict.Check(again.Verdict, t.figures())) == 0 {
			again.Verdict = verdict.Rejudged(again.Verdict, wrong[0])
			return again
		}
	}
	g.Verdict = verdict.Contradicted(g.Verdict, wrong[0])
	g.Prediction = nil
	return g
}

func (t *timeline) judge() Diagnosis {
	d := t.d
	g := Diagnosis{Vantage: t.vantage, GoodputBps: t.goodput * 8, PathBps: t.pathPace * 8, RTT: units.Seconds(t.baseRTT),
		Trust: t.trust}
	if t.jumped() {
		g.GoodputBps = 0
	}
	if len(d.Slices) == 0 && d.Unseen > 0 {
		g.Verdict = t.oneDirection()
		return g
	}
	if len(d.Slices) == 0 || t.length <= 0 {
		g.Verdict = verdict.Unobserved(verdict.Evidence{Code: verdict.CapturedTooShort}, verdict.Application,
			verdict.SlowStart)
		return g
	}
	acknowledgedUnseen := float64(d.Unseen) > threshold.UnreliableSlice.Value*float64(d.Bytes)
	if t.oneWay() && !acknowledgedUnseen {
		g.Verdict = t.oneDirection()
		return g
	}
	if d.Wanted >= int64(d.MSS) && d.MSS > d.MaxSegment && d.MaxSegment > 0 {
		g.Verdict = verdict.Unobserved(verdict.Evidence{Code: verdict.CapturedNoneLarge, Values: verdict.Values{
			"largest_bytes": float64(d.MaxSegment), "mss_bytes": float64(d.MSS), "missing_bytes": float64(d.Wanted)}},
			verdict.MTUBlackHole, verdict.Congestion)
		return g
	}
	if t.gaps(&g) {
		return g
	}
	few := !t.synsLost() && d.Bytes < int64(threshold.MinSegments.Value)*int64(max(d.MSS, 536)) &&
		t.rounds < int(threshold.MinRounds.Value)
	if few && d.Timeouts == 0 && t.clock(flow.BlackHole) == 0 {
		g.Verdict = t.tooFew()
		return g
	}
	took := make(attributed, 0, 8)
	g.Bands = make([]Band, 0, len(d.Slices))
	for i := range d.Slices {
		s := &d.Slices[i]
		took = took[:0]
		t.attribute(i, &took)
		for _, one := range took {
			t.time[one.name] += one.took
			t.delivered[one.name] += float64(s.Acked) * min(one.took/max(activeTime(s), 1e-9), 1)
		}
		g.Bands = append(g.Bands, Band{time.Duration(s.Start), time.Duration(s.End), took.most()})
	}
	if d.Abandoned > 0 {
		t.time[verdict.Sender] += float64(d.Abandoned) / 1e9
		g.Bands = append(g.Bands, Band{time.Duration(d.Last - d.Abandoned), time.Duration(d.Last), verdict.Sender})
	}
	g.Bands = joined(g.Bands)
	t.time[verdict.Congestion] += t.synWait()
	shares := t.shares()
	for name, share := range shares {
		if name != verdict.Bottleneck && name != verdict.Application && name != verdict.Unknown {
			g.LostTime += units.Seconds(share * t.wall())
		}
	}
	g.Verdict = hostOf(verdict.Headline(shares))
	t.verdict = g.Verdict
	// The acknowledgement of a few segments that were retransmitted once may only have been late.
	isLoss := g.Limiter == verdict.Congestion && d.Timeouts > 1
	if few && !isLoss && needsRate.IsTrue(t) {
		g.Verdict = t.tooFew()
		g.LostTime = 0
		g.Bands = nil
		return g
	}
	g.SYNWait = units.Seconds(t.synWait())
	t.conclude(&g)
	return g
}

// hostOf joins a sender that writes too little and one that limits itself, where neither alone is the larger part: a
// capture cannot show where in the host the data waits. Unless most of the time is the sender's anyway, it takes over
// the application's share, so that the headline has most of the time.
func hostOf(v verdict.Verdict) verdict.Verdict {
	if v.Limiter != verdict.Mixed {
		return v
	}
	together := maps.Clone(v.Shares)
	together[verdict.Sender] += together[verdict.Application]
	delete(together, verdict.Application)
	host := verdict.Headline(together)
	if host.Limiter != verdict.Sender {
		return v
	}
	if v.Shares[verdict.Sender] >= threshold.HeadlineShare.Value {
		host.Shares = v.Shares
	}
	return host
}

// newTimeline takes base for the empty path's round trip, seconds, or finds it where that is 0.
func newTimeline(c *flow.Connection, d *flow.Direction, others []Parallel, base float64) *timeline {
	t := &timeline{c: c, d: d, time: map[verdict.Name]float64{},
		delivered: map[verdict.Name]float64{}, vantage: vantage(d)}
	t.length = float64(d.Last-d.First) / 1e9
	if t.length > 0 {
		t.goodput = float64(d.Bytes) / t.length
		if d.Abandoned > 0 { // the rest did not arrive
			t.goodput = float64(d.Acked) / t.length
		}
	}
	rates := make([]weighted, 0, len(d.Slices))
	idle := 0.0
	outstanding := make([]float64, len(d.Slices))
	speeds := make([]float64, len(d.Slices))
	lost := make([]bool, len(d.Slices))
	for i := range d.Slices {
		s := &d.Slices[i]
		outstanding[i] = s.OutMean()
		speeds[i] = t.rate(s)
		lost[i] = s.Losses > 0 || s.Retransmitted > 0 || s.Marks > 0
		t.rounds += int(s.Rounds)
		idle += float64(s.Clock[flow.Idle]) / 1e9
		if active := activeTime(s); active > 0 && s.Acked > 0 {
			rates = append(rates, weighted{float64(s.Acked) / active, active})
		}
	}
	t.capacity = max(quantile(rates, threshold.EvenBest.Value), t.goodput)
	if t.spacedByLine() { // the rates leave out the time between segments that were acknowledged one by one
		t.capacity = min(t.capacity, t.blockRate())
	}
	t.pathPace = d.Bursts.Quantile(threshold.PathPace.Value)
	t.share(others)
	t.pausing = idle > threshold.PausingShare.Value*t.length
	t.baseRTT = base
	if base == 0 {
		t.baseRTT = t.emptyRTT()
	}
	// Spurious retransmissions were no losses, and cost no congestion window for long (RFC 3708, RFC 4015), unless a
	// timeout caused them.
	lostSegments := d.Retransmitted - d.Spurious + d.Unheard
	t.losing = float64(lostSegments) > threshold.Losing.Value*float64(d.Segments) && d.LossEvents > 0
	const maxOptions = 40 // bytes of a full segment, where no handshake shows them
	t.flightLevel = t.levelOfFlight()
	t.belowSegment = d.WindowMax >= int64(d.MSS) && t.flightLevel+maxOptions < float64(d.MSS)
	t.marked = d.Marks >= int64(threshold.MinRounds.Value)
	t.blockwise = !t.losing && d.TimerWaits >= int64(threshold.MinRounds.Value) &&
		t.clock(flow.AckTimer) > threshold.PausingShare.Value*t.length
	t.unclear = t.timerOrLine()
	t.even = t.vantage == AtSender && d.Spacing != nil && t.isEven(&d.Spacing.Acks)
	t.arrivesEven = t.arrivesEvenly()
	t.lineBusy = t.keepsLineBusy()
	t.inBursts = t.arrivesInBursts()
	queued := 0.0
	probes := 0
	for i := range d.Slices {
		s := &d.Slices[i]
		if t.lineQueued(s) && t.full(s) && !t.ackQueued(s) {
			queued += sliceTime(s)
		}
		after := &d.Slices[min(i+1, len(d.Slices)-1)]
		enough := s.OutMax >= int64(threshold.ProbeSegments.Value)*int64(d.MSS) && s.Clock[flow.SlowStart] == 0
		if t.pathPace > 0 && enough &&
			s.PeakSent > threshold.BBRProbing.Value*max(t.pathPace, s.PeakAcked, after.PeakAcked) {
			probes++
		}
	}
	t.queueing = queued > threshold.HeadlineShare.Value*t.length
	// Behind the link nothing comes faster than the link.
	t.sentFaster = t.vantage == AtSender && probes > 1 && probes*int(threshold.ProbeEvery.Value) > len(d.Slices)
	t.serialised = t.serialises()
	t.linkIsFull = t.serialised || t.linkFull() || t.arrivesEven
	t.isShort = t.short()
	t.evenLoss = t.lossOrLink()
	t.recovering = recoveries(outstanding, lost)
	t.policed = t.losing && isPoliced.IsTrue(t)
	if !t.losing && !t.marked {
		t.openingSlices = opening(outstanding, speeds)
		t.avoiding = t.avoidsCongestion()
	}
	t.judgeNetwork()
	t.trust = t.trustOf()
	return t
}

// emptyRTT is the round trip of a full segment over the empty path, seconds: the least one
// of data, or the handshake's and the serialisation that its small segments were spared. The serialisation is an
// estimate, which does not make the empty path slower than the path was on average.
func (t *timeline) emptyRTT() float64 {
	d := t.d
	if d.RTTMin <= 0 {
		return 0
	}
	base := float64(d.RTTMin) / 1e9
	if fastest := max(t.pathPace, t.capacity); fastest > 0 {
		base = max(base, min(base+float64(d.MSS)/fastest, t.meanRTT().Seconds()))
	}
	if d.DataRTTMin > 0 {
		base = min(base, float64(d.DataRTTMin)/1e9)
	}
	return base
}

// supportedRTT is the mean round trip that a twentieth of the time did not exceed, seconds:
// no single packet's.
func (t *timeline) supportedRTT() float64 {
	means := make([]weighted, 0, len(t.d.Slices))
	for i := range t.d.Slices {
		if s := &t.d.Slices[i]; s.RTTs > 0 {
			means = append(means, weighted{float64(s.RTTSum) / float64(s.RTTs) / 1e9, sliceTime(s)})
		}
	}
	return quantile(means, threshold.BestLeftOut.Value)
}

func sliceTime(s *flow.Slice) float64 { return float64(s.End-s.Start) / 1e9 }

func (t *timeline) rate(s *flow.Slice) float64 {
	if active := activeTime(s); active > 0 {
		return float64(s.Acked) / active
	}
	return 0
}
