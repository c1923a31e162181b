package diagnose

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// placeQueue adds to the verdict on which way the queue is between the taps: one capture alone sees both ways
// together. The queue of a full link is before the data, also where one capture alone left open whether it is full.
// Where only acknowledgements wait, they are the limiter.
func placeQueue(r *record.CapturedDirection, g *timeline.Diagnosis) {
	w := r.Between.Ways
	queue := w.DataQueueS + w.AckQueueS
	trip := orElse(r.RTTMinS, w.RTTMinS)
	if queue < threshold.StandingQueue.Value*trip || queue < r.Between.QueuePastS {
		return
	}
	acks := w.AckQueueS / queue
	says := r.Limiter
	long := queue >= threshold.LongQueue.Value*trip
	open := r.Limiter == verdict.Unknown || r.Limiter == verdict.Mixed
	switch {
	case acks >= threshold.AckQueue.Value && (r.Limiter == verdict.Bottleneck || r.Limiter == verdict.AckPath ||
		long && advice.Open(r.Limiter)):
		says = verdict.AckPath
	case acks > threshold.AckQueueHardly.Value:
		return
	case open && long && slices.Contains(r.Candidates, verdict.Bottleneck):
		says = verdict.Bottleneck
	case r.Limiter != verdict.Bottleneck:
		return
	}
	e := verdict.Evidence{Limiter: says, Code: verdict.CapturedQueueBetween, Values: verdict.Values{
		"data_queue_s": w.DataQueueS, "ack_queue_s": w.AckQueueS, "matched_segments": float64(w.Matched)}}
	if says == r.Limiter {
		r.Confidence = raised(r.Confidence)
	} else {
		r.Shares = given(r.Shares, says)
		r.Limiter = says
		r.Subtype = ""
		r.Confidence = verdict.Medium
		r.Candidates = nil
		r.Prediction = nil
		r.Settings = nil
		g.Prediction = nil
	}
	r.Evidence = append([]verdict.Evidence{e}, r.Evidence...)
	g.Verdict = r.Verdict
}

func orElse(v *float64, other float64) float64 {
	if v == nil {
		return other
	}
	return *v
}

func raised(c verdict.Confidence) verdict.Confidence {
	if c == verdict.Low {
		return verdict.Medium
	}
	return verdict.High
}

// given gives a limiter the time of what is taken for it.
func given(shares verdict.Shares, to verdict.Name) verdict.Shares {
	out := verdict.Shares{}
	for n, share := range shares {
		switch n {
		case verdict.Bottleneck, verdict.Congestion, verdict.SlowStart, verdict.Sender, verdict.Unknown:
			n = to
		}
		out[n] += share
	}
	return out
}

// remaining leaves out the captures that are done of the steps that separate the candidates of an open verdict. The
// counters of both ends are left then.
func remaining(all []advice.Fix) []advice.Fix {
	done := slices.DeleteFunc(slices.Clone(all), func(f advice.Fix) bool { return f.Action == advice.CaptureFar })
	if len(done) > 0 || len(all) == 0 {
		return done
	}
	asked := verdict.Verdict{Limiter: all[0].Limiter, Candidates: []verdict.Name{verdict.Sender, verdict.ReceiverWindow}}
	return advice.Fixes(asked, advice.Facts{})
}
