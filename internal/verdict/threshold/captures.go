package threshold

import "time"

// Captures: the position of the tap and the slices of a timeline. A slice is a round trip or more.
var (
	// MinSegments, and as few rounds, are too little for any conclusion.
	MinSegments = &Number{"MinSegments", 3, "segments",
		"two segments acknowledge each other (RFC 5681, 4.2)"}
	// BytesShown is how many times what its packets or acknowledgements show a direction may have carried.
	BytesShown = &Number{"BytesShown", 1.05, "ratio", "definition"}
	// TapAtSender and TapAtReceiver are shares of the round trip between the tap and the sender. Below the first the tap
	// is at the sender, above the second it is at the receiver.
	TapAtSender   = &Number{"TapAtSender", 0.2, "ratio", "capture bank, three taps"}
	TapAtReceiver = &Number{"TapAtReceiver", 0.8, "ratio", "capture bank, three taps"}
	// PathPace is the quantile of the bursts' paces that counts as the path's pace.
	PathPace = &Number{"PathPace", 0.7, "ratio",
		"capture bank; Dovrolis et al. 2001: single dispersions scatter both ways"}
	// QueueSegments is how many outstanding segments at the least can make a queue, and
	// how many round trips' serialisations are one's own.
	QueueSegments = &Number{"QueueSegments", 4, "segments", "capture bank"}
	// AvoidanceGrowth is the growth of the bytes in flight a round trip, in segments for each acknowledgement, below
	// which the congestion window is in congestion avoidance.
	AvoidanceGrowth = &Number{"AvoidanceGrowth", 0.5, "segments", "RFC 5681 section 3.1: 1 in slow start"}
	// NeverEmptyRTTs is the least number of round trips that show a queue that never ran empty.
	NeverEmptyRTTs = &Number{"NeverEmptyRTTs", 3, "round trips", "one or two may be a delayed ACK's"}
	// SerialisedPackets, QueueLeast and QueueSpreads bound a queue from below: by packets,
	// by a time, and by how round trips scatter within a round.
	SerialisedPackets = &Number{"SerialisedPackets", 3, "packets", "capture bank"}
	QueueLeast        = &Number{"QueueLeast", float64(200 * time.Microsecond), "time",
		"capture bank: a host's own scatter"}
	QueueSpreads = &Number{"QueueSpreads", 2.2, "standard deviations", "capture bank, jitter"}
	// QueueSeenOften is the share of time whose rises of the round trip stay below the one
	// that shows a shallow queue.
	QueueSeenOften = &Number{"QueueSeenOften", 0.6, "ratio",
		"capture bank, policer against shallow queue"}
	// AckQueueTick is the least delay on the way back that timestamps resolve.
	AckQueueTick = &Number{"AckQueueTick", float64(3 * time.Millisecond), "time",
		"RFC 7323, 5.4: senders count milliseconds"}
	// FullSlice is the share of the path's rate from which a slice is full; FullSliceFilled
	// the same where the whole transfer filled the link, and FilledWithin how near to the
	// path's rate that is.
	FullSlice       = &Number{"FullSlice", 0.75, "ratio", "capture bank"}
	FullSliceFilled = &Number{"FullSliceFilled", 0.5, "ratio", "capture bank"}
	FilledWithin    = &Number{"FilledWithin", 1.1, "ratio", "definition"}
	// LineFilled is the share of the rate within blocks from which blocks wait for the line.
	LineFilled = &Number{"LineFilled", 0.9, "ratio", "definition"}
	// LongPause is longer than pacing and shapers leave between two segments.
	LongPause = &Number{"LongPause", float64(200 * time.Millisecond), "time",
		"RTO_MIN of tcp.h: data that waits longer was not sent"}
	// ProbeSegments is what must be outstanding for a burst's rate to be one; probing
	// faster than the path is seen in one slice of ProbeEvery.
	ProbeSegments = &Number{"ProbeSegments", 8, "segments", "tcp_bbr.c: a cycle of eight phases"}
	ProbeEvery    = &Number{"ProbeEvery", 30, "slices", "capture bank, BBR"}
	// ShortTail is the time at the end of a short transfer that passes until the last acknowledgement arrives.
	ShortTail = &Number{"ShortTail", 1.2, "round trips", "the last acknowledgement"}
	// UnreliableSlice is the share of a slice's data that were not captured from which it
	// says nothing; UnreliableCapture of all data, from which nothing does.
	UnreliableSlice   = &Number{"UnreliableSlice", 0.1, "ratio", "capture bank, losses at the tap"}
	UnreliableCapture = &Number{"UnreliableCapture", 0.02, "ratio",
		"capture bank, losses at the tap"}
	// MergedShare is the share of the bytes in segments longer than the MSS from which they are reported. MergedTime is
	// the share of the round trip that the path takes for one of them, above which they hide when data came.
	MergedShare = &Number{"MergedShare", 0.1, "ratio", "definition"}
	MergedTime  = &Number{"MergedTime", 1.0, "ratio",
		"definition: a whole round trip then has one time"}
	// ScalePlateau is the share of time at a window from which an inferred scale is
	// believed.
	ScalePlateau = &Number{"ScalePlateau", 0.7, "ratio",
		"capture bank, captures without handshake"}
	// SmallShare is the share of segments below the MSS from which the program's writes
	// show; FlatShare the share of the most outstanding that counts as at it, and
	// FlatLong of the time there.
	SmallShare = &Number{"SmallShare", 0.05, "ratio", "capture bank"}
	FlatShare  = &Number{"FlatShare", 0.9, "ratio", "definition"}
	FlatLong   = &Number{"FlatLong", 0.8, "ratio", "capture bank, small send buffer"}
	// PolicedQueue is the largest queue before a quarter of a policer's loss events, PolicedWindows the largest ratio of
	// the quartiles of the bytes in flight at PolicedPoints and more of them.
	PolicedQueue = &Number{"PolicedQueue", 2.0, "packets",
		"lab: policers 0.1 to 2.0, queues of 10 to 30 packets 2.0 to 7"}
	PolicedWindows = &Number{"PolicedWindows", 1.5, "ratio",
		"lab: policers 1.05 to 1.5, random losses 1.5 to 3"}
	PolicedPoints = &Number{"PolicedPoints", 8, "loss events", "quartiles of fewer scatter"}
	// PolicedEven is the most by which six parts of a policed transfer's time differ in rate, and PolicedSlices how much
	// of it must be seen.
	PolicedEven   = &Number{"PolicedEven", 1.5, "ratio", "lab, policers of 1 to 6 s: 1.03 to 1.49"}
	PolicedSlices = &Number{"PolicedSlices", 8, "slices", "capture bank, policer"}
	// OversizedEvents is the least number of loss events in which all super-segments were lost.
	OversizedEvents = &Number{"OversizedEvents", 3, "loss events",
		"an outage loses all that is in flight at once"}
	// IdleOfApplication is the share of the program's time in pauses from which it is reported to have nothing to send.
	// Below it the program waits for responses.
	IdleOfApplication = &Number{"IdleOfApplication", 0.3, "ratio", "capture bank"}
	// ExchangesWait is the share of the time that round trips between blocks must take for
	// them to be what limits, and ExchangesRestart the share of the times with nothing
	// outstanding that a message of the other end must end.
	ExchangesWait = &Number{"ExchangesWait", 0.5, "ratio",
		"a majority: the rest is the programs' own time"}
	ExchangesRestart = &Number{"ExchangesRestart", 0.8, "ratio",
		"definition, twice: a program that writes by its own clock is answered too"}
	// ClockedVariation is the greatest deviation of the intervals between blocks that a clock of the sender's own makes,
	// as a share of their mean. OwnTime is the share of each interval that is then the sender's own, and Prompted the
	// share of blocks that must follow a message soon for messages to let them out.
	ClockedVariation = &Number{"ClockedVariation", 0.02, "ratio",
		"timers of 20 to 1,000 ms keep to a millisecond"}
	OwnTime  = &Number{"OwnTime", 0.1, "ratio", "definition"}
	Prompted = &Number{"Prompted", 0.5, "ratio", "a majority"}
	// TurnsTrough is the largest tenth percentile of the bytes in flight, as a share of their maximum, of a program that
	// sends two blocks in turn. With two blocks half is left; the kernel wakes a writer at two thirds.
	TurnsTrough = &Number{"TurnsTrough", 0.6, "ratio", "sk_stream_write_space; between the two"}
	// ProgramWindowRoom is how many times what is outstanding the receive window must be for
	// a flat level to be the program's, and ProgramWindowResponses the share of the sent bytes that
	// the other end may send meanwhile: messages, no data.
	ProgramWindowRoom = &Number{"ProgramWindowRoom", 1.25, "ratio",
		"as WindowGrows: half of one of autotuning's steps"}
	ProgramWindowResponses = &Number{"ProgramWindowResponses", 0.05, "ratio",
		"SSH: 1 in 1,000; HTTP/2: 1 in 1,000; TLS records: as many"}
	// SamplesPerExchange is how many samples an exchange must last to be counted, and WatchedFlat
	// the share of samples that must be near the level of a program's window.
	SamplesPerExchange = &Number{"SamplesPerExchange", 1.3, "samples",
		"below one they are missed; watch bank: exchanges of 85 ms at 50 ms"}
	WatchedFlat = &Number{"WatchedFlat", 0.6, "ratio", "watch bank: SSH on a busy host"}
	// UnscaledReported is the outstanding data from which the missing window scale appears in the evidence.
	UnscaledReported = &Number{"UnscaledReported", 40_000, "bytes",
		"two thirds of what 16 bits hold"}
	// LittleQueue is how many times the empty path's round trip bytes must have been on their
	// way for a queue where no round trip was timed: a repair alone makes it up to 2.
	LittleQueue = &Number{"LittleQueue", 3.0, "ratio",
		"Little's law; RFC 6675: at most a window more than is acknowledged"}
	// OpenTrips is after how many round trips a slow start is over on nearly every path.
	OpenTrips = &Number{"OpenTrips", 10, "round trips",
		"ten segments (RFC 6928) doubled so often are 15 MB"}
	// OneWay is the share of acknowledgements among segments below which a direction's are
	// not in the capture.
	OneWay = &Number{"OneWay", 0.005, "ratio",
		"receivers acknowledge at least every 64th segment, offloads included"}
	OneWaySegments = &Number{"OneWaySegments", 20, "segments",
		"two initial windows of ten (RFC 6928)"}
	// PushedIdle is the share of the idle time that must follow the end of a write, and
	// BackingOff the share of pauses that double, for and against a program's pauses.
	PushedIdle = &Number{"PushedIdle", 0.5, "ratio", "a majority"}
	BackingOff = &Number{"BackingOff", 0.25, "ratio", "RFC 6298, 5.5"}
	// RepairsMatter is the share of the time in repairs from which the rate that losses allow does not matter.
	RepairsMatter = &Number{"RepairsMatter", 0.3, "ratio", "definition"}
	// LossTimesOut is the loss from which timeouts hold a sender more than its window does.
	LossTimesOut = &Number{"LossTimesOut", 0.02, "ratio",
		"Padhye et al. 1998: Mathis' model fits below"}
	// AlignedSegments of each way, seen by both taps, are needed to align two captures. QueueMostly is the quantile of
	// the segments' queueing delays that counts as the longest queue.
	AlignedSegments = &Number{"AlignedSegments", 8, "segments", "not recorded"}
	QueueMostly     = &Number{"QueueMostly", 0.95, "ratio", "one in twenty segments met a longer one"}
)

