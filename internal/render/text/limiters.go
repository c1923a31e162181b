package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Limiter prints the explanation of a limiter.
func Limiter(w io.Writer, d *record.ExplainedLimiter) {
	fmt.Fprintln(w, string(d.Limiter)+verdict.Suffix(d.Subtype))
	t := newTable()
	t.row("what it is", d.Description)
	if d.Subtype == "" && len(verdict.Subtypes(d.Limiter)) > 0 {
		t.row("subtypes", strings.Join(verdict.Subtypes(d.Limiter), ", ")+" (fullpipe explain SUBTYPE)")
	}
	t.row("how it looks", d.Looks)
	t.row("to be sure", d.Sure)
	for i, f := range d.Fix {
		head := ""
		if i == 0 {
			head = "what to do"
		}
		t.row(head, FixSentence(f)+" ["+f.Source+"]")
	}
	if d.Lab != "" {
		t.row("see it", d.Lab)
	}
	t.write(w, "  ")
}

// ExplainLimiter explains a limiter, LIMITER/SUBTYPE or subtype with the tools of a system. It returns false if there
// is none of that name.
func ExplainLimiter(word string, system advice.System) (d record.ExplainedLimiter, ok bool) {
	name, subtype, ok := verdict.ParseLimiter(word)
	if !ok {
		return d, false
	}
	e := limiters[name]
	if means, ok := subtypeCauses[subtype]; ok {
		e.cause = means
	}
	if subtype != "" {
		e.lab = "" // it shows the limiter
	}
	if subtype == verdict.AckTimer {
		e = ackTimer
	}
	candidates := []verdict.Name(nil)
	if name == verdict.Sender {
		candidates = []verdict.Name{verdict.Application, verdict.SendBuffer}
	}
	if sure := sureElsewhere[name]; system != advice.Linux && sure != "" {
		e.sure = sure
	}
	facts := advice.Facts{Sender: system, Receiver: system}
	return record.ExplainedLimiter{Limiter: name, Subtype: subtype, Description: e.cause, Looks: e.looks, Sure: e.sure,
		Lab: e.lab, Fix: FixSentences(advice.Fixes(verdict.Verdict{Limiter: name, Subtype: subtype, Candidates: candidates},
			facts))}, true
}

// ackTimer explains nagle-delayed-ack (ack-timer), which Nagle's rule has no part in.
var ackTimer = explanation{"the sender waits for an acknowledgement that the receiver's delayed-ACK timer delays: " +
	"the receive window has room for one segment, or the sender's blocks end in one",
	"in flight stays at one segment or one block, acknowledgements 40 to 500 ms late",
	"with a receive window or send buffer of two more segments it is gone",
	"fullpipe measure lab:lan-10m,far.delack=200ms --receive-buffer 2306"}

// sureElsewhere has the confirming test of a limiter on a system without Linux's tools.
var sureElsewhere = map[verdict.Name]string{
	verdict.Application: "a capture at the sender: pauses with nothing in flight while both windows have room",
	verdict.SendBuffer: "a capture at the sender: the bytes in flight stop at the same size, below the receiver's " +
		"window; a " +
		"larger SO_SNDBUF raises it",
	verdict.ReceiverWindow: "a capture at the sender: the bytes in flight lie on the receiver's window; the window " +
		"over the " +
		"least round trip is about the rate",
	verdict.ReceiverApplication: "a capture at the receiver: its window shrinks towards 0 and opens again",
	verdict.Congestion:          "a capture at both ends shows where segments vanish",
	verdict.LocalQueue: "a capture at the sender is as fast as the program writes, one behind its network " +
		"card is not",
	verdict.MTUBlackHole: "ping that must not be fragmented finds the size (Windows: ping -f -l SIZE; macOS and " +
		"FreeBSD: " +
		"ping -D -s SIZE); fullpipe measure --mss below it works",
	verdict.Pacing: "a capture at the sender: segments leave one by one at even distances",
	verdict.CPU:    "the system's monitor shows a thread that fills a core, or a run queue longer than the cores",
}

// inLab returns a command line that runs near on the near host of a lab and far on the far
// host, with a key for both.
func inLab(far, near string) string {
	return "FULLPIPE_KEY=$(fullpipe key new) fullpipe lab rate=50mbit,rtt=20ms --far " + far + " -- sh -c '" + near + "'"
}

type explanation struct{ cause, looks, sure, lab string }

