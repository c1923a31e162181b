package text

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

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
	verdict.NoPlacesOfLoss: "places of loss are not known: eBPF for tracing needs root, or CAP_BPF and CAP_PERFMON",
	verdict.NoHandshake:    "the handshake was not captured: options and window scales are inferred",
	verdict.NoSYN:          "the SYN was not captured",
	verdict.NoSYNACK:       "the SYN-ACK was not captured: window scales are inferred",
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
	verdict.OtherUsersPrograms:    "programs of other users (needs root)",
	verdict.OtherNamespaces:       "other network namespaces, such as containers'",
	verdict.ServicesAndContainers: "services and containers",
	verdict.Retransmissions:       "retransmissions",
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
	case verdict.FileTwice:
		return fmt.Sprintf("%s was left out: %s has the same packets", word(0), word(1))
	case verdict.TwoPlaces:
		return fmt.Sprintf("both files have the same packets, captured at two places: compared as with --near %s --far %s",
			word(0), word(1))
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
	if sentence := cmp.Or(noteSentences[n.Code], unseenSentence(n), captureSentence(n)); sentence != "" {
		return sentence
	}
	return string(n.Code)
}

// unseenSentence returns the sentence about a part of the host that a watch does not see, "" for another note.
func unseenSentence(n *verdict.Note) string {
	v := n.Values
	switch n.Code {
	case verdict.NamespacesRefused:
		return fmt.Sprintf("other network namespaces that could not be entered (%.0f; needs root)", v["namespaces"])
	case verdict.NamespacesHidden:
		return fmt.Sprintf("network namespaces of other users' processes (%s; needs root)",
			count(int(v["processes"]), "process"))
	case verdict.WithinHost:
		return count(int(v["connections"]), "connection") + " within this host (--local adds them)"
	case verdict.NamespaceEnded:
		return fmt.Sprintf("everything after %.1f s, because the process whose network "+
			"namespace was watched has ended",
			v["at_s"])
	case verdict.DumpsFailed:
		return count(int(v["dumps"]), "dump") + ", for which the kernel had no memory or no time"
	case verdict.OutsideLists:
		return fmt.Sprintf("bytes that connections moved before their first list and after their last (every %v)",
			time.Duration(v["every_s"]*1e9).Round(time.Millisecond))
	case verdict.WithoutCounters:
		return count(int(v["connections"]), "connection") + " for which the system returned no counters"
	case verdict.ListsFailed:
		return fmt.Sprintf("%s that failed (%s)", count(int(v["lists"]), "list"), n.Words[0])
	case verdict.SettingsMayDiffer:
		return fmt.Sprintf("whether all is as it was (%s)", n.Words[0])
	}
	return ""
}

// captureSentence returns the sentence about the packets of a capture, "" for another note.
func captureSentence(n *verdict.Note) string {
	v := n.Values
	packets := int(v["packets"])
	records := int(v["records"])
	switch n.Code {
	case verdict.HeadersCut:
		return agree(packets, "TCP packet", "was", "were") +
			" captured too short for their headers; capture at least 96 bytes (tcpdump -s 128)"
	case verdict.Fragments:
		return agree(packets, "packet", "is a later piece", "are later pieces") +
			" of TCP segments that IP took apart; their bytes count as not captured"
	case verdict.Malformed:
		return agree(packets, "packet", "has lengths that contradict each other and was passed over",
			"have lengths that contradict each other and were passed over")
	case verdict.UnknownLink:
		return fmt.Sprintf("%s of link type %.0f, which is not known here (tcpdump.org/linktypes.html names it)",
			agree(packets, "packet", "is", "are"), v["link_type"])
	case verdict.MoreUnknownLinks:
		return agree(int(v["link_types"]), "more link type", "is", "are") + " not known here"
	case verdict.PacketsLost:
		return agree(packets, "packet", "came faster than it was captured and is missing",
			"came faster than they were captured and are missing")
	case verdict.RecordsSorted:
		return agree(records, "record", "was behind a later one in the file"+byUpTo(v["behind_s"], ",")+
			" and was sorted by its time", "were behind later ones in the file"+byUpTo(v["behind_s"], ",")+
			" and were sorted by their times")
	case verdict.RecordsUnsorted:
		return fmt.Sprintf("%d of them came too late for that; sort the capture first (reordercap IN OUT)", records)
	case verdict.RecordsMisstamped:
		return agree(records, "single record",
			"has an earlier time than the record that its sender sent before; it counts as sent right after it",
			"have an earlier time than the record that their sender sent before; they count as sent right after it")
	case verdict.ClockSet:
		way := " forward"
		if v["step_s"] < 0 {
			way = " back"
		}
		return fmt.Sprintf("the capturing host's clock was set %s%s; the times of this result "+
			"are corrected for that",
			count(int(v["times"]), "time"), byUpTo(math.Abs(v["step_s"]), way))
	case verdict.FileDamaged:
		return n.Words[0]
	}
	return ""
}

// byUpTo returns the largest of some spans with a word after it, "" if it is not known.
func byUpTo(seconds float64, after string) string {
	if seconds <= 0 {
		return ""
	}
	return ", by up to " + units.Time(time.Duration(math.Round(seconds*1e9))) + after
}