// Captures: senders and receivers.
var (
	// MinRTO is the least retransmission timeout: an earlier retransmission is no timeout, and a sender that was idle for
	// longer begins with slow start (RFC 5681, 4.1).
	MinRTO = &Number{"MinRTO", float64(200 * time.Millisecond), "time", "RTO_MIN of tcp.h"}
	// InitialSegments is the initial congestion window, which an idle time does not reduce.
	InitialSegments = &Number{"InitialSegments", 10, "segments", "RFC 6928"}
	// DelayedAckLeast is the least time of a delayed-ACK timer.
	DelayedAckLeast = &Number{"DelayedAckLeast", float64(30 * time.Millisecond), "time",
		"TCP_DELACK_MIN of tcp.h is 40 ms, less a tick of 100 Hz"}
	// OneAckSegments are the segments of a block for which a receiver sends two acknowledgements and more as they come.
	OneAckSegments = &Number{"OneAckSegments", 4, "segments",
		"RFC 9293, 3.8.6.3: at least one for every second full-sized segment"}
	// LineMargin is by how much a wait must exceed what a line may take at most that delivered the handshake.
	LineMargin = &Number{"LineMargin", 1.25, "ratio",
		"the handshake took all its time on that line: already more than it can"}
	// A start follows a silence of one part in StartPart of the round trip. It is prompted where a message arrived
	// within one part in PromptPart, or within HostReacts.
	StartPart  = &Number{"StartPart", 8, "parts of a round trip", "periods of 20 ms at 150 ms"}
	PromptPart = &Number{"PromptPart", 16, "parts of a round trip", "half of StartPart"}
	HostReacts = &Number{"HostReacts", float64(1 * time.Millisecond), "time",
		"a timer tick of 1,000 Hz"}
)

