package live

import (
	"maps"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// datagramFacts are what the rules on a UDP transfer read. Rates are bit/s.
type datagramFacts struct {
	lossRatio        float64
	sent, asked      float64
	delayKnown       bool
	delay            time.Duration
	sender, receiver *transfer.CPU
}

var (
	lossRatio = &rule.Quantity[*datagramFacts]{Name: "datagramLoss", Unit: "ratio", Means: "datagrams lost / sent",
		Of: func(f *datagramFacts) float64 { return f.lossRatio }}
	datagramDelay = &rule.Quantity[*datagramFacts]{Name: "datagramDelay", Unit: "time",
		Means: "median delay above the least one", Of: func(f *datagramFacts) float64 { return ofTime(f.delay) }}
	askedRate = &rule.Quantity[*datagramFacts]{Name: "askedRate", Unit: "bit/s", Means: "rate that was asked for; 0: none",
		Of: func(f *datagramFacts) float64 { return f.asked }}
	reachedRate = &rule.Quantity[*datagramFacts]{Name: "sentRateAndATenth", Unit: "bit/s",
		Means: "rate sent and a tenth more",
		Of:    func(f *datagramFacts) float64 { return f.sent * threshold.CauseFactor.Value },
		Uses:  numbers{threshold.CauseFactor}}
	datagramSender = &rule.Quantity[*datagramFacts]{Name: "datagramSenderThread", Unit: "ratio",
		Means: "CPU time / wall time of the busiest sending thread",
		Of:    func(f *datagramFacts) float64 { return busiest(f.sender) }}
	datagramReceiver = &rule.Quantity[*datagramFacts]{Name: "datagramReceiverThread", Unit: "ratio",
		Means: "CPU time / wall time of the busiest receiving thread",
		Of:    func(f *datagramFacts) float64 { return busiest(f.receiver) }}
	delayKnown = rule.Fact("datagramDelayKnown", "the receiver reported the datagrams' delay",
		func(f *datagramFacts) bool { return f.delayKnown })
	senderHadTime = rule.Fact("datagramSenderHadTime", "the sending host reported that it had processor time left",
		func(f *datagramFacts) bool { return f.sender != nil && !outOfTime(f.sender) },
		threshold.DatagramBusy)
	receiverOutOfTime = rule.Fact("datagramReceiverOutOfTime", "the receiving host reported that it had none left",
		func(f *datagramFacts) bool { return f.receiver != nil && outOfTime(f.receiver) },
		threshold.DatagramBusy)
	losesDatagrams = lossRatio.AtLeast(threshold.DatagramLoss)
)

// datagramRules decide what kept a UDP transfer from carrying more.
var datagramRules = []decision[*datagramFacts]{
	{"receiver-busy", rule.All(losesDatagrams, datagramReceiver.AtLeast(threshold.DatagramBusy)),
		verdict.CPU, verdict.Medium, nil, verdict.DatagramsReceiverBusy},
	{"delay-unknown", rule.All(losesDatagrams, rule.Not(delayKnown)),
		verdict.Unknown, verdict.Low, []verdict.Name{verdict.Bottleneck, verdict.Congestion}, verdict.DatagramsLost},
	{"queue-full", rule.All(losesDatagrams, datagramDelay.AtLeast(threshold.DatagramQueue)),
		verdict.Bottleneck, verdict.High, nil, verdict.DatagramsQueueFull},
	{"receiver-out-of-time", rule.All(losesDatagrams, receiverOutOfTime), verdict.Unknown, verdict.Low,
		[]verdict.Name{verdict.CPU, verdict.Congestion}, verdict.DatagramsReceiverOutOfTime},
	{"lost-without-queue", losesDatagrams, verdict.Congestion, verdict.Medium, nil, verdict.DatagramsNoQueue},
	{"as-asked", rule.All(askedRate.Positive(), rule.Not(askedRate.Exceeds(reachedRate))),
		verdict.Application, verdict.High, nil, verdict.DatagramsAsAsked},
	{"sender-busy", datagramSender.AtLeast(threshold.DatagramBusy),
		verdict.CPU, verdict.Medium, nil, verdict.DatagramsSenderSlow},
	{"sender-not-known", rule.Not(senderHadTime), verdict.Unknown, verdict.Low,
		[]verdict.Name{verdict.CPU, verdict.LocalQueue}, verdict.DatagramsSenderUnknown},
	{"queued-locally", rule.Condition[*datagramFacts]{}, verdict.LocalQueue, verdict.Low, nil,
		verdict.DatagramsQueuedLocally},
}

// JudgeDatagrams returns the limiter of a UDP transfer. UDP has no window and no recovery: its limiter is the
// requested rate, the sending host, or the queue or host that drops datagrams. A loss of less than a tenth is no
// limiter, but appears in the evidence.
func JudgeDatagrams(r *transfer.DatagramResult) verdict.Verdict {
	if r.Sent == 0 || r.Duration <= 0 {
		return datagramVerdict(r, &decision[*datagramFacts]{limiter: verdict.Unknown, confidence: verdict.Low,
			code: verdict.NoDatagrams}, nil)
	}
	f := &datagramFacts{lossRatio: r.LossRatio(), asked: r.Spec.Bps, delayKnown: r.Variation != nil,
		sent: float64(r.Sent) * float64(r.Spec.Size) * 8 / r.Duration.Seconds(), sender: r.CPU, receiver: r.FarCPU}
	if r.Variation != nil {
		f.delay = r.Variation.Median
	}
	if r.Spec.Direction == transfer.Down {
		f.sender, f.receiver = f.receiver, f.sender
	}
	more := verdict.Values{"sent_bps": f.sent, "delay_s": f.delay.Seconds()}
	d := decide(datagramRules, f)
	if d.code == verdict.DatagramsAsAsked {
		more["asked_bps"] = r.Spec.Bps
	}
	reported := map[verdict.Code]*transfer.CPU{verdict.DatagramsSenderUnknown: f.sender,
		verdict.DatagramsReceiverOutOfTime: f.receiver}[d.code]
	if reported != nil && reported.Host != nil {
		more["host_ratio"] = *reported.Host
	}
	return datagramVerdict(r, d, more)
}

// outOfTime reports whether a host's processors, or the core of one of its data threads, had no time left for the
// transfer.
func outOfTime(c *transfer.CPU) bool {
	return c.BusiestThread+c.RunqueueWait >= threshold.DatagramBusy.Value ||
		c.Host != nil && *c.Host >= threshold.DatagramBusy.Value
}

func datagramVerdict(r *transfer.DatagramResult, d *decision[*datagramFacts], more verdict.Values) verdict.Verdict {
	values := verdict.Values{"lost_ratio": r.LossRatio(), "arrived_bps": r.Bps()}
	maps.Copy(values, more)
	return verdict.Verdict{Limiter: d.limiter, Confidence: d.confidence, Shares: verdict.Shares{},
		Candidates: slices.Clone(d.candidates),
		Evidence:   []verdict.Evidence{{Limiter: d.limiter, Code: d.code, Values: values}}}
}
