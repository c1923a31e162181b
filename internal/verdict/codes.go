package verdict

// Code names an observation. A code and its values never change their meaning, because programs read stored documents
// later. Package render/text has the sentence of each code.
type Code string

// Observations on the samples of a transfer's ends. time_ratio is the share of the time
// that the observation speaks of.
const (
	// NothingToSend: the program had nothing queued. time_ratio, idle_s, total_s; paused_s and
	// awaited_s where the program says so itself; outstanding_bytes where that was less than a
	// segment.
	NothingToSend Code = "nothing-to-send"
	// SendBufferFull: everything the buffer takes was in flight. outstanding_bytes, rtt_s,
	// allows_bps, blocked_ratio, granted_bytes; rule_bytes where a buffering rule of the
	// sender's own was in force; link_least_bps as with ReceiveWindowFull.
	SendBufferFull Code = "send-buffer-full"
	// SendBufferAlsoFull and ReceiveWindowAlsoFull: full, and yet not what limits.
	// full_ratio, window_bytes, allows_bps over the empty path.
	SendBufferAlsoFull    Code = "send-buffer-also-full"
	ReceiveWindowAlsoFull Code = "receive-window-also-full"
	// ReceiveWindowFull: time_ratio, window_bytes, rtt_s, allows_bps; link_least_bps where the link is seen to
	// give more: about what it gives at the least (a few per cent too much where six segments are in flight).
	ReceiveWindowFull Code = "receive-window-full"
	// Unread: the receiving program left data unread. time_ratio; unread_bytes and paused_s
	// where the sender was seen as well.
	Unread Code = "unread-data"
	// WindowCloses: the window that the sender saw kept closing. time_ratio.
	WindowCloses Code = "receive-window-closes"
	// WindowEachRoundTrip: a whole window came every round trip, seen by the receiver
	// alone. time_ratio, window_bytes, rtt_s, allows_bps.
	WindowEachRoundTrip Code = "receive-window-each-round-trip"
	// StillInSlowStart: time_ratio, round_trips, rtt_s.
	StillInSlowStart Code = "slow-start"
	// NagleDelayedSegment: less than a segment waited for an acknowledgement. time_ratio.
	NagleDelayedSegment Code = "nagle-delayed-ack"
	// WindowAwaitsAckTimer: the receive window has room for one segment, and the receiver's delayed-ACK timer delays its
	// acknowledgement. time_ratio, window_bytes, rtt_s (mean), rtt_base_s (least). In a capture the timer delays the only
	// acknowledgement of a full window of any size: time_ratio, window_bytes, waits, waited_s, timer_s (mean).
	WindowAwaitsAckTimer Code = "window-awaits-ack-timer"
	// TimeoutsOnly: nothing was acknowledged while segments timed out. time_ratio.
	TimeoutsOnly Code = "nothing-gets-through"
	// Paced: data waited with room in both windows at the pacing rate. time_ratio;
	// pacing_bps where it was asked for.
	Paced Code = "paced"
	// QueuedLocally: data waited unsent with room in the congestion window. time_ratio,
	// cwnd_bytes, in_flight_bytes, retransmitted_ratio.
	QueuedLocally Code = "local-queue"
	// SenderCPU: the writer did not wait for the network or a buffer. running_ratio; busiest_thread_ratio; uncopied
	// (1) if the payload was passed by reference.
	SenderCPU Code = "sender-cpu"
	// SenderRunqueueWait: the writer was ready without a core. starved_ratio.
	SenderRunqueueWait Code = "sender-run-delay"
	// ReceiverCPU: the reader's thread ran while data waited. busiest_thread_ratio.
	ReceiverCPU Code = "receiver-cpu"
	// ReceiverRunqueueWait: the reader was ready without a core while data waited.
	// starved_ratio, absent where the far end did not say.
	ReceiverRunqueueWait Code = "receiver-run-delay"

	// The network as a whole. Each has steady_bps (mean once started), best_bps (the best
	// that lasted), retransmitted_ratio, rtt_s (mean) and rtt_base_s (the empty path's).
	LossWithoutQueue Code = "loss-without-queue"
	PolicedRate      Code = "policed-rate" // also peak_bps where it began with a burst
	LossBelowBest    Code = "loss-below-best"
	// CwndAvoids: without a loss, congestion avoidance opened the congestion window. Also ssthresh_bytes.
	CwndAvoids Code = "cwnd-avoids"
	// MarksBelowBest: congestion marks (ECN) reduced the congestion window. Also marks (round trips with such reports).
	MarksBelowBest Code = "marks-below-best"
	// SpuriousRetransmissions: most of the retransmitted data had arrived, behind later segments. Also
	// needless_ratio, a share of the retransmitted segments.
	SpuriousRetransmissions Code = "sent-again-needlessly"
	// LossAllTheTime: at the best rate that lasted. Also best_ratio, and even_ratio (the rate's
	// share of the best within round trips) where the link was idle in between.
	LossAllTheTime Code = "loss-all-the-time"
	QueueOfAcks    Code = "ack-queue"
	// SteadyAcks: seen by the sender alone, acknowledgements come at a steadier rate than the data
	// that they acknowledge. Also acks_scatter_ratio and data_scatter_ratio, the standard
	// deviations of either rate as a share of its mean.
	SteadyAcks Code = "steady-acks"
	// QueueEitherWay: seen by the sender alone, a full link, or acknowledgements that queue on their
	// way back: they come steadily, but the data hardly varies either. The same values.
	QueueEitherWay    Code = "queue-either-way"
	FullLink          Code = "full-link"
	FullLinkNoQueue   Code = "full-link-without-queue" // also best_ratio
	CwndOpensToTheEnd Code = "cwnd-opens-to-the-end"   // faster at the end than ever lasted
	CwndOpens         Code = "cwnd-opens"
	CwndFull          Code = "cwnd-full"
	// LossWithoutCPU: loss, or a rate that did not last, while an end had no core most of the time.
	LossWithoutCPU Code = "while-starved"
	NoRate         Code = "no-rate" // too few samples; no values

	// WindowOrLink: the receive window was full, and a queue was in the path. time_ratio,
	// window_bytes, allows_bps over the empty path, steady_bps, rtt_s, rtt_base_s; ack_segments (acknowledged by each
	// acknowledgement), where a program that reads slowly would cause as many.
	WindowOrLink Code = "window-or-link"
	// BetweenClosings: seen by the sender alone, the peer's window was shut for a part of the time, and in between nothing
	// but the congestion window was full. time_ratio, closed_ratio (the time in which it was shut), steady_bps,
	// retransmitted_ratio.
	BetweenClosings Code = "between-closings"
	// SendBufferOrLink: a send buffer of less than the rate needs over the empty path was always full, and the rate
	// was steady with a queue. time_ratio, window_bytes, allows_bps over the empty path, steady_bps, rtt_s, rtt_base_s.
	SendBufferOrLink Code = "send-buffer-or-link"
	// WindowEqualsBDP and SendBufferEqualsBDP: full, and equal to the BDP: data came without a gap that a larger one
	// could fill, and without a queue that a faster link would remove. The same values, and even_ratio: the rate's share
	// of the best within round trips; absent if the few segments in flight show only their own time on the link.
	WindowEqualsBDP     Code = "receive-window-holds-path"
	SendBufferEqualsBDP Code = "send-buffer-holds-path"
	// EqualWindows: the send buffer and the receive window limited equally, so that neither alone limits.
	// time_ratio, window_bytes, outstanding_bytes.
	EqualWindows Code = "windows-alike"
	// FullLinkOnceOpen: the path was full once the congestion window was open.
	// time_ratio, best_bps.
	FullLinkOnceOpen Code = "full-link-once-open"
	// LargerWindowNoFaster: another transfer with a larger window gave no tenth more.
	// larger_window_bytes, larger_ratio (over this one's window), larger_bps.
	LargerWindowNoFaster Code = "larger-window-no-faster"
	// RunsDisagree: of several transfers not all named this limiter. runs, agree.
	RunsDisagree Code = "runs-disagree"
	// KernelSilent: the sender's kernel does not report its limiter. time_ratio.
	KernelSilent Code = "kernel-silent"
	// RunqueueWaited: a data thread was ready without a core for a tenth of the time and more.
	// sender_starved_ratio, receiver_starved_ratio.
	RunqueueWaited Code = "host-was-late"
	// MemoryPressure: the kernel's TCP ran short of memory. sender_times and sender_s,
	// receiver_times and receiver_s; seconds that ended, absent where none did.
	MemoryPressure Code = "memory-pressure"
	// ConcurrentTests: other tests ran at the same far end. tests (their number), beside_s (the time in which at least
	// one ran).
	ConcurrentTests Code = "tests-beside"
	// ClockTrouble: sender_step_s, receiver_step_s: by how much an end's clock was set forward
	// (negative: back); drift_ratio: by what share of the time the far end's clock ran faster
	// than the near one's, at the least (negative: slower). Absent where there was none.
	ClockTrouble Code = "clock-trouble"
	// WatchedFromOutside: the program's clocks and the other end were not seen. window_s,
	// samples.
	WatchedFromOutside Code = "watched-from-outside"
	// SendQueueSeen: how full the send buffer was while all that was written was on its way.
	// queued_bytes (the most), granted_bytes; full_ratio and room_ratio are the shares of
	// those samples in which it was full, or surely had room.
	SendQueueSeen Code = "send-queue-seen"
	// WatchedExchanges and WatchedProgramWindow: as CapturedExchanges and CapturedProgramWindow,
	// by the samples of the sender's socket. With answered_ratio they are by the receiver's samples, and its program had
	// sent last for that share of the time. With came_bps a known program's window arrived in each round trip.
	WatchedExchanges     Code = "watched-exchanges"
	WatchedProgramWindow Code = "watched-program-window"
	// SendQueueSampled: the same at the samples between the two that have the clocks. readings (number of samples),
	// full_ratio, room_ratio.
	SendQueueSampled Code = "send-queue-read"
	// ClocksAlone: two samples of the kernel's cumulative clocks. window_s, idle_ratio, receiver_ratio,
	// send_buffer_ratio; the rest of the time is the network's, undivided.
	ClocksAlone Code = "clocks-alone"
	// SnapshotsAlone: the same by the sender's limiter at each sample, on systems that report no clocks. Also the number
	// of samples in "readings", and no send_buffer_ratio.
	SnapshotsAlone Code = "readings-alone"
	// TooLittleWatched: bytes.
	TooLittleWatched Code = "too-little-watched"
	// KernelFieldsMissing: this kernel does not report some fields. limit_clocks, unsent, receive_window, rate: 1 if
	// missing.
	KernelFieldsMissing Code = "kernel-tells-less"
	// ProgramOrBuffer: all that was written was on its way, and nobody says whether the
	// program wrote too little or its buffer took no more. time_ratio, outstanding_bytes.
	ProgramOrBuffer Code = "program-or-buffer"
	// Arrivals without data from the sender's kernel, with the times in which its program had nothing queued:
	// steady_bps (mean once started), best_bps (the best that lasted), out_of_order_ratio (of the segments), time_ratio
	// (of nothing queued), and of the receiver's own small packets rtt_s (mean) and rtt_base_s (least), absent if not
	// known.
	SenderHadNothing     Code = "sender-had-nothing"
	ArrivesThroughAQueue Code = "arrives-through-a-queue"
	ArrivesWithHoles     Code = "arrives-with-holes"
	ArrivesUnlimited     Code = "arrives-unhindered" // neither loss, nor a queue, nor a full window
	SenderScheduledLate  Code = "sender-ran-late"    // time_ratio: was to run and did not; no queue is in the path
	// SharedLink: with other connections to the same host, the path delivers a steady rate and has a standing queue.
	// connections (of all), steady_bps, rtt_s, rtt_base_s.
	SharedLink Code = "shared-link"
	// PacedLosesNothing: a paced transfer lost next to nothing. paced_bps (at the IP layer), goodput_bps, paced_ratio,
	// retransmitted_ratio (without pacing), queue_s (median round trip above the shortest when losses begin).
	PacedLosesNothing Code = "paced-loses-nothing"
	// PolicerBucket: rate_bps and bucket_bytes of a policer at the IP layer, retransmitted_ratio (median of the runs), and
	// needed_bytes, with which one connection with window_bytes in flight keeps that rate; absent where it is not known.
	PolicerBucket Code = "policer-bucket"
	// StreamsCarryMore: several connections carried a tenth more than one. single_bps, streams, total_bps, fill_streams
	// (as many fill the path), least_ratio (of the slowest of compare_streams, over one alone), rtt_single_s,
	// rtt_several_s.
	StreamsCarryMore Code = "streams-carry-more"
	// SenderIsHere: the sender is on this host as well, and the limiter was measured there.
	SenderIsHere Code = "sender-is-here"
	// SenderUnseen, NotSampled, SampledRarely and NoRoundTrips name missing data.
	SenderUnseen  Code = "sender-unseen"
	NotSampled    Code = "not-sampled"
	SampledRarely Code = "receiver-sampled-rarely"
	NoRoundTrips  Code = "no-round-trips"
)

