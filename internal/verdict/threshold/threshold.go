// Package threshold is the one table of the numbers that the judges compare with. Each has a name, a comment on its
// effect, a unit and an origin: a kernel's file, an RFC, a paper or the rows of a bank (docs/benchmarks.md). A Number
// contains them for the rules that print it. Those of watched connections and of a transfer's start are constants, with
// "unit | origin" behind them; a test checks that.
//
// "Definition" is the ten per cent by which the word limiter is defined.
package threshold

import "time"

// Values that others are computed from.
const (
	causeFactor  = 1.1 // ratio | CauseFactor
	windowLimits = 1.2 // ratio | WindowLimits
)

// The headline and the evidence.
var (
	// HeadlineShare of the wall time makes a limiter the headline, if it has as well
	// HeadlineLead times the share of the next one.
	HeadlineShare = &Number{"HeadlineShare", 0.5, "ratio", "a majority of the time"}
	HeadlineLead  = &Number{"HeadlineLead", 2.0, "ratio",
		"attribution bank: less lead was wrong too often"}
	// NagleShare is enough for requests that Nagle's rule delays: they wait for their responses too, with or without it.
	NagleShare = &Number{"NagleShare", 0.4, "ratio", "attribution bank, Nagle with delayed ACK"}
	// CandidateShare makes a limiter one of the candidates of a mixed verdict.
	CandidateShare = &Number{"CandidateShare", 0.1, "ratio", "definition"}
	// EvidenceShare is the share of time from which a limiter appears in the evidence.
	EvidenceShare = &Number{"EvidenceShare", 0.05, "ratio", "half of CandidateShare"}

	// MinRounds: a verdict from fewer rounds is one step less sure.
	MinRounds = &Number{"MinRounds", 5, "rounds", "attribution bank, short transfers"}
	// ClearShare: a verdict whose limiter had less of the time is one step less sure.
	ClearShare = &Number{"ClearShare", 0.7, "ratio", "attribution bank: wrong verdicts lie below"}
)