// limiters has one entry for each name; tests check that none is missing, and that each lab
// line shows its limiter.
var limiters = map[verdict.Name]explanation{
	verdict.Application: {"the sending program does not write", "in flight comes and goes below both windows; nothing " +
		"waits unsent",
		"ss -tim at the sender: app_limited, busy time far below the connection's age",
		"fullpipe measure lab:rate=50mbit,rtt=20ms --write-rate 5mbit"},
	verdict.SendBuffer: {"the sender's socket buffer is smaller than the BDP", "in flight is flat below both " +
		"windows, " +
		"the round trip is the empty path's",
		"ss -tim at the sender: sndbuf_limited, and notsent stays 0 while the program waits in write",
		"fullpipe measure lab:rate=50mbit,rtt=80ms --send-buffer 64KiB"},
	verdict.ReceiverWindow: {"the receiver's window is less than a bandwidth-delay product",
		"in flight lies on the receiver's window, the congestion window above both",
		"ss -tim at the sender: rwnd_limited; the window over the least round trip is about the rate",
		"fullpipe measure lab:rate=50mbit,rtt=80ms --receive-buffer 64KiB"},
	verdict.ReceiverApplication: {"the receiving program does not read", "the window is ragged: it shrinks as data " +
		"piles up unread, down to 0",
		"ss -tm at the receiver: Recv-Q stays full", "fullpipe measure lab:rate=50mbit,rtt=20ms --read-rate 5mbit"},
	verdict.Congestion: {"loss, and the congestion window that follows from it", "in flight is the congestion window, " +
		"cut at each loss; no queue in the round trip",
		"ss -tim at the sender: retrans, ssthresh; a capture at both ends shows where segments vanish",
		"fullpipe measure lab:rate=50mbit,rtt=40ms,loss=0.5%"},
	verdict.Bottleneck: {"a link on the way is full", "the rate is flat while in flight and the round trip grow " +
		"together",
		"a second, faster path, or UDP at a higher rate, brings no more", "fullpipe measure lab:rate=20mbit,rtt=40ms"},
	verdict.LocalQueue: {"this host's shaper, qdisc or driver accepts no more data",
		"data waits unsent though both windows have room; no queue on the path",
		"tc -s qdisc show at the sender: backlog and overlimits grow",
		inLab("'fullpipe serve'", "tc qdisc add dev lab0 root tbf rate 10mbit burst 10kb limit 4mb; "+
			"fullpipe measure $FULLPIPE_FAR")},
	verdict.AckPath: {"acknowledgements wait on their way back", "the round trip grows though data arrives at once",
		"capture at both ends: data takes as long as ever, acknowledgements ever longer",
		"fullpipe measure lab:rate=20mbit,rtt=40ms,down.rate=64kbit"},
	verdict.SlowStart: {"the transfer is over before its window has opened",
		"in flight doubles every round trip until the end",
		"a longer transfer over the same path is faster", "fullpipe measure lab:rate=100mbit,rtt=150ms --bytes 500kB"},
	verdict.NagleDelayedAck: {"a small write waits for the acknowledgement of the one before, which the receiver delays",
		"a few hundred bytes in flight, acknowledgements 40 ms late",
		"with TCP_NODELAY it is gone", "fullpipe measure lab:rate=50mbit,rtt=20ms --exchange --write-size 600"},
	verdict.MTUBlackHole: {"segments beyond some size vanish without an ICMP error",
		"the first full segments are retransmitted at intervals that double",
		"ping -M do -s SIZE finds the size; fullpipe measure --mss below it works",
		"fullpipe measure lab:rate=10mbit,rtt=10ms,mtu=1400,icmp=drop"},
	verdict.Pacing: {"the socket's pacing rate limits the transfer", "a steady rate, in flight below both windows, " +
		"data unsent",
		"ss -tim at the sender: pacing_rate is the rate",
		"fullpipe measure lab:rate=50mbit,rtt=20ms --pacing 10mbit"},
	verdict.CPU: {"a CPU core is fully used", "the program waits for nothing, or waits for a core",
		"top -H: a data thread at 100 %, or a run queue longer than the cores",
		"fullpipe measure lab:rate=50mbit,rtt=20ms --write-size 1"},
	verdict.Sender: {"the sending host limits itself, and a capture does not show which part of it",
		"room in every window, nothing lost, no queue", "ask the sending host",
		inLab("'fullpipe serve' --capture link.pcap", "fullpipe measure $FULLPIPE_FAR --pacing 5mbit") +
			"; fullpipe diagnose link.pcap"},
	verdict.Unknown: {"the measurements do not decide, or contradict each other", "the evidence names what is missing, " +
		"or which figure does not fit",
		"measure from the other end, or capture from the handshake on",
		inLab("'fullpipe serve --iperf3'", "fullpipe measure iperf3://$FULLPIPE_FAR --direction down")},
	verdict.Mixed: {"several limiters in turn, none with half of the time and twice the next one's",
		"the shares of time say how much each had",
		"repair the first candidate and measure again",
		"fullpipe measure lab:rate=20mbit,rtt=100ms --bytes 2MB"},
}
