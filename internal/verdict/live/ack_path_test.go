package live

import (
	"math"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// lagging is a series of acknowledgements: lag(i) after the arrival, at a round trip of
// base + waited(i).
func lagging(n int, base time.Duration, lag, waited func(i int) time.Duration) (all []ackLag) {
	for i := range n {
		all = append(all, ackLag{lag(i), base + waited(i)})
	}
	return all
}

func TestAckShare(t *testing.T) {
	constant := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	growing := func(i int) time.Duration { return min(time.Duration(i)*2*ms, 100*ms) }
	for _, c := range []struct {
		name     string
		lags     []ackLag
		every    time.Duration
		from, to float64
	}{
		{"a queue of data: acknowledgements always take as long", lagging(100, 40*ms, constant(20*ms), growing), 10 * ms, 0,
			0},
		{"a queue of acknowledgements from its beginning", lagging(100, 40*ms, growing, growing), 10 * ms, 0.95, 1},
		{"half of either", lagging(100, 40*ms, func(i int) time.Duration { return growing(i) / 2 }, growing), 10 * ms, 0.4,
			0.6},
		{"clocks that differ by an hour", lagging(100, 40*ms, func(i int) time.Duration { return growing(i) - time.Hour },
			growing), 10 * ms, 0.95, 1},
		{"one sample whose thread had no core", lagging(100, 40*ms, func(i int) time.Duration {
			if i == 50 {
				return -time.Second
			}
			return 20 * ms
		}, growing), 10 * ms, 0, 0},
		{"a receiver with too few samples", lagging(100, 40*ms, growing, growing), 200 * ms, 0, 0},
		{"too few", lagging(5, 40*ms, growing, growing), 10 * ms, 0, 0},
		{"none", nil, 0, 0, 0},
	} {
		if got := ackShare(c.lags, c.every, 40*ms); got < c.from || got > c.to {
			t.Errorf("%s: %.2f, want %.2f to %.2f", c.name, got, c.from, c.to)
		}
	}
}

// A sender that has connected counts its SYN as acknowledged (tcp_snd_una_update): that
// one byte must not be looked for among the next flight's. Slow start's flights lie a
// round trip apart, and between them the sender waits: no acknowledgement is late then.
func TestAckLagsOfFlights(t *testing.T) {
	const rtt, flight = 40 * ms, int64(14480)
	c := connection{receiver: &transfer.Stream{Last: time.Second}}
	for at := 5 * ms; at <= time.Second; at += 5 * ms {
		flights := int64(at / rtt) // that have been acknowledged
		c.samples = append(c.samples, transfer.Sample{At: at, Have: transfer.HaveAcked, RTT: rtt, Acked: 1 + flights*flight})
		arrived := int64((at + rtt/2) / rtt)
		c.receiver.Samples = append(c.receiver.Samples, transfer.Sample{At: at, Have: transfer.HaveReceived,
			Received: arrived * flight})
	}
	lags, every := c.ackLags()
	if len(lags) < 20 || every != 5*ms {
		t.Fatalf("%d lags, every %v", len(lags), every)
	}
	for _, l := range lags {
		if l.lag < rtt/2-every || l.lag > rtt/2+every {
			t.Errorf("%v after the arrival, want %v", l.lag, rtt/2)
		}
	}
}

func TestNetworkRules(t *testing.T) {
	full := path{minRTT: 40 * ms, baseRTT: 40 * ms, meanRTT: 80 * ms, standingRTT: 75 * ms, meanRate: 19e6,
		lastingRate: 20e6, lastingRateStarted: 20e6,
		peakRate:    20e6,
		queuedRatio: 0.9, evenness: 0.95}
	with := func(p path, change func(*path)) *path { change(&p); return &p }
	both := networkFacts{receiverSeen: true}
	for _, c := range []struct {
		name       string
		path       *path
		facts      networkFacts
		want       verdict.Name
		subtype    string
		confidence verdict.Confidence
		code       verdict.Code
	}{
		{"a full link, seen at both ends", &full, both, verdict.Bottleneck, "", verdict.High, verdict.FullLink},
		{"by the sender alone", &full, networkFacts{}, verdict.Bottleneck, "", verdict.Medium, verdict.FullLink},
		{"its queue is of acknowledgements", &full, networkFacts{receiverSeen: true, ackQueue: 0.9}, verdict.AckPath, "",
			verdict.Medium, verdict.QueueOfAcks},
		{"half of it is", &full, networkFacts{receiverSeen: true, ackQueue: 0.5}, verdict.Bottleneck, "", verdict.Medium,
			verdict.FullLink},
		{"a steady rate without a queue", with(full, func(p *path) {
			p.meanRTT, p.standingRTT, p.queuedRatio = 41*ms, 41*ms, 0
		}), both,
			verdict.Bottleneck, "", verdict.Medium, verdict.FullLinkNoQueue},
		{"loss before a queue could form", with(full, func(p *path) {
			p.retransmitRatio, p.meanRTT, p.standingRTT, p.meanRate = 0.01, 40*ms, 40*ms,
				10e6
		}), both,
			verdict.Congestion, "", verdict.High, verdict.LossWithoutQueue},
		{"the same at a steady rate", with(full, func(p *path) {
			p.retransmitRatio, p.meanRTT, p.standingRTT = 0.02, 40*ms, 40*ms
		}),
			networkFacts{receiverSeen: true, lossDispersion: 3}, verdict.Congestion, verdict.Policer, verdict.Medium,
			verdict.PolicedRate},
		{"most retransmissions were spurious", with(full, func(p *path) {
			p.retransmitRatio, p.dsackRatio, p.meanRTT, p.standingRTT, p.meanRate = 0.02, 0.8, 40*ms, 40*ms, 17e6
		}), networkFacts{receiverSeen: true, lossDispersion: 3}, verdict.Congestion, verdict.Reordering, verdict.Medium,
			verdict.SpuriousRetransmissions},
		{"little of it had", with(full, func(p *path) {
			p.retransmitRatio, p.dsackRatio, p.meanRTT, p.standingRTT, p.meanRate = 0.02, 0.2, 40*ms, 40*ms, 10e6
		}), both, verdict.Congestion, "", verdict.High, verdict.LossWithoutQueue},
		{"needless, and the link is full", with(full, func(p *path) { p.retransmitRatio, p.dsackRatio = 0.02, 0.8 }), both,
			verdict.Bottleneck, "", verdict.High, verdict.FullLink},
		{"full, with a short queue, and it loses", with(full, func(p *path) {
			p.retransmitRatio, p.meanRTT, p.standingRTT = 0.02, 52*ms, 48*ms
		}), both, verdict.Bottleneck, "", verdict.Medium, verdict.FullLink},
		{"loss, and a rate below what came between", with(full, func(p *path) {
			p.retransmitRatio, p.meanRTT, p.standingRTT, p.meanRate,
				p.queuedRatio = 0.01, 45*ms, 42*ms, 10e6, 0
		}),
			both, verdict.Congestion, "", verdict.High, verdict.LossBelowBest},
		{"windows that open to the end", with(full, func(p *path) {
			p.meanRate, p.meanRTT, p.standingRTT = 10e6, 41*ms, 41*ms
		}), networkFacts{cwndGrows: true},
			verdict.SlowStart, "", verdict.Medium, verdict.CwndOpens},
		{"windows that grow back after a loss", with(full, func(p *path) {
			p.meanRate, p.meanRTT, p.standingRTT = 15e6, 41*ms, 41*ms
		}),
			networkFacts{cwndGrows: true, cwndRegrows: true},
			verdict.Congestion, "", verdict.Medium, verdict.LossBelowBest},
		{"steady, with no queue, where windows hardly grow after a loss", with(full, func(p *path) {
			p.meanRTT, p.standingRTT, p.queuedRatio = 40*ms, 40*ms, 0
		}), networkFacts{cwndRegrows: true}, verdict.Unknown, "", verdict.Low, verdict.FullLinkNoQueue},
		{"the same with a queue too short to be measured", with(full, func(p *path) {
			p.meanRTT, p.standingRTT, p.baseRTT, p.minRTT, p.queuedRatio = 400*ms, 400*ms, 400*ms, 400*ms, 0
		}), networkFacts{cwndRegrows: true}, verdict.Bottleneck, "", verdict.Medium, verdict.FullLinkNoQueue},
		{"faster at the end than ever lasted", with(full, func(p *path) { p.meanRate = 30e6 }), networkFacts{cwndGrows: true},
			verdict.SlowStart, "", verdict.Medium, verdict.CwndOpensToTheEnd},
		{"nothing else", with(full, func(p *path) {
			p.meanRate, p.meanRTT, p.standingRTT = 10e6, 41*ms, 41*ms
		}), both, verdict.Congestion, "", verdict.Low, verdict.CwndFull},
		{"no rate", &path{}, both, verdict.Unknown, "", verdict.Low, verdict.NoRate},
	} {
		a := &analysis{path: c.path, measured: c.facts}
		a.judgeNetwork()
		f := a.network
		if f.name != c.want || f.subtype != c.subtype || f.confidence != c.confidence || f.code != c.code {
			t.Errorf("%s: %s (%s), %s, %s; want %s (%s), %s, %s", c.name, f.name, f.subtype, f.confidence, f.code,
				c.want, c.subtype, c.confidence, c.code)
		}
	}
}

// TestAckScatter_IgnoresLossRecovery checks that acknowledgements delayed by a hole do not count as scatter of the
// data's rate.
func TestAckScatter_IgnoresLossRecovery(t *testing.T) {
	r := steady(8e6, 90*ms, func(i int, s, _ *transfer.Sample) {
		s.MinRTT, s.SegmentsIn, s.Have = 40*ms, s.Acked/2896, s.Have|transfer.HaveSegmentsIn
		s.Retransmitted = int64((i + 20) / 75)
		if into := (i + 20) % 75; into < 2 {
			s.Recovering = true
			s.Acked -= int64(8e6 / 8 * 0.05 * float64(into+1))
		}
	})
	r.Far = nil
	v := Judge(r)
	if v.Limiter != verdict.Bottleneck || v.Evidence[0].Code != verdict.FullLink {
		t.Errorf("%s, %s: %v", v.Limiter, v.Confidence, v.Evidence)
	}
}

// TestJudge_SteadyAcksFromSenderAlone checks that a sender alone recognizes a full return path by acknowledgements
// with a steadier rate than the data.
func TestJudge_SteadyAcksFromSenderAlone(t *testing.T) {
	seen := func(varies float64, acks func(i int) float64, both bool) verdict.Verdict {
		acked, came := 0.0, 0.0
		r := steady(8e6, 90*ms, func(i int, s, r *transfer.Sample) {
			rate := 8e6 * (1 + varies*math.Sin(float64(i)/12))
			acked, came = acked+rate/8*0.05, came+acks(i)
			s.MinRTT = 40 * ms
			s.Acked, s.Sent, s.Program, s.SegmentsIn = int64(acked), int64(acked), int64(acked), int64(came)
			s.Have |= transfer.HaveSegmentsIn
			r.Received = int64(acked)
		})
		if !both {
			r.Far = nil
		}
		return Judge(r)
	}
	second := func(i int) float64 { return 8e6 * (1 + 0.3*math.Sin(float64(i)/12)) / 8 * 0.05 / 2896 }
	for _, c := range []struct {
		name       string
		verdict    verdict.Verdict
		limiter    verdict.Name
		confidence verdict.Confidence
		code       verdict.Code
	}{
		{"one for every second segment", seen(0.3, second, false), verdict.Bottleneck, verdict.Medium, verdict.FullLink},
		{"330 a second", seen(0.3, func(int) float64 { return 16.5 }, false), verdict.AckPath, verdict.Low,
			verdict.SteadyAcks},
		{"330 a second for data that hardly varies, which may be chance", seen(0.05,
			func(int) float64 { return 16.5 }, false), verdict.Unknown, verdict.Low, verdict.QueueEitherWay},
		{"330 a second and those of a busy host", seen(0.3, func(i int) float64 {
			return 16.5 + 10*math.Sin(float64(i)/9)
		}, false), verdict.Bottleneck, verdict.Medium, verdict.FullLink},
		{"both ends seen, and the queue is of data", seen(0.3, func(int) float64 { return 16.5 }, true), verdict.Bottleneck,
			verdict.High, verdict.FullLink},
	} {
		v := c.verdict
		if v.Limiter != c.limiter || v.Confidence != c.confidence || v.Evidence[0].Code != c.code ||
			(v.Confidence == verdict.Low) != (len(v.Candidates) == 2) {
			t.Errorf("%s: %s, %s of %v; want %s, %s: %v", c.name, v.Limiter, v.Confidence, v.Candidates, c.limiter, c.confidence,
				v.Evidence)
		}
	}
}
