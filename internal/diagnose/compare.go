package diagnose

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
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
		for k, d := range j.directions {
			if other := sentBy(twin, d.flow.From == near.Client()); other != nil {
				compareDirections(&c.Directions[k], d, twin, other)
			}
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
// one that stands at the sender.
func compareDirections(r *record.CapturedDirection, near judgementOfDirection, twin *flow.Connection,
	far *flow.Direction) {
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
	if g := timeline.Judge(twin, far); g.Vantage == timeline.AtSender && near.diagnosis.Vantage != timeline.AtSender {
		r.Verdict, b.JudgedAt = g.Verdict, "far"
		r.Prediction = predictionOf(&g)
		r.Settings = settings(r, &g, far.MSS)
	}
	r.Between = b
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
