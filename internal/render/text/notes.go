package text

import (
	"fmt"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Notes returns a copy of notes with their sentences.
func Notes(all []verdict.Note) []verdict.Note {
	worded := slices.Clone(all)
	for i := range worded {
		if n := &worded[i]; n.Text == "" {
			n.Text = noteSentence(n)
		}
	}
	return worded
}

// noteSentences are the sentences without values.
var noteSentences = map[verdict.NoteCode]string{
	verdict.NoHandshake: "the handshake was not captured: options and window scales are inferred",
	verdict.NoSYN:       "the SYN was not captured",
	verdict.NoSYNACK:    "the SYN-ACK was not captured: window scales are inferred",
	verdict.BothSidesOfBox: "the capture contains both sides of a box that renumbers sequence numbers: one of the two " +
		"views is judged",
	verdict.OptionsCut: "the capture cut the SYNs' options off: a missing option may have been there",
	verdict.NotInOtherCapture: "the other capture does not hold this connection, neither under its addresses nor by " +
		"its segments: capture both ends at the same time (tcpdump -s 128)",
	verdict.RenumberedBetween: "the initial sequence numbers differ between the captures, so that segments cannot be " +
		"matched: a box between them writes others (switch that off, or capture both on one side of it), or these are " +
		"two connections that had the same ports one after the other (capture both ends at the same time)",
	verdict.FewCommonSegments: "too few segments are in both captures to match them, so which way data waited is not " +
		"known: capture both ends at the same time and both directions, with their timestamps (tcpdump -s 128)",
	verdict.BurstOfPolicer:     "a policer: the goodput of TCP depends on its burst",
	verdict.NoReordering:       "reordering is not modelled",
	verdict.FullSegmentsVanish: "an MTU black hole: full segments may never arrive",
	verdict.BoundTakenToQueue: "a bound on each connection: whether what exceeds it waits or is dropped is the " +
		"network's choice; taken to wait",
	verdict.BufferOverrun: "writes end in part segments, so Linux overruns this send buffer in bursts: the goodput is " +
		"known within a third only",
}

func noteSentence(n *verdict.Note) string {
	v := n.Values
	word := func(i int) any {
		if i < len(n.Words) {
			return n.Words[i]
		}
		return "?"
	}
	switch n.Code {
	case verdict.SegmentsTwice:
		return fmt.Sprintf("%.0f of %.0f segments are in these files twice, as in captures at two places: "+
			"--near FILE --far FILE compares them", v["duplicates"], v["segments"])
	case verdict.ListCut:
		return fmt.Sprintf("%.0f of %.0f connections are listed: those that lost most time", v["listed"], v["judged"])
	case verdict.NoCommonConnection:
		span := func(name string, connections float64, from, to any) string {
			if connections == 0 {
				return "the " + name + " one has none"
			}
			return fmt.Sprintf("the %s one has %.0f from %s to %s", name, connections, from, to)
		}
		return "no connection is in both captures: " + span("near", v["near"], word(0), word(1)) + ", " +
			span("far", v["far"], word(2), word(3)) + "; capture both ends at the same time (tcpdump -s 128)"
	case verdict.SYNNotWhole:
		return fmt.Sprintf("the %s's SYN is not whole in both captures and was not compared: begin both before the "+
			"connection does, with -s 128", word(0))
	case verdict.OptionChanged:
		return fmt.Sprintf("the %s's %s is %s in one capture and %s in the other: something between them changes it",
			word(0), word(1), word(2), word(3))
	case verdict.WholeBufferOffered:
		return fmt.Sprintf("%s advertises the whole receive buffer, %s; here, as in the lab, Linux's rules make it a "+
			"window of %s: for %[1]s itself give %[4]s.window=%.0[5]f in --path", word(0),
			units.Size(v["buffer_bytes"]).Exact(), units.Size(v["window_bytes"]).Exact(), word(1), v["buffer_bytes"])
	case verdict.FirmWithNoDelay:
		return "with TCP_NODELAY (--no-delay), which many programs set, this send buffer bounds firmly: " +
			units.Rate(v["goodput_bps"]).String()
	}
	if sentence := noteSentences[n.Code]; sentence != "" {
		return sentence
	}
	return string(n.Code)
}
