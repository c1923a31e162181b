package live

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// JudgeDatagrams says what kept a UDP transfer from carrying more. UDP has no window and
// no recovery: the sender's rate limits it, the sender itself, or what loses datagrams.
// Loss that costs less than a tenth limits nothing, and is told all the same.
func JudgeDatagrams(r *transfer.DatagramResult) verdict.Verdict {
	v := verdict.Verdict{Limiter: verdict.Unknown, Confidence: verdict.Low, Shares: verdict.Shares{}}
	say := func(name verdict.Name, sure verdict.Confidence, code verdict.Code, more verdict.Values) verdict.Verdict {
		values := verdict.Values{"lost_ratio": r.LossRatio(), "arrived_bps": r.Bps()}
		for key, value := range more {
			values[key] = value
		}
		v.Limiter = name
		v.Confidence = sure
		v.Evidence = []verdict.Evidence{{Limiter: name, Code: code, Values: values}}
		return v
	}
	if r.Sent == 0 || r.Duration <= 0 {
		return say(verdict.Unknown, verdict.Low, verdict.NoDatagrams, nil)
	}
	sent := float64(r.Sent) * float64(r.Spec.Size) * 8 / r.Duration.Seconds()
	var queue time.Duration
	if r.Variation != nil {
		queue = r.Variation.Median
	}
	sender := r.CPU
	receiver := r.FarCPU
	if r.Spec.Direction == transfer.Down {
		sender, receiver = receiver, sender
	}
	delay := verdict.Values{"sent_bps": sent, "delay_s": queue.Seconds()}
	switch {
	case r.LossRatio() >= threshold.DatagramLoss && busy(receiver):
		return say(verdict.CPU, verdict.Medium, verdict.DatagramsReceiverBusy, delay)
	case r.LossRatio() >= threshold.DatagramLoss && r.Variation == nil:
		v = say(verdict.Unknown, verdict.Low, verdict.DatagramsLost, delay)
		v.Candidates = []verdict.Name{verdict.Bottleneck, verdict.Congestion}
		return v
	case r.LossRatio() >= threshold.DatagramLoss && queue >= threshold.DatagramQueue:
		return say(verdict.Bottleneck, verdict.High, verdict.DatagramsQueueFull, delay)
	case r.LossRatio() >= threshold.DatagramLoss:
		return say(verdict.Congestion, verdict.Medium, verdict.DatagramsNoQueue, delay)
	case r.Spec.Bps > 0 && sent*threshold.CauseFactor >= r.Spec.Bps:
		delay["asked_bps"] = r.Spec.Bps
		return say(verdict.Application, verdict.High, verdict.DatagramsAsAsked, delay)
	case busy(sender):
		return say(verdict.CPU, verdict.Medium, verdict.DatagramsSenderSlow, delay)
	}
	return say(verdict.LocalQueue, verdict.Low, verdict.DatagramsHeldLocally, delay)
}

// busy says that a thread of the program took most of a core.
func busy(c *transfer.CPU) bool { return c != nil && c.BusiestThread >= threshold.DatagramBusy }