// Windows and buffers.
var (
	// WindowLimits is how far window / min RTT may lie above the rate for a full window to limit. Beyond it the RTT is
	// longer than the path's: the window's data is in a queue.
	WindowLimits = &Number{"WindowLimits", windowLimits, "ratio",
		"definition, and as much again for the round trip; bank, full link with full window"}
	// QueueOfWindow is how long a queue, as a share of the base RTT, a window within WindowLimits may keep.
	QueueOfWindow = &Number{"QueueOfWindow", windowLimits - 1, "ratio", "WindowLimits"}
	// WindowFarAbove is the same from which a window was not emptied by the round trip
	// that was seen: too few round trips were seen to know the queue.
	WindowFarAbove = &Number{"WindowFarAbove", 2.0, "ratio",
		"attribution bank, a window above the BDP of a short transfer"}
	// WindowClearlyLimits is the same up to which the window alone explains the rate.
	WindowClearlyLimits = &Number{"WindowClearlyLimits", 1.15, "ratio",
		"definition, and half as much again"}
	// WindowGrows is how far the last window lies above the one in the middle while the
	// system is still enlarging it. A window that autotuning does not enlarge stays
	// within a scale unit and half a super-segment of its size; autotuning doubles it.
	WindowGrows = &Number{"WindowGrows", 1.25, "ratio",
		"tcp_input.c, tcp_rcv_space_adjust: half of what two of its steps add"}
	// UnscaledMax is what the header's 16 bits hold, and UnscaledNear the share of it
	// from which a window is that.
	UnscaledMax  = &Number{"UnscaledMax", 65535, "bytes", "RFC 7323, 2.1"}
	UnscaledNear = &Number{"UnscaledNear", 0.9, "ratio",
		"attribution bank, no window scaling: windows are rounded down to whole segments"}
	// ScaledNear is the share of the largest window of a scale from which a window is that.
	ScaledNear = &Number{"ScaledNear", 0.99, "ratio",
		"Windows' levels end at 65,535 << 2, 4 and 8: learn.microsoft.com, Set-NetTCPSetting"}
	// CeilingMin and UnscaledMax bound a window that was scaled and yet stays at the maximum of 16 bits, rounded down to a
	// unit of the scale. A buffer of 64 KiB is larger.
	CeilingMin = &Number{"CeilingMin", 64000, "bytes",
		"63 << 10 is 64,512: Windows Server 2012 at scale 10"}
	// BufferEmpty is the share of time without unsent data from which the send buffer limits the rest of the time too.
	BufferEmpty = &Number{"BufferEmpty", 0.2, "ratio",
		"attribution bank, small send buffer; RFC 7661, 4.4: an unused cwnd does not grow"}
	// PacedWindow is the share of time with a full receive window from which it also limits the rest of the time of a
	// sender that paces.
	PacedWindow = &Number{"PacedWindow", 0.2, "ratio",
		"lab, BBR: 0.3 to 0.5 with windows of half a BDP and more, 0.02 where they do not limit"}
	// AlsoFull is the share of time from which a full window that does not limit appears in the evidence.
	AlsoFull = &Number{"AlsoFull", 0.25, "ratio",
		"attribution bank, full link with full window as well"}
	// Unread is the ratio of unread data to unread data plus window from which the program does not read.
	Unread = &Number{"Unread", 0.25, "ratio", "attribution bank, slow reader"}
	// WindowCloses is the share of the largest window below which it has closed, and
	// WindowClosesOften the share of samples in which it has.
	WindowCloses = &Number{"WindowCloses", 0.5, "ratio",
		"attribution bank, slow reader, sender alone"}
	WindowClosesOften = &Number{"WindowClosesOften", 0.25, "ratio",
		"attribution bank, slow reader, sender alone"}
	// ClosesOften is the share of time with the window shut from which the program behind it may be what limits in
	// between as well.
	ClosesOften = &Number{"ClosesOften", 0.15, "ratio",
		"watch bank, curl --limit-rate over 10 ms: 0.22 to 0.52"}
	// WindowHasClosed is how many times the peer's window the congestion window must be for
	// the former to have been larger, and EarnedSegments what no connection starts with.
	WindowHasClosed = &Number{"WindowHasClosed", 3.0, "ratio",
		"tcp_is_cwnd_limited: up to 2; watch bank: 2.0 fixed windows, 4 to 9 slow readers"}
	EarnedSegments = &Number{"EarnedSegments", 40, "segments",
		"RFC 6928: 10, and four times as much by routes' initcwnd"}
	// SegmentsPerRead is the number of segments per acknowledgement from which the receiving program may read slowly.
	// ReadDelay is the largest growth of the RTT in such a case, as a multiple of the arrival time of these segments.
	SegmentsPerRead = &Number{"SegmentsPerRead", 4.0, "segments",
		"RFC 5681, 4.2: two; slow readers of 16 KiB at 8 to 12 Mbit/s: 9"}
	ReadDelay = &Number{"ReadDelay", 3.0, "ratio", "the same: 1.1 to 1.7"}
	// DrainedShare of a connection's bytes may still be in flight when its program is
	// done; more than that belongs to the transfer.
	DrainedShare = &Number{"DrainedShare", 0.2, "ratio", "attribution bank, short transfer"}
	// NagleWindow is the used share of a window up to which only Nagle's rule can delay less than a segment.
	NagleWindow = &Number{"NagleWindow", 0.5, "ratio", "attribution bank, Nagle with delayed ACK"}
	// NagleSegments is the maximum of segments in flight while Nagle's rule delays the end of a request. It applies if
	// samples are too far apart to show that nothing else was sent meanwhile.
	NagleSegments = &Number{"NagleSegments", 10, "segments",
		"RFC 6928: a request sends as much without waiting"}
	// NagleResponses is the longest time between two responses that a program waits for, as a multiple of a delayed
	// exchange: two round trips and a delayed acknowledgement.
	NagleResponses = &Number{"NagleResponses", 2.0, "ratio", "definition: every other exchange"}
	// AckedAtOnce is the share of a full receive window that one acknowledgement covers if the sender waits for it with
	// nothing in flight, and AckedIdle the least share of the time in which the link is then idle.
	AckedAtOnce = &Number{"AckedAtOnce", 0.8, "ratio",
		"a delayed ACK covers half of four segments, two thirds of three"}
	AckedIdle = &Number{"AckedIdle", 1 - 1/causeFactor, "ratio", "definition"}
	// DelayedAckSegments are acknowledged without delay. MinAckDelay is the least mean delay of an acknowledgement that a
	// timer causes, and AckDelayShare its least share of the growth of the RTT. A packet without payload has HeaderBytes.
	DelayedAckSegments = &Number{"DelayedAckSegments", 2, "segments", "RFC 1122, 4.2.3.2"}
	MinAckDelay        = &Number{"MinAckDelay", float64(10 * time.Millisecond), "time",
		"include/net/tcp.h, TCP_DELACK_MIN: 40 ms; srtt shows a part"}
	AckDelayShare = &Number{"AckDelayShare", 0.2, "ratio",
		"lab: modems without a timer 0.1, timers of 200 ms 0.3"}
	HeaderBytes = &Number{"HeaderBytes", 40, "bytes", "RFC 791, RFC 9293: headers without options"}
	// TransferSegments make a transfer of a conversation.
	TransferSegments = &Number{"TransferSegments", 20, "segments", "two initial windows of ten (RFC 6928)"}
	// ProbedWindows is the share of windows with a needless probe (RFC 8985, 7) from which a timer delays their ACKs.
	ProbedWindows = &Number{"ProbedWindows", 0.5, "ratio",
		"definition: most of them; lab, windows below two segments: 0.96 to 1"}
	// EvenedOut is over how many round trips a rate is a rate and not one burst.
	EvenedOut = &Number{"EvenedOut", 4, "round trips", "a window's worth comes once in each"}
)

