package diagnose

import (
	"fmt"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
	"github.com/fullpipe-net/fullpipe/internal/verdict/trust"
)

// pair is one connection at two taps.
type pair struct {
	near     *flow.Connection
	far      *twin
	taps     alignment
	aligned  bool
	common   span                          // where aligned
	parallel map[hosts][]timeline.Parallel // in the far capture
	whole    trust.Capture                 // the far capture
	target   string                        // the system of the ends that limit; "": by their handshakes
}

// Compare adds what a second capture of the same connections, taken further along the
// path, shows of what lies between: where data was lost, which way it waited, and options
// of the SYNs that arrive changed.
func (r *Diagnosis) Compare(far *capture.Analysis) {
	known := newTwins(far.Connections)
	parallel := parallels(far.Connections)
	found := 0
	for i, j := range r.from {
		c := &r.Record.Connections[i]
		w := known.find(j.connection)
		if w == nil {
			c.Notes = append(c.Notes, verdict.Note{Code: verdict.NotInOtherCapture})
			continue
		}
		found++
		p := pair{near: j.connection, far: w, parallel: parallel, whole: wholeCapture(far), target: r.target}
		p.taps, p.aligned = align(p.near, w)
		if p.aligned {
			p.common = p.taps.spanOf(p.near, w.Connection)
		}
		c.Notes = append(c.Notes, p.notes()...)
		for k, d := range j.directions {
			p.compare(&c.Directions[k], d)
		}
	}
	if found == 0 {
		r.Record.Warnings = append(r.Record.Warnings, noCommon(r.from, far.Connections))
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

// compare adds what both taps show of one direction to its record.
func (p *pair) compare(r *record.CapturedDirection, near judgementOfDirection) {
	client := near.flow.From == p.near.Client()
	far := p.far.sentBy(client)
	if far == nil || !p.aligned && !p.alike(near.flow, far) {
		return
	}
	first := near.flow
	second := far
	at := [2][2]int64{p.common.near, p.common.far}
	nearFirst := p.passesNearFirst(near.flow, far)
	if !nearFirst {
		first, second = second, first
		at[0], at[1] = at[1], at[0]
	}
	one := repeatsOf(first)
	two := repeatsOf(second)
	b := &record.CapturedBetween{JudgedAt: "near"}
	if p.common.part {
		one = repeatsIn(first, at[0])
		two = repeatsIn(second, at[1])
		b.CommonFromS = float64(p.common.near[0]) / 1e9
		b.CommonS = float64(p.common.near[1]-p.common.near[0]) / 1e9
	}
	// Retransmissions of data that had passed a tap were lost past it, or spurious.
	b.LostBeforeBytes = one.replaced
	b.LostBetweenBytes = max(one.again-two.again, 0)
	b.LostAfterBytes = max(two.again-two.spurious, 0)
	if first.RTTs > 0 && second.RTTs > 0 {
		least := first.PastMin - second.PastMin
		pastFirst := first.PastSum / first.RTTs
		pastSecond := second.PastSum / second.RTTs
		b.RTTMinS = float64(max(least, 0)) / 1e9
		b.QueueS = float64(max(pastFirst-pastSecond-least, 0)) / 1e9
		b.QueuePastS = float64(max(pastSecond-second.PastMin, 0)) / 1e9
	}
	if p.aligned {
		b.Ways = p.taps.ways(client)
		if p.common.part { // means of other times do not compare, but the path may have been empty then
			if b.RTTMinS <= 0 || b.RTTMinS > b.Ways.RTTMinS {
				b.RTTMinS = b.Ways.RTTMinS
			}
			b.QueueS = b.Ways.DataQueueS + b.Ways.AckQueueS + b.Ways.RTTMinS - b.RTTMinS
		}
	}
	r.Between = b
	g := p.judge(r, near, far, nearFirst)
	if p.aligned {
		placeQueue(r, &g)
	}
	r.Fix = remaining(fixes(r, &g, p.far.Connection, far, p.target))
}

// passesNearFirst reports whether a direction's data passes the near tap first.
func (p *pair) passesNearFirst(near, far *flow.Direction) bool {
	if p.aligned {
		return p.taps.nearIsClient == (near.From == p.near.Client())
	}
	return near.PastMin >= far.PastMin
}

// alike reports whether two taps which cannot be matched segment by segment saw the same transfer
// from its beginning.
func (p *pair) alike(near, far *flow.Direction) bool {
	const close = 50 // a fiftieth
	differ := max(near.Bytes-far.Bytes, far.Bytes-near.Bytes)
	return p.near.SYN && p.far.SYN && differ <= near.Bytes/close
}

// judge returns the verdict of the tap at the sender, or where neither is, of the one that the data passes first.
// Where that is unsure, it returns the other's.
func (p *pair) judge(r *record.CapturedDirection, near judgementOfDirection, far *flow.Direction,
	nearFirst bool) timeline.Diagnosis {
	const most = 2 // a capture of less than half of the data is of another time
	g := timeline.Judge(p.far.Connection, far, neighbours(far, p.parallel)...)
	addCapture(&g.Trust, p.whole, &g.Verdict)
	nearAt := near.diagnosis.Vantage == timeline.AtSender
	farAt := g.Vantage == timeline.AtSender
	take := farAt && !nearAt || farAt == nearAt && !nearFirst
	if nearUnsure := hardlyKnown(&near.diagnosis); nearUnsure != hardlyKnown(&g) {
		take = nearUnsure
	}
	if !take || most*far.Bytes < near.flow.Bytes {
		return near.diagnosis
	}
	// All figures are of the capture that the verdict follows from; ends and graphs stay the near one's.
	judged := direction(p.far.Connection, far, &g)
	judged.From = r.From
	judged.To = r.To
	judged.Curves = r.Curves
	judged.Settings = settings(p.far.Connection, far, &g, p.target)
	judged.Between = r.Between
	judged.Between.JudgedAt = "far"
	if p.common.part {
		judged.Between.CommonFromS = float64(p.common.far[0]) / 1e9
		judged.Between.CommonS = float64(p.common.far[1]-p.common.far[0]) / 1e9
	}
	*r = judged
	return g
}

// hardlyKnown reports whether a verdict gives way to a surer one of the other tap.
func hardlyKnown(g *timeline.Diagnosis) bool {
	return g.Limiter == verdict.Unknown || g.Limiter == verdict.Mixed || g.Confidence == verdict.Low
}

// notes returns the differences of the SYNs between the taps, and the obstacles of the comparison.
func (p *pair) notes() []verdict.Note {
	notes := slices.Concat(changed("client", p.near.ClientOffer(), p.far.offer(true)),
		changed("server", p.near.ServerOffer(), p.far.offer(false)))
	switch {
	case p.aligned:
	case p.far.renumbered:
		notes = append(notes, verdict.Note{Code: verdict.RenumberedBetween})
	default:
		notes = append(notes, verdict.Note{Code: verdict.FewCommonSegments})
	}
	return notes
}

// changed returns which options of an end's SYN differ between two taps.
func changed(end string, near, far flow.Offer) (notes []verdict.Note) {
	if !near.Seen || !far.Seen || near.OptionsCut || far.OptionsCut {
		return []verdict.Note{{Code: verdict.SYNNotWhole, Words: []string{end}}}
	}
	differs := func(option, a, b string) {
		if a != b {
			notes = append(notes, verdict.Note{Code: verdict.OptionChanged, Words: []string{end, option, a, b}})
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