// Observations on UDP transfers. Each has lost_ratio and arrived_bps; all but NoDatagrams
// have sent_bps and delay_s, the median delay above the least.
const (
	NoDatagrams           Code = "no-datagrams"
	DatagramsAsAsked      Code = "datagrams-as-asked" // also asked_bps
	DatagramsLost         Code = "datagrams-lost"     // their delay is not known
	DatagramsQueueFull    Code = "datagrams-queue-full"
	DatagramsNoQueue      Code = "datagrams-lost-without-queue"
	DatagramsReceiverBusy Code = "datagrams-receiver-busy"
	// DatagramsReceiverOutOfTime: datagrams were lost without a queue, and the receiving host had no processor time left.
	// host_ratio if it reported that.
	DatagramsReceiverOutOfTime Code = "datagrams-receiver-out-of-time"
	DatagramsSenderSlow        Code = "datagrams-sender-busy"
	// DatagramsSenderUnknown: fewer were sent than asked, and the sending host had no processor time left or did not
	// report it. host_ratio if it did.
	DatagramsSenderUnknown Code = "datagrams-sender-not-known"
	DatagramsQueuedLocally Code = "datagrams-held-locally"
)

// Contradictions between a verdict and its own figures. Values are said_FIGURE (of the verdict) and allowed_FIGURE
// (the largest or smallest value that the figures allow).
const (
	// FigureDoesNotFit: the verdict was given up.
	FigureDoesNotFit Code = "figure-does-not-fit"
	// JudgedAgain: the verdict is one without the input that did not fit.
	JudgedAgain Code = "judged-again"
	// FiguresRemoved: figures of the report contradicted others and were removed with their sentences. figures.
	FiguresRemoved Code = "figures-removed"
)