// Rounds and spans of time.
var (
	// RoundTrips make a round, and a round lasts ShortestRound at the least.
	RoundTrips    = &Number{"RoundTrips", 2, "round trips", "one may hold two bursts or none"}
	ShortestRound = &Number{"ShortestRound", float64(50 * time.Millisecond), "time",
		"five samples of 10 ms; jiffies of 10 ms in tcp_info's clocks"}
	// DelayedAck is the longest time for which a receiver delays an acknowledgement.
	DelayedAck = &Number{"DelayedAck", float64(200 * time.Millisecond), "time",
		"include/net/tcp.h, TCP_DELACK_MAX"}
	// MaxTime is the longest that is believed: a far end's clock is its own affair.
	MaxTime = &Number{"MaxTime", float64(7 * 24 * time.Hour), "time", "a week of one transfer"}
	// RoundScatter is by how much a round's rate may differ from the mean without meaning anything.
	RoundScatter = &Number{"RoundScatter", 0.15, "ratio",
		"lab: a round has two windows, one more or one less by chance"}
	// SegmentsPerSpan is how many segments a span should hold, so that one more or less
	// does not look like another rate.
	SegmentsPerSpan = &Number{"SegmentsPerSpan", 50, "segments", "2 %"}
	// MaxSpan is the longest span as a share of the transfer, where segments are few.
	MaxSpan = &Number{"MaxSpan", 0.1, "ratio", "ten spans"}
	// MaxSpans bounds the work that one transfer's clock can ask for.
	MaxSpans = &Number{"MaxSpans", 10000, "spans", "1 ms of 10 s"}
	// BestLeftOut is the share of best spans that do not count: after a host or a device stops for a moment, the delayed
	// data arrives at once.
	BestLeftOut = &Number{"BestLeftOut", 0.05, "ratio", "attribution bank on a busy host"}
	// SlowStartGrows is by how much the last two round trips must exceed the two before
	// while slow start goes on.
	SlowStartGrows = &Number{"SlowStartGrows", 1.3, "ratio",
		"slow start doubles; HyStart++ (RFC 9406, 4.2) grows by a quarter and more"}
	// SlowStartSpan is the least length of such two round trips.
	SlowStartSpan = &Number{"SlowStartSpan", float64(10 * time.Millisecond), "time", "one sample"}
	// StillOpening is by how much the last congestion window exceeds the one in the middle
	// of a transfer while it still opens.
	StillOpening = &Number{"StillOpening", 1.1, "ratio", "definition"}
)
