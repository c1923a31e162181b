package text

import (
	"fmt"
	"maps"

	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// sentences has one entry for each code; a test checks that none is missing.
var sentences = together(measuredSentences, capturedSentences)

func together(parts ...map[verdict.Code]func(figures) string) map[verdict.Code]func(figures) string {
	all := map[verdict.Code]func(figures) string{}
	for _, part := range parts {
		maps.Copy(all, part)
	}
	return all
}

// measuredSentences describe measurements at the ends of a transfer, and a verdict's own figures.
var measuredSentences = map[verdict.Code]func(figures) string{
	verdict.NothingToSend:         formatNothingToSend,
	verdict.SendBufferFull:        formatSendBufferFull,
	verdict.SendBufferAlsoFull:    func(f figures) string { return f.alsoFull("send buffer") },
	verdict.ReceiveWindowAlsoFull: func(f figures) string { return f.alsoFull("receive window") },
	verdict.ReceiveWindowFull: func(f figures) string {
		return fmt.Sprintf("receive window %s at %s allows %s; full %s", f.size("window_bytes"), f.time("rtt_s"),
			f.rate("allows_bps"), f.took()) + f.linkLeast()
	},
	verdict.Unread: func(f figures) string {
		if !f.has("unread_bytes") {
			return "the receiving program left data unread " + f.took()
		}
		return fmt.Sprintf("the receiving program left %s unread on average and so closed the window %s; it chose not to "+
			"read for %s",
			units.Size(f["unread_bytes"]), f.took(), f.time("paused_s"))
	},
	verdict.WindowCloses: func(f figures) string {
		return "the receiver's window kept closing and delayed the data " + f.took()
	},
	verdict.WindowEachRoundTrip: func(f figures) string {
		return fmt.Sprintf("receive window %s at %s allows %s, and that is what came %s", f.size("window_bytes"),
			f.time("rtt_s"),
			f.rate("allows_bps"), f.took())
	},
	verdict.StillInSlowStart: func(f figures) string {
		return fmt.Sprintf("slow start took %s; the transfer lasted %.0f round trips", f.took(), f["round_trips"])
	},
	verdict.WindowAwaitsAckTimer: func(f figures) string {
		if f.has("timer_s") {
			return fmt.Sprintf("%s the receiver's window of %s was full and the only acknowledgement of its data came from "+
				"the delayed-ACK timer, %s late on average, %s", count(int(f["waits"]), "time"), f.size("window_bytes"),
				f.time("timer_s"), f.took())
		}
		return fmt.Sprintf("the receive window of %s has room for one segment, and the receiver's delayed-ACK timer delays "+
			"its acknowledgement, %s: round trips of %s on average, %s at least", f.size("window_bytes"), f.took(),
			f.time("rtt_s"), f.time("rtt_base_s"))
	},
	verdict.NagleDelayedSegment: func(f figures) string {
		return "less than a segment waited for the acknowledgement of the one before it " + f.took() +
			", with room in every window (Nagle's rule against a delayed ACK)"
	},
	verdict.TimeoutsOnly: func(f figures) string {
		return "no data got through while segments were retransmitted and timed out " + f.took()
	},
	verdict.Paced: func(f figures) string {
		text := "data waited with room in every window " + f.took() + ", at the rate that the socket is paced to"
		if f.has("pacing_bps") {
			text += " (" + f.rate("pacing_bps") + " asked)"
		}
		return text
	},
	verdict.QueuedLocally: formatQueuedLocally,
	verdict.SenderCPU: func(f figures) string {
		text := "the writer did not wait for the network or a buffer " +
			"" + f.share("running_ratio") + " of the time"
		if f.has("busiest_thread_ratio") {
			text += "; its thread ran " + f.share("busiest_thread_ratio") + " of it"
		}
		if f.has("uncopied") {
			text += "; it passed its data without copies, and a program that copies needs more time"
		}
		return text
	},
	verdict.SenderRunqueueWait: func(f figures) string {
		return "the writer was ready but had no core " + f.share("starved_ratio") +
			" of the time, with nothing left to send: other programs use the core, or the CPU " +
			"quota of the program is used up"
	},
	verdict.ReceiverCPU: func(f figures) string {
		return "the receiver's data thread ran " + f.share("busiest_thread_ratio") +
			" of the time while data waited to be read"
	},
	verdict.ReceiverRunqueueWait: func(f figures) string {
		if !f.has("starved_ratio") {
			return "data waited to be read by a program that had no core"
		}
		return "the receiver's data thread was ready but had no core " + f.share("starved_ratio") +
			" of the time, while data waited to be read"
	},
	verdict.SenderHadNothing:     formatSenderHadNothing,
	verdict.ArrivesThroughAQueue: formatArrivesThroughAQueue,
	verdict.ArrivesWithHoles:     formatArrivesWithHoles,
	verdict.ArrivesUnlimited:     formatArrivesUnlimited,
	verdict.SenderScheduledLate:  formatSenderScheduledLate,
	verdict.LossWithoutQueue: func(f figures) string {
		return fmt.Sprintf("%s of the bytes were retransmitted at %s, and no queue ever formed (%s)",
			f.share("retransmitted_ratio"),
			f.rate("steady_bps"), f.loaded())
	},
	verdict.PolicedRate: func(f figures) string {
		burst := ""
		if f.has("peak_bps") {
			burst = " after a first burst at " + f.rate("peak_bps")
		}
		return fmt.Sprintf("%s of the bytes were retransmitted at a rate that stays near %s%s, without the queue of a full "+
			"link (%s)",
			f.share("retransmitted_ratio"), f.rate("steady_bps"), burst, f.loaded())
	},
	verdict.LossBelowBest: func(f figures) string {
		return fmt.Sprintf("%s of the bytes were retransmitted, and the rate of %s stays below the %s that the path gave "+
			"between losses (%s)",
			f.share("retransmitted_ratio"), f.rate("steady_bps"), f.rate("best_bps"), f.loaded())
	},
	verdict.CwndAvoids: func(f figures) string {
		return fmt.Sprintf("without a loss, the congestion window grew to the end in congestion avoidance: ssthresh is %s, "+
			"which an earlier connection's metrics or the sending host's TCP set: %s on average, %s at best (%s)",
			f.size("ssthresh_bytes"), f.rate("steady_bps"), f.rate("best_bps"), f.loaded())
	},
	verdict.MarksBelowBest: func(f figures) string {
		return fmt.Sprintf("a queue on the path marked segments (ECN) in %.0f round trips, and the sender reduced its "+
			"congestion window for them: %s on average, %s at best (%s)",
			f["marks"], f.rate("steady_bps"), f.rate("best_bps"), f.loaded())
	},
	verdict.LossAllTheTime:          formatLossAllTheTime,
	verdict.SpuriousRetransmissions: formatSpuriousRetransmissions,
	verdict.WindowOrLink: func(f figures) string {
		if f.has("ack_segments") {
			return fmt.Sprintf("receive window %s was full %s, and each acknowledgement covered %.0f segments: the receiving "+
				"program reads slowly, or a link aggregates packets (%s); measure at the receiver to decide",
				f.size("window_bytes"), f.took(), f["ack_segments"], f.loaded())
		}
		return fmt.Sprintf("receive window %s was full %s; over the empty path it allows %s, and %s came: data queued on "+
			"the way (%s), in bursts of a window or before a full link that aggregates packets; a larger window decides",
			f.size("window_bytes"), f.took(), f.rate("allows_bps"), f.rate("steady_bps"), f.loaded())
	},
	verdict.BetweenClosings: func(f figures) string {
		return fmt.Sprintf("the peer's window was shut %s of the time: its program reads more slowly than data comes; in "+
			"between, %s, the congestion window was full, with %s retransmitted: the reader may accept no "+
			"more; measure at the receiver to decide", f.share("closed_ratio"), f.took(),
			f.share("retransmitted_ratio"))
	},
	verdict.SendBufferOrLink: func(f figures) string {
		return fmt.Sprintf("the send buffer of %s was always full; over the empty path it allows %s, and %s came in "+
			"super-segments that the kernel takes beyond it, with a queue on the way (%s): a larger buffer gives more unless "+
			"the link is full", f.size("window_bytes"), f.rate("allows_bps"), f.rate("steady_bps"), f.loaded())
	},
	verdict.WindowEqualsBDP:     func(f figures) string { return f.equalsBDP("receive window") },
	verdict.SendBufferEqualsBDP: func(f figures) string { return f.equalsBDP("send buffer") },
	verdict.EqualWindows:        formatEqualWindows,
	verdict.SteadyAcks:          formatSteadyAcks,
	verdict.QueueEitherWay:      formatQueueEitherWay,
	verdict.QueueOfAcks: func(f figures) string {
		return "acknowledgements queue on their way back: bytes that the receiver has had are acknowledged ever later (" +
			f.loaded() + ")"
	},
	verdict.FullLink: func(f figures) string {
		return fmt.Sprintf("the path delivers a steady %s with a standing queue (%s)", f.rate("steady_bps"), f.loaded())
	},
	verdict.FullLinkNoQueue: func(f figures) string {
		queue := "without much of a queue"
		if base := f["rtt_base_s"]; base > 0 && f["rtt_s"] >= (1+threshold.LongQueue.Value)*base {
			queue = "with a queue that comes and goes"
		}
		return fmt.Sprintf("the path delivers a steady %s, %s of the best it ever gave, %s (%s, %s retransmitted)",
			f.rate("steady_bps"), f.share("best_ratio"), queue, f.loaded(), f.share("retransmitted_ratio"))
	},
	verdict.PacedLosesNothing: func(f figures) string {
		return fmt.Sprintf("paced at %s it carries %s and retransmits %s, unpaced %s: the path drops what exceeds "+
			"that rate; when it drops, the round trip is %s above the shortest", f.rate("paced_bps"), f.rate("goodput_bps"),
			f.share("paced_ratio"), f.share("retransmitted_ratio"), f.time("queue_s"))
	},
	verdict.PolicerBucket: func(f figures) string {
		said := fmt.Sprintf("a policer drops packets above about %s once its bucket of about %s is empty", f.rate("rate_bps"),
			units.Size(f["bucket_bytes"]))
		if f.has("needed_bytes") {
			said += fmt.Sprintf("; one connection with a window of %s, which fills this path, needs a bucket of %s to keep "+
				"that rate", units.Size(f["window_bytes"]), units.Size(f["needed_bytes"]))
		}
		return said
	},
	verdict.StreamsCarryMore: func(f figures) string {
		return fmt.Sprintf("%.0f connections carried %s together where one carries %s; %.0f fill the path. Of %.0f the "+
			"slowest had %s of what one alone has, and the least round trip was %s (%s for one)", f["streams"],
			f.rate("total_bps"), f.rate("single_bps"), f["fill_streams"], f["compare_streams"], f.share("least_ratio"),
			f.time("rtt_several_s"), f.time("rtt_single_s"))
	},
	verdict.LargerWindowNoFaster: func(f figures) string {
		return fmt.Sprintf("a window of %s, %.1f times as large, gave %s: the window is just enough and does not limit",
			f.size("larger_window_bytes"), f["larger_ratio"], f.rate("larger_bps"))
	},
	verdict.RunsDisagree: func(f figures) string {
		return fmt.Sprintf("%.0f of %.0f runs name this limiter; the others name another one", f["agree"], f["runs"])
	},
	verdict.CwndOpensToTheEnd: func(f figures) string {
		return fmt.Sprintf("the congestion window kept growing to the end: %s in the last "+
			"round trips, more than any rate that lasted for four round trips",
			f.rate("steady_bps"))
	},
	verdict.CwndOpens: func(f figures) string {
		return fmt.Sprintf("the congestion window kept growing %s to the end and nothing else "+
			"was full: %s on average, maximum %s (%s)",
			f.losses(), f.rate("steady_bps"), f.rate("best_bps"), f.loaded())
	},
	verdict.CwndFull: func(f figures) string {
		return fmt.Sprintf("the congestion window was full, %s: %s on average, maximum %s (%s)",
			f.losses(), f.rate("steady_bps"), f.rate("best_bps"), f.loaded())
	},
	verdict.LossWithoutCPU: formatLossWithoutCPU,
	verdict.NoRate:         fixedSentence("too few samples to see a rate"),
	verdict.FullLinkOnceOpen: func(f figures) string {
		return fmt.Sprintf("once the congestion window was open, the path gave a steady %s with a standing queue %s",
			f.rate("best_bps"), f.took())
	},
	verdict.KernelSilent: func(f figures) string {
		return "the sender's kernel does not report its limiter " + f.took()
	},
	verdict.ProgramOrBuffer: func(f figures) string {
		return fmt.Sprintf("all written data was in flight %s, at most %s: the program writes "+
			"too little, or its send buffer is full", f.took(), f.size("outstanding_bytes"))
	},
	verdict.NoDatagrams:      fixedSentence("nothing was sent"),
	verdict.DatagramsAsAsked: formatDatagramsAsAsked,
	verdict.DatagramsLost: func(f figures) string {
		return fmt.Sprintf("of %s sent %s arrived; the far end does not report whether a queue was full or datagrams were "+
			"dropped without one", f.rate("sent_bps"), f.rate("arrived_bps"))
	},
	verdict.DatagramsQueueFull: func(f figures) string {
		return fmt.Sprintf("of %s sent %s got through, after a queue that was full (%s more delay): the path carries no "+
			"more", f.rate("sent_bps"), f.rate("arrived_bps"), SecondsText(f["delay_s"]))
	},
	verdict.DatagramsNoQueue: func(f figures) string {
		return fmt.Sprintf("of %s sent %s got through, without a queue (%s more delay): a policer, or loss at random; send "+
			"half as much: a policer then loses next to nothing, chance the same share", f.rate("sent_bps"),
			f.rate("arrived_bps"), SecondsText(f["delay_s"]))
	},
	verdict.DatagramsReceiverBusy: func(f figures) string {
		return fmt.Sprintf("of %s sent %s were received, by a thread that had no more of its core to give",
			f.rate("sent_bps"),
			f.rate("arrived_bps"))
	},
	verdict.DatagramsSenderSlow: func(f figures) string {
		return "the sender's thread filled its core at " + f.rate("sent_bps")
	},
	verdict.DatagramsReceiverOutOfTime: func(f figures) string {
		return fmt.Sprintf("of %s sent %s were received, by a host that %s: dropped there or in the path",
			f.rate("sent_bps"), f.rate("arrived_bps"), f.hostLoad())
	},
	verdict.DatagramsSenderUnknown: func(f figures) string {
		return fmt.Sprintf("the sending host took no more than %s and %s: its processor, its interface or a shaper there",
			f.rate("sent_bps"), f.hostLoad())
	},
	verdict.DatagramsQueuedLocally: func(f figures) string {
		return "the sending host took no more than " + f.rate("sent_bps") + ", and its processor was not why: its " +
			"interface or a shaper there"
	},
	verdict.RunqueueWaited:  formatRunqueueWaited,
	verdict.ConcurrentTests: formatConcurrentTests,
	verdict.ClockTrouble:    formatClockTrouble,
	verdict.MemoryPressure:  formatMemoryPressure,
	verdict.WatchedFromOutside: func(f figures) string {
		return fmt.Sprintf("only the kernel's view of this end's connection was read, for %s: the "+
			"other end is not known", f.time("window_s"))
	},
	verdict.SendQueueSeen: func(f figures) string {
		used := "at most " + f.size("queued_bytes")
		if f["queued_bytes"] > f["granted_bytes"] { // the kernel counts its bookkeeping, and lets the last write exceed it
			used = "all"
		}
		return fmt.Sprintf("while all written data was in flight, %s of the send buffer's %s were used: full %s, with "+
			"room %s of that time", used, f.size("granted_bytes"), f.share("full_ratio"), f.share("room_ratio"))
	},
	verdict.WatchedExchanges:     capturedExchanges,
	verdict.WatchedProgramWindow: capturedProgramWindow,
	verdict.SendQueueSampled: func(f figures) string {
		return fmt.Sprintf("in %.0f samples all written data was in flight: the send buffer was "+
			"full in %s of them and had room in %s", f["readings"], f.share("full_ratio"), f.share("room_ratio"))
	},
	verdict.ClocksAlone: func(f figures) string {
		return fmt.Sprintf("by the kernel's timers over %s: idle %s, rwnd-limited %s, sndbuf-limited "+
			"%s; the rest is waiting for the network, of an unknown "+
			"kind", f.time("window_s"), f.share("idle_ratio"),
			f.share("receiver_ratio"), f.share("send_buffer_ratio"))
	},
	verdict.SnapshotsAlone: func(f figures) string {
		return fmt.Sprintf("by %.0f samples of this system's counters in %s: idle %s, "+
			"rwnd-limited %s; the rest is waiting for the network or the sender, of an unknown "+
			"kind", f["readings"], f.time("window_s"), f.share("idle_ratio"),
			f.share("receiver_ratio"))
	},
	verdict.TooLittleWatched: func(f figures) string {
		return fmt.Sprintf("only %s were transferred: too little for a verdict", f.size("bytes"))
	},
	verdict.KernelFieldsMissing: formatKernelFieldsMissing,
	verdict.SenderUnseen: fixedSentence("the sender cannot be seen: its program, its buffer, loss and a full link " +
		"look the same from here"),
	verdict.SharedLink: func(f figures) string {
		return fmt.Sprintf("%.0f connections to this host share a path that delivers a steady %s to all of them, with a "+
			"standing queue (%s)", f["connections"], f.rate("steady_bps"), f.loaded())
	},
	verdict.SenderIsHere:  fixedSentence("its sender is on this host as well, and this is what was seen there"),
	verdict.NotSampled:    fixedSentence("no end of the transfer was sampled"),
	verdict.SampledRarely: fixedSentence("the sender cannot be seen and the receiver was sampled too rarely"),
	verdict.NoRoundTrips:  fixedSentence("the sender's system reports no round-trip times"),

	verdict.FigureDoesNotFit: func(f figures) string {
		return "the verdict would contradict its own figures: " + f.contradiction()
	},
	verdict.FiguresRemoved: func(f figures) string {
		if f["figures"] == 1 {
			return "1 value was removed, because it contradicts the others"
		}
		return fmt.Sprintf("%.0f values were removed, because they contradict the "+
			"others", f["figures"])
	},
	verdict.JudgedAgain: func(f figures) string {
		return "judged again without the input that contradicts the rest: " + f.contradiction()
	},
}
