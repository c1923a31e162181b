package text

import (
	"cmp"
	"fmt"
	"math"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// capturedSentences describe observations in captures.
var capturedSentences = map[verdict.Code]func(figures) string{
	verdict.CapturedTooShort: fixedSentence("less than a round trip of data was captured"),
	verdict.CapturedTooFewBytes: func(f figures) string {
		return fmt.Sprintf("%.0f bytes are too few for a verdict", f["bytes"])
	},
	verdict.CapturedOneDirection: func(f figures) string {
		if f["segments"] == 0 {
			return fmt.Sprintf("only one direction was captured: %.0f acknowledgements of %s in %s, but none of the data; "+
				"capture both directions", f["acknowledgements"], f.size("bytes"), f.time("duration_s"))
		}
		return fmt.Sprintf("only one direction was captured, or acknowledgements were left out: %.0f segments with %s in "+
			"%s, %.0f of them retransmitted, but %.0f acknowledgements; capture both directions, without a "+
			"filter on lengths", f["segments"],
			f.size("bytes"),
			f.time("duration_s"), f["retransmitted_segments"], f["acknowledgements"])
	},
	verdict.CapturedIdleOrLoss: func(f figures) string {
		return "nothing was on its way " + f.took() + ": the sending program had nothing to send, or segments were lost " +
			"before the tap; " +
			"a capture at the sender would show which"
	},
	verdict.CapturedOutage: func(f figures) string {
		return fmt.Sprintf("nothing was delivered from %s to %s, %s in all, despite repeated retransmissions",
			f.time("from_s"), f.time("to_s"),
			f.time("stalled_s"))
	},
	verdict.CapturedSilent: func(f figures) string {
		return fmt.Sprintf("the other end stopped answering at %s: retransmissions during %s got no answer", f.time("from_s"),
			f.time("silent_s"))
	},
	verdict.CapturedAbandoned: func(f figures) string {
		return fmt.Sprintf("from %s on the sender did not retransmit %s that were not acknowledged, for %s, %s: its "+
			"retransmission timer never ran out; update or replace the sending host's TCP", f.time("from_s"),
			f.size("unacknowledged_bytes"), f.time("abandoned_s"), f.took())
	},
	verdict.CapturedWindowFull: func(f figures) string {
		text := fmt.Sprintf("the receiver's window of %s was full %s; at a round trip of %s it allows %s",
			f.size("window_bytes"),
			f.took(), f.time("rtt_s"), f.rate("allows_bps"))
		if f.has("scale_inferred") {
			text += fmt.Sprintf(" (the handshake was not captured: %.0f is the smallest window scale that fits)",
				f["window_scale"])
		}
		return text
	},
	verdict.CapturedWindowClosed: func(f figures) string {
		return fmt.Sprintf("the receiver's window had shrunk from %s and limited the sender %s (%.0f acknowledgements "+
			"with a window of 0): "+
			"the receiving program does not read as fast as data comes", f.size("window_bytes"), f.took(), f["zero_windows"])
	},
	verdict.CapturedNoUpdates: func(f figures) string {
		return fmt.Sprintf("%s the receiver's window of %s closed and opened only in the answer to a probe, %s in all, "+
			"%s: its TCP sends no window updates (RFC 9293, 3.8.6), so that whether its program reads slowly is not known; "+
			"update that system", count(int(f["openings"]), "time"), f.size("window_bytes"), f.time("waited_s"), f.took())
	},
	verdict.CapturedIdle: func(f figures) string {
		return "no data was in flight and the window was open " + f.took() + ": the sending " +
			"program had nothing to send"
	},
	verdict.CapturedStopAndWait: func(f figures) string {
		return "each piece of data was sent only after an answer to the one before, " + f.took()
	},
	verdict.CapturedNoneLarge: func(f figures) string {
		return fmt.Sprintf("no segment of more than %s arrived here, though the MSS allows %s, and %s are missing that the "+
			"receiver asks for: large packets may be too large for a link before the tap, and its ICMP messages do not get "+
			"through; a capture at the sender, or fullpipe measure --mss, would show it", f.size("largest_bytes"),
			f.size("mss_bytes"), f.size("missing_bytes"))
	},
	verdict.CapturedExchanges:     capturedExchanges,
	verdict.CapturedProgramWindow: capturedProgramWindow,
	verdict.CapturedNagle: func(f figures) string {
		return "less than a segment waited for the acknowledgement of the one before it " + f.took() +
			", and that came 30 ms late or more (Nagle's rule against a delayed ACK)"
	},
	verdict.CapturedAckTimer: func(f figures) string {
		return fmt.Sprintf("%.0f blocks of %s waited for their last acknowledgement, which the receiver's delayed-ACK timer "+
			"delayed by %s each, %s: the sender sends the next block only when all of this one is acknowledged", f["waits"],
			f.size("block_bytes"), f.time("timer_s"), f.took())
	},
	verdict.CapturedBlackHole: func(f figures) string {
		text := "the same large segment was lost again and again " + f.took() + " while smaller ones got through"
		if f.has("router_mtu_bytes") {
			text += fmt.Sprintf("; a router said that %.0f bytes are the most", f["router_mtu_bytes"])
		}
		return text
	},
	verdict.CapturedOversized: func(f figures) string {
		return fmt.Sprintf("all segments longer than the MSS of %s were lost (up to %s, %s in all), and hardly any other: "+
			"nothing splits the sender's super-segments, or a tunnel carries less than the MSS", f.size("mss_bytes"),
			f.size("largest_bytes"), f.size("lost_bytes"))
	},
	verdict.CapturedIdleRestart: func(f figures) string {
		return fmt.Sprintf("the congestion window reopened after idle times %s (%s, %s idle)", f.took(),
			count(int(f["restarts"]), "restart"), f.time("idle_s")) + f.known("rtt_s", ", doubling each round trip of %s")
	},
	verdict.CapturedSlowStart: func(f figures) string {
		return fmt.Sprintf("slow start took %s: the bytes in flight grew each round trip; the "+
			"transfer lasted %.0f round trips",
			f.took(), f["round_trips"])
	},
	verdict.CapturedDamaged: func(f figures) string {
		return fmt.Sprintf("%.0f of %.0f segments arrived with a wrong TCP checksum, and the receiver drops such "+
			"segments: a device on the path damages them", f["damaged_segments"], f["segments"])
	},
	verdict.CapturedLostBehind: func(f figures) string {
		return fmt.Sprintf("%s of %s that were retransmitted had passed this tap at the receiver before: they were lost in "+
			"the receiving host, or between the tap and it", f.size("passed_bytes"), f.size("retransmitted_bytes"))
	},
	verdict.CapturedAvoidance: func(f figures) string {
		return fmt.Sprintf("from %s in flight on, without a loss, the congestion window grew by only %.2g segments each "+
			"round trip %s: congestion avoidance from a low ssthresh, which an earlier connection's metrics or the sending "+
			"host's TCP set", f.size("from_bytes"), f["segments_per_round"], f.took())
	},
	verdict.CapturedLoss: func(f figures) string {
		return fmt.Sprintf("%.0f of %.0f segments were retransmitted in %s, and the reduced congestion window "+
			"limited the sender %s%s", f["retransmitted_segments"], f["segments"], recoveries(f["loss_events"]), f.took(),
			f.roundTrip(" (round trip %s)", ", %s at the least"))
	},
	verdict.CapturedMarks: func(f figures) string {
		return fmt.Sprintf("a queue on the path marked segments (ECN) in %.0f round trips, and the congestion window that "+
			"the sender reduced for them limited it %s%s", f["marks"], f.took(),
			f.roundTrip(" (round trip %s)", ", %s at the least"))
	},
	verdict.CapturedFullLink: formatCapturedFullLink,
	verdict.CapturedQueueBetween: func(f figures) string {
		return fmt.Sprintf("between the two taps data waited %s on the mean and acknowledgements %s, by %s segments that "+
			"are in both captures", f.time("data_queue_s"), f.time("ack_queue_s"), f.count("matched_segments"))
	},
	verdict.CapturedAckQueue: func(f figures) string {
		return fmt.Sprintf("acknowledgements waited in a queue on the way back %s%s; their "+
			"timestamps show that most of the difference arose "+
			"there", f.took(), f.roundTrip(": the round trip was %s", ", %s when empty"))
	},
	verdict.CapturedSenderWaits: func(f figures) string {
		lost := "nothing lost and no queue"
		if n := f["retransmitted_segments"]; f.has("losing") {
			lost = "no recovery from loss and no queue"
		} else if n > 0 {
			lost = fmt.Sprintf("%.0f segments retransmitted, too few to matter, and no queue", n)
		}
		return fmt.Sprintf("at most %s in flight, with room in the window (%s), %s %s: the "+
			"sending host limits "+
			"itself", f.size("outstanding_bytes"), f.size("window_bytes"), lost, f.took())
	},
	verdict.CapturedBlocks: func(f figures) string {
		text := fmt.Sprintf("%.0f blocks of %s, each sent when the one before was acknowledged: a send buffer of that size, "+
			"or writes that wait for it", f["blocks"], f.size("block_bytes"))
		if f.has("block_bps") {
			text += "; the path delivers a block at " + f.rate("block_bps")
		}
		return text
	},
	verdict.CapturedGaps: func(f figures) string {
		text := f.size("missing_bytes")
		if f.has("missing_ratio") {
			text = f.share("missing_ratio") + " of the data (" + text + ") are"
		} else {
			text += " of the data are"
		}
		return text + " not in the capture: the time around them says nothing, " + f.took()
	},
	verdict.CapturedFewGaps: func(f figures) string {
		return f.size("missing_bytes") + " of acknowledged data are missing from the capture"
	},
	verdict.CapturedNoHandshake: func(f figures) string {
		return fmt.Sprintf("the handshake was not captured; window scales %.0f to 14 fit, so whether the window was full "+
			"is not known %s",
			f["window_scale_least"], f.took())
	},
	verdict.CapturedQueueUnseen: func(f figures) string {
		return fmt.Sprintf("data came evenly, at %s, %s: from a full link, or from a sender that limits itself; "+
			"without timestamps a queue before this tap is not seen, and a capture at the sender would show which",
			f.pathRate(), f.took())
	},
	verdict.CapturedLossOrLink: func(f figures) string {
		return fmt.Sprintf("segments were lost at a rate near the %s that the path delivers %s: from a full link, or from "+
			"losses that limit the sender; a capture that begins with the handshake shows the empty path's round trip "+
			"and so decides", f.pathRate(), f.took())
	},
	verdict.CapturedWaitsSomewhere: func(f figures) string {
		return fmt.Sprintf("packets in flight took several times the empty path's %s %s: a queue of data, or of "+
			"acknowledgements on their way back; a capture at the sender would show which",
			cmp.Or(f.known("rtt_base_s", "%s"), "round trip"), f.took())
	},
	verdict.CapturedTimerOrLine: func(f figures) string {
		return fmt.Sprintf("%.0f times all data in flight waited %s longer than on an empty path for its only "+
			"acknowledgement, %s: for the receiver's delayed-ACK timer, or for a slow line; a capture at the receiver would "+
			"show which", f["waits"], f.time("wait_s"), f.took())
	},
	verdict.CapturedNoSign: func(f figures) string { return "no sign of any limiter " + f.took() },
	verdict.CapturedUnscaled: fixedSentence(
		"no window scale was agreed on: the window can never exceed 65,535 bytes"),
	verdict.CapturedScaleMismatch: func(f figures) string {
		applied := "a larger window scale"
		if scale, known := f["applied_scale"]; known {
			applied = fmt.Sprintf("a window scale of %.0f", scale)
			if f["handshake_window_bytes"] == math.MaxUint16 { // the largest window that a SYN can offer
				applied += " or more"
			}
		}
		return fmt.Sprintf("the handshake offered a window of %s, and the first one after it is %s, which no unread data "+
			"explains: the receiver counts with %s, but the handshake agreed on %.0f (SYN cookies, or a middlebox that "+
			"changes it)", f.size("handshake_window_bytes"), f.size("first_window_bytes"), applied, f["window_scale"])
	},
	verdict.CapturedLostSYNs: func(f figures) string {
		if f["syn_acks"] > 0 && f["syn_acks"] == f["syns"] {
			return fmt.Sprintf("%.0f times the SYN-ACK got no answer and was retransmitted, which took %s of %s: it or the "+
				"answer was lost on the way, or the server's accept queue was full", f["syns"], f.time("wait_s"),
				f.time("total_s"))
		}
		return fmt.Sprintf("%.0f SYNs got no answer and were retransmitted, which took %s of %s: lost on the way, or "+
			"dropped by a firewall or a full listen queue", f["syns"], f.time("wait_s"), f.time("total_s"))
	},
	verdict.CapturedSACKOutside: func(f figures) string {
		return fmt.Sprintf("%.0f of %.0f SACK blocks are outside the window: a box on the path renumbers sequence numbers "+
			"but not SACK, so that the sender cannot use SACK", f["outside"], f["blocks"])
	},
	verdict.CapturedBareSynAck: fixedSentence("the SYN-ACK has none of the options that the SYN offered: SYN cookies " +
		"without timestamps, a middlebox that strips options, or a system that has none"),
	verdict.CapturedCoarseClock: func(f figures) string {
		return fmt.Sprintf("the capture's stamps come in steps of %s, too coarse for a round trip%s", f.time("grain_s"),
			f.known("rtt_s", " of %s"))
	},
	verdict.CapturedClockSteps: func(f figures) string {
		return fmt.Sprintf("the capture's clock stepped back %.0f times", f["steps"])
	},
}

func recoveries(n float64) string {
	if n == 1 {
		return "1 recovery"
	}
	return fmt.Sprintf("%.0f recoveries", n)
}
