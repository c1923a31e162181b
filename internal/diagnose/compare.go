package diagnose

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// Compare adds what a second capture of the same connections, taken further along the
// path, shows of what lies between: options of the SYNs that arrive changed. Connections
// are known by their addresses or, behind address translation, by their initial sequence
// numbers.
func (r *Diagnosis) Compare(far *capture.Analysis) {
	byEnds := map[[2]flow.Endpoint]*flow.Connection{}
	byNumbers := map[[2]uint32]*flow.Connection{}
	for _, c := range far.Connections {
		byEnds[[2]flow.Endpoint{c.Client(), c.Server()}] = c
		if c.SYN && c.SYNACK {
			byNumbers[[2]uint32{c.ClientOffer().ISN, c.ServerOffer().ISN}] = c
		}
	}
	found := 0
	for i, j := range r.from {
		c, near := &r.Record.Connections[i], j.connection
		twin := byEnds[[2]flow.Endpoint{near.Client(), near.Server()}]
		if twin == nil && near.SYN && near.SYNACK {
			twin = byNumbers[[2]uint32{near.ClientOffer().ISN, near.ServerOffer().ISN}]
		}
		if twin == nil {
			c.Notes = append(c.Notes, "the other capture does not hold this connection")
			continue
		}
		found++
		c.Notes = append(c.Notes, changed("client", near.ClientOffer(), twin.ClientOffer())...)
		c.Notes = append(c.Notes, changed("server", near.ServerOffer(), twin.ServerOffer())...)
		taps, aligned := align(near, twin)
		for k, d := range j.directions {
			client := d.flow.From == near.Client()
			other := sentBy(twin, client)
			if other == nil {
				continue
			}
			r := &c.Directions[k]
			g := compareDirections(r, d, twin, other)
			if aligned {
				r.Between.Ways = taps.ways(client)
				placeQueue(r, &g)
			}
			r.Fix = fixes(r, &g, other.MSS)
		}
	}
	if found == 0 {
		r.Record.Warnings = append(r.Record.Warnings, "no connection is in both captures")
	}
}

// sentBy is what the client, or the server, of a connection sent; nil for nothing.
func sentBy(c *flow.Connection, client bool) *flow.Direction {
	for _, d := range c.Directions() {
		if (d.From == c.Client()) == client {
			return d
		}
	}
	return nil
}

// compareDirections adds what two taps show of one direction, and takes the verdict of the
// one that stands at the sender, which it answers.
func compareDirections(r *record.CapturedDirection, near judgementOfDirection, twin *flow.Connection,
	far *flow.Direction) timeline.Diagnosis {
	first, second := near.flow, far // in the order in which the data passes
	b := &record.CapturedBetween{JudgedAt: "near"}
	if near.flow.PastMin < far.PastMin {
		first, second = far, near.flow
	}
	// What is sent again though its first sending passed a tap was lost past it, or not at all.
	between := first.Repeated - second.Repeated
	resent := first.Retransmitted * int64(max(first.MSS, 1))
	b.LostBeforeBytes, b.LostBetweenBytes = max(resent-first.Repeated, 0), max(between, 0)
	b.LostAfterBytes = max(second.Repeated-second.Spurious*int64(max(second.MSS, 1)), 0)
	if first.RTTs > 0 && second.RTTs > 0 {
		least := first.PastMin - second.PastMin
		pastFirst, pastSecond := first.PastSum/first.RTTs, second.PastSum/second.RTTs
		b.RTTMinS = float64(max(least, 0)) / 1e9
		b.QueueS = float64(max(pastFirst-pastSecond-least, 0)) / 1e9
		b.QueuePastS = float64(max(pastSecond-second.PastMin, 0)) / 1e9
	}
	r.Between = b
	g := timeline.Judge(twin, far)
	if g.Vantage != timeline.AtSender || near.diagnosis.Vantage == timeline.AtSender {
		return near.diagnosis
	}
	r.Verdict, b.JudgedAt = g.Verdict, "far"
	r.LostS = g.LostTime.Seconds()
	r.Prediction = predictionOf(&g)
	r.Settings = settings(r, &g, far.MSS)
	r.Program = report.ProgramWindow(g.Verdict, far.From.Port, far.To.Port)
	return g
}

// placeQueue takes into the verdict which way the queue stands between the taps: one
// capture alone sees both ways together. A full link's stands before the data; where only
// acknowledgements wait, they are what limits, also where one capture alone could not tell.
func placeQueue(r *record.CapturedDirection, g *timeline.Diagnosis) {
	w := r.Between.Ways
	queue, trip := w.DataQueueS+w.AckQueueS, orElse(r.RTTMinS, w.RTTMinS)
	if queue < threshold.StandingQueue*trip || queue < r.Between.QueuePastS {
		return
	}
	acks, says := w.AckQueueS/queue, r.Limiter
	switch {
	case acks >= threshold.AckQueue && (r.Limiter == verdict.Bottleneck || r.Limiter == verdict.AckPath ||
		queue >= threshold.LongQueue*trip && remedy.Open(r.Limiter)):
		says = verdict.AckPath
	case acks > threshold.AckQueueHardly || r.Limiter != verdict.Bottleneck:
		return
	}
	e := verdict.Evidence{Limiter: says, Code: verdict.CapturedQueueBetween, Values: verdict.Values{
		"data_queue_s": w.DataQueueS, "ack_queue_s": w.AckQueueS, "matched_segments": float64(w.Matched)}}
	if says == r.Limiter {
		r.Confidence = raised(r.Confidence)
	} else {
		r.Shares = toAcks(r.Shares)
		r.Limiter, r.Subtype, r.Confidence, r.Candidates = says, "", verdict.Medium, nil
		r.Prediction, r.Settings, g.Prediction = nil, nil, nil
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

// changed tells which options of an end's SYN differ between two taps.
func changed(end string, near, far flow.Offer) (notes []string) {
	if !near.Seen || !far.Seen || near.OptionsCut || far.OptionsCut {
		return []string{"the " + end + "'s SYN is not whole in both captures and was not compared"}
	}
	differs := func(option, a, b string) {
		if a != b {
			notes = append(notes, fmt.Sprintf("the %s's %s is %s in one capture and %s in the other: something between them "+
				"changes it", end, option, a, b))
		}
	}
	differs("MSS", number(near.MSS, near.MSS > 0), number(far.MSS, far.MSS > 0))
	differs("window scale", number(near.Scale, near.Scale >= 0), number(far.Scale, far.Scale >= 0))
	differs("SACK", present(near.SACK), present(far.SACK))
	differs("timestamps option", present(near.Timestamps), present(far.Timestamps))
	return notes
}

func number(v int, there bool) string {
	if !there {
		return "absent"
	}
	return fmt.Sprint(v)
}

func present(there bool) string {
	if !there {
		return "absent"
	}
	return "offered"
}

// toAcks gives the acknowledgements the time of what they are taken for.
func toAcks(shares verdict.Shares) verdict.Shares {
	out := verdict.Shares{}
	for n, share := range shares {
		switch n {
		case verdict.Bottleneck, verdict.Congestion, verdict.SlowStart, verdict.Sender, verdict.Unknown:
			n = verdict.AckPath
		}
		out[n] += share
	}
	return out
}