// Observations on captures.
const (
	CapturedTooShort Code = "captured-too-short"
	// CapturedOneDirection: hardly any acknowledgement is in the capture. segments,
	// acknowledgements, bytes, duration_s, retransmitted_segments.
	CapturedOneDirection Code = "captured-one-direction"
	// CapturedIdleOrLoss: silences that a program or a loss before the tap made. time_ratio, idle_s.
	CapturedIdleOrLoss Code = "captured-idle-or-loss"
	// CapturedOutage: data was retransmitted again and again and nothing got through. from_s and to_s of
	// the longest time, from the connection's start; stalled_s in all.
	CapturedOutage Code = "captured-outage"
	// CapturedSilent: the other end sent nothing more. from_s, silent_s.
	CapturedSilent Code = "captured-silent"
	// CapturedAbandoned: the sender stopped retransmitting what was not acknowledged. from_s,
	// abandoned_s, unacknowledged_bytes, time_ratio.
	CapturedAbandoned Code = "captured-abandoned"
	// CapturedTooFewBytes: bytes.
	CapturedTooFewBytes Code = "captured-too-few-bytes"
	// CapturedWindowFull: time_ratio, window_bytes, window_scale, rtt_s, allows_bps;
	// scale_inferred is 1 where the handshake was not captured.
	CapturedWindowFull Code = "captured-window-full"
	// CapturedNoUpdates: the window had closed and opened only in the answer to a probe. time_ratio, window_bytes,
	// openings, waited_s (for them).
	CapturedNoUpdates Code = "captured-no-window-updates"
	// CapturedWindowClosed: time_ratio, window_bytes, zero_windows.
	CapturedWindowClosed Code = "captured-window-closed"
	// CapturedIdle: time_ratio, idle_s.
	CapturedIdle Code = "captured-idle"
	// CapturedStopAndWait: time_ratio.
	CapturedStopAndWait Code = "captured-stop-and-wait"
	// CapturedExchanges: blocks that each waited for a message of the other end. time_ratio,
	// exchanges, block_bytes (mean), exchange_s (mean), rtt_s; in_turn (blocks in flight at a time, if not one);
	// twice_bps, eightfold_bps (the rates with two and eight times as much in each exchange, or as many exchanges at a
	// time, if the pace of the path was seen).
	CapturedExchanges Code = "captured-exchanges"
	// CapturedProgramWindow: time_ratio, program_window_bytes, window_bytes (the receive
	// window), rtt_s, allows_bps; twice_bps and eightfold_bps (the rates with two and
	// eight connections, or two and eight times the window).
	CapturedProgramWindow Code = "captured-program-window"
	// CapturedNagle: time_ratio, held_s.
	CapturedNagle Code = "captured-nagle-delayed-ack"
	// CapturedAckTimer: blocks whose last acknowledgement the receiver's delayed-ACK timer delayed. time_ratio, waited_s,
	// waits, timer_s (mean), block_bytes (mean).
	CapturedAckTimer Code = "captured-ack-timer"
	// CapturedBlackHole: time_ratio, icmp_too_big, router_mtu_bytes.
	CapturedBlackHole Code = "captured-mtu-black-hole"
	// CapturedNoneLarge: at a tap that data reaches, none of the segments that would fill the
	// MSS arrived, though smaller ones did. largest_bytes, mss_bytes, missing_bytes.
	CapturedNoneLarge Code = "captured-none-large"
	// CapturedSlowStart: time_ratio, round_trips, rtt_s.
	CapturedSlowStart Code = "captured-slow-start"
	// CapturedLoss: time_ratio, retransmitted_segments, segments, loss_events, timeouts,
	// rtt_s, rtt_base_s.
	CapturedLoss Code = "captured-loss"
	// CapturedMarks: the receiver reported congestion marks (ECN). time_ratio, marks (round trips with such reports),
	// rtt_s, rtt_base_s.
	CapturedMarks Code = "captured-marks"
	// CapturedFullLink: time_ratio, best_bps (or mean_bps where the best did not last), rtt_s, rtt_base_s, queue (1: in
	// the path), window_allows_bps where the receive window was full as well.
	CapturedFullLink Code = "captured-full-link"
	// CapturedQueueBetween: by two captures, the queueing delay in each direction between the taps.
	// data_queue_s, ack_queue_s (means), matched_segments.
	CapturedQueueBetween Code = "captured-queue-between"
	// CapturedAckQueue: time_ratio, rtt_s, rtt_base_s.
	CapturedAckQueue Code = "captured-ack-queue"
	// CapturedSenderWaits: time_ratio, outstanding_bytes, window_bytes, retransmitted_segments; losing (1) where they
	// limited at other times.
	CapturedSenderWaits Code = "captured-sender-waits"
	// CapturedBlocks: blocks of one size, each released by the acknowledgement of the one before. block_bytes, blocks,
	// block_bps (the rate of the acknowledgements within a block, where the path delivered it more slowly than it was
	// sent).
	CapturedBlocks Code = "captured-blocks"
	// CapturedGaps: data that were not captured, though they were acknowledged or passed over. time_ratio, missing_bytes,
	// missing_ratio.
	CapturedGaps Code = "captured-gaps"
	// CapturedFewGaps: the same where it is too little to matter. missing_bytes.
	CapturedFewGaps Code = "captured-few-gaps"
	// CapturedNoHandshake: the window scale is not known. time_ratio, window_scale_least.
	CapturedNoHandshake Code = "captured-no-handshake"
	// CapturedQueueUnseen: data came evenly at a tap that cannot see a queue. time_ratio, best_bps.
	CapturedQueueUnseen Code = "captured-queue-unseen"
	// CapturedLossOrLink: losses at the path's own pace, without the handshake. time_ratio, best_bps.
	CapturedLossOrLink Code = "captured-loss-or-link"
	// CapturedWaitsSomewhere: a queue of data or of acknowledgements. time_ratio, rtt_base_s.
	CapturedWaitsSomewhere Code = "captured-waits-somewhere"
	// CapturedTimerOrLine: blocks waited for their only acknowledgement, for a delayed ACK's timer or a slow line.
	// time_ratio, waits, wait_s (of each, beyond the empty path's round trip).
	CapturedTimerOrLine Code = "captured-timer-or-line"
	// CapturedNoSign: time_ratio.
	CapturedNoSign Code = "captured-no-sign"
	// CapturedUnscaled: no window scale was agreed on.
	CapturedUnscaled Code = "captured-unscaled"
	// CapturedOversized: all segments longer than the MSS were repeated. mss_bytes, largest_bytes, lost_bytes.
	CapturedOversized Code = "captured-oversized"
	// CapturedIdleRestart: slow start after idle times. restarts, idle_s, rtt_s.
	CapturedIdleRestart Code = "captured-idle-restart"
	// CapturedDamaged: TCP checksums are wrong. damaged_segments, segments.
	CapturedDamaged Code = "captured-damaged"
	// CapturedLostBehind: retransmitted data had passed a tap at the receiver. passed_bytes, retransmitted_bytes.
	CapturedLostBehind Code = "captured-lost-behind"
	// CapturedAvoidance: congestion avoidance without a loss before it. time_ratio, segments_per_round (the growth of the
	// bytes in flight), from_bytes (those at its beginning), rtt_s.
	CapturedAvoidance Code = "captured-congestion-avoidance"
	// CapturedScaleMismatch: the first window after the handshake takes back much of the handshake's.
	// handshake_window_bytes, first_window_bytes, window_scale (as agreed on, 0 where none was), applied_scale where it is
	// the same window by that scale.
	CapturedScaleMismatch Code = "captured-scale-mismatch"
	// CapturedLostSYNs: SYNs or SYN-ACKs were retransmitted before data came. syns, syn_acks (those of them that came
	// after a SYN-ACK), wait_s (from the first to the last), total_s (that and the transfer's time).
	CapturedLostSYNs Code = "captured-lost-syns"
	// CapturedSACKOutside: SACK blocks outside the window. blocks, outside.
	CapturedSACKOutside Code = "captured-sack-outside"
	// CapturedBareSynAck: the SYN-ACK has none of the options that the SYN offered.
	CapturedBareSynAck Code = "captured-bare-syn-ack"
	// CapturedCoarseClock: grain_s, rtt_s.
	CapturedCoarseClock Code = "captured-coarse-clock"
	// CapturedClockSteps: steps.
	CapturedClockSteps Code = "captured-clock-steps"
)
