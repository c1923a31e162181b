package report

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// Compare adds what a second capture of the same connections, taken further along the
// path, shows of what lies between: options of the SYNs that arrive changed. Connections
// are known by their addresses or, behind address translation, by their initial sequence
// numbers.
func (r *Diagnose) Compare(far *capture.Analysis) {
	byEnds := map[[2]flow.Endpoint]*flow.Connection{}
	byNumbers := map[[2]uint32]*flow.Connection{}
	for _, c := range far.Connections {
		byEnds[[2]flow.Endpoint{c.Client(), c.Server()}] = c
		if c.SYN && c.SYNACK {
			byNumbers[[2]uint32{c.ClientOffer().ISN, c.ServerOffer().ISN}] = c
		}
	}
	found := 0
	for i := range r.Connections {
		c := &r.Connections[i]
		twin := byEnds[[2]flow.Endpoint{c.flow.Client(), c.flow.Server()}]
		if twin == nil && c.flow.SYN && c.flow.SYNACK {
			twin = byNumbers[[2]uint32{c.flow.ClientOffer().ISN, c.flow.ServerOffer().ISN}]
		}
		if twin == nil {
			c.Notes = append(c.Notes, "the other capture does not hold this connection")
			continue
		}
		found++
		c.Notes = append(c.Notes, changed("client", c.flow.ClientOffer(), twin.ClientOffer())...)
		c.Notes = append(c.Notes, changed("server", c.flow.ServerOffer(), twin.ServerOffer())...)
	}
	if found == 0 {
		r.Warnings = append(r.Warnings, "no connection is in both captures")
	}
}

// changed tells which options of an end's SYN differ between two taps.
func changed(end string, near, far flow.Offer) (notes []string) {
	if !near.Seen || !far.Seen || near.OptionsCut || far.OptionsCut {
		return []string{"the " + end + "'s SYN is not whole in both captures and was not compared"}
	}
	differs := func(option, a, b string) {
		if a != b {
			notes = append(notes, fmt.Sprintf("the %s's %s is %s in one capture and %s in the other: something between them changes it", end, option, a, b))
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