// Captures: congestion windows over slices.
var (
	PlateauSlices = &Number{"PlateauSlices", 20, "slices",
		"capture bank: without growth for so long it is a plateau"}
	BlockSlices = &Number{"BlockSlices", 4, "slices",
		"capture bank: away from the sender single ones scatter"}
	// OpeningWindow and OpeningRate are by how much the window and the rate must grow after
	// a third of the time for the window still to open then.
	OpeningWindow = &Number{"OpeningWindow", 1.5, "ratio", "RFC 9406: slow start ended early"}
	OpeningRate   = &Number{"OpeningRate", 1.3, "ratio", "RFC 9406: slow start ended early"}
	// A window rises over RisingBlocks or more if the share of steps up less the share of steps down is at least
	// RisingMostly, it grows by RisingEnough, and it never falls below RisingFallen of its height. At RisingReached it
	// is fully open.
	RisingBlocks  = &Number{"RisingBlocks", 3, "blocks", "capture bank"}
	RisingShort   = &Number{"RisingShort", 6, "slices", "two for each of RisingBlocks"}
	RisingMostly  = &Number{"RisingMostly", 0.5, "ratio", "capture bank"}
	RisingEnough  = &Number{"RisingEnough", 1.04, "ratio", "capture bank"}
	RisingFallen  = &Number{"RisingFallen", 0.85, "ratio", "RFC 9438, 4.6: CUBIC falls to 0.7"}
	RisingReached = &Number{"RisingReached", 0.98, "ratio", "capture bank"}
)

// Captures: the predicted effect of a fix.
var (
	// PaceReached is the share of the bursts' pace that a longer transfer reaches.
	PaceReached = &Number{"PaceReached", 0.6, "ratio", "prediction bank"}
	// WindowSaysNothing is the multiple of the used window above which a window says nothing: it would have grown.
	WindowSaysNothing = &Number{"WindowSaysNothing", 3.0, "ratio", "prediction bank"}
	// CeilingReached and CeilingAbove bound the range around a ceiling that was seen.
	CeilingReached = &Number{"CeilingReached", 0.7, "ratio", "prediction bank"}
	CeilingAbove   = &Number{"CeilingAbove", 1.05, "ratio", "prediction bank"}
	// WindowFullShare is the share of a slice with a full or closed window from which its rate
	// shows how fast the receiver made room.
	WindowFullShare = &Number{"WindowFullShare", 0.1, "ratio", "prediction bank"}
	// Overloaded is by how much more must be sent than came out.
	Overloaded = &Number{"Overloaded", 1.1, "ratio", "definition"}
)
