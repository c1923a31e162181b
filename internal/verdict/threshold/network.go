package threshold

import "time"

// UDP transfers.
var (
	// DatagramLoss is the share of datagrams without which a tenth more would arrive.
	DatagramLoss = &Number{"DatagramLoss", 1 - 1/causeFactor, "ratio", "definition"}
	// DatagramQueue is the median delay above the least one from which a queue is seen.
	DatagramQueue = &Number{"DatagramQueue", float64(2 * time.Millisecond), "time",
		"a busy host delays single datagrams, not half of them"}
	// DatagramBusy is the share of a core from which a thread does nothing else.
	DatagramBusy = &Number{"DatagramBusy", 0.9, "ratio", "the sampler's own error is a few percent"}
)

// Queues and the rate of a full link.
var (
	// StandingQueue is by how much more than the empty path's the round trip must stay for
	// the difference to be a queue.
	StandingQueue = &Number{"StandingQueue", 0.1, "ratio",
		"attribution bank, full link with shallow queue"}
	// RTTJitterRatio is the deviation of the round trips, as a share of what they wait, from which
	// a window that is full all the time does not wait in a queue of its own: that is as long
	// as the window is larger than the path.
	RTTJitterRatio = &Number{"RTTJitterRatio", 0.15, "ratio",
		"watch bank: full link 0.00, slow reader 0.07, path with jitter 0.24"}
	// QueueDrained is the share of the time without a queue from which a link was not full whose rate went with it.
	QueueDrained = &Number{"QueueDrained", 0.4, "ratio",
		"lab, 20 Mbit/s × 40 ms × 0.1 % loss: 0.75 of 5 s"}
	// LongQueue is a queue that half fills the path again, BeyondBursts one that bursts of
	// less than a BDP cannot make: they find the link idle, and their last segment waits a
	// round trip at most.
	LongQueue    = &Number{"LongQueue", 0.5, "ratio", "attribution bank, full link with deep queue"}
	BeyondBursts = &Number{"BeyondBursts", 1.2, "ratio", "arithmetic, and a fifth"}
	// MostlyQueued is the share of samples from which a queue is hardly ever gone.
	MostlyQueued = &Number{"MostlyQueued", 0.65, "ratio", "attribution bank, loss under BBR"}
	// FlatRate is the share of the best lasting rate from which the mean shows that the link was kept full: loss then
	// costs less than a tenth.
	FlatRate = &Number{"FlatRate", 0.9, "ratio", "definition"}
	// ClearlyFlat and ClearlyUneven lie as far from FlatRate as the best lasting rate is uncertain.
	ClearlyFlat = &Number{"ClearlyFlat", 0.94, "ratio",
		"attribution bank: scatter of the best lasting rate"}
	ClearlyUneven = &Number{"ClearlyUneven", 0.82, "ratio",
		"attribution bank: scatter of the best lasting rate"}
	// StillGrowing is the same share from which nothing lasted.
	StillGrowing = &Number{"StillGrowing", 1.25, "ratio", "attribution bank, short transfer"}
	// EvenRate is the mean rate's share of the best within round trips from which data
	// arrives without a break.
	EvenRate = &Number{"EvenRate", 0.8, "ratio",
		"attribution bank, small send buffer on long paths"}
	// Unsteady and VeryUnsteady are the shares of the best lasting rate that will do with a
	// long queue, and where the rate is even within round trips.
	Unsteady     = &Number{"Unsteady", 0.7, "ratio", "attribution bank on a busy host"}
	VeryUnsteady = &Number{"VeryUnsteady", 0.6, "ratio", "attribution bank on a busy host"}
	// EvenSegments is how many segments of each connection a stretch must hold on average
	// to judge evenness by it, EvenStretches how many stretches there must be, and
	// EvenBest which of them is the best. ByChance is how many segments may have come in one
	// stretch instead of the next.
	EvenSegments = &Number{"EvenSegments", 16, "segments",
		"attribution bank, small send buffer on long paths"}
	EvenStretches = &Number{"EvenStretches", 16, "stretches", "the best tenth is one and a half"}
	EvenBest      = &Number{"EvenBest", 0.9, "ratio", "the best tenth"}
	ByChance      = &Number{"ByChance", 3, "segments",
		"two of a delayed acknowledgement, and one at an edge"}
	// VariationSpan is by how much more than half a round trip a stretch may last in which arrivals are counted.
	VariationSpan = &Number{"VariationSpan", 1.3, "ratio",
		"a fifth of the samples of 10 ms on a path of 60 ms"}
	// SerialisationSeen and MinSerialisation are what the segments of one acknowledgement must take of the least
	// round trip, and at all, for it to be seen, and MaxHeadroom is how much faster a link is said to be.
	SerialisationSeen = &Number{"SerialisationSeen", 0.03, "ratio",
		"smoothed round trips scatter by less"}
	MinSerialisation = &Number{"MinSerialisation", float64(500 * time.Microsecond), "time",
		"an idle host's own scatter: 0.1 to 0.3 ms"}
	MaxHeadroom = &Number{"MaxHeadroom", 10.0, "ratio", "beyond, the hosts' own time counts"}
	// LeastWaits is the share of the round trips that show how long the segments themselves take.
	LeastWaits = &Number{"LeastWaits", 0.2, "ratio",
		"windows of 0.5 to 0.9 BDPs, busy host: a tenth below arithmetic; the mean: a half"}
	// SmoothedAfter is how many segments arrive until the smoothed round trip shows a queue and no longer the handshake.
	SmoothedAfter = &Number{"SmoothedAfter", 24, "segments",
		"RFC 6298: an eighth of each round trip; (7/8)^24 = 4 %"}
	// LinkFree is how many times what comes the link must give for it not to be full, and
	// LinkClearlyFree the same with certainty.
	LinkFree = &Number{"LinkFree", 1.1, "ratio",
		"definition; full links 0.92 and less, windows of 0.8 BDPs and less 1.1 and more"}
	LinkClearlyFree = &Number{"LinkClearlyFree", 1.2, "ratio", "definition, and as much again"}
	// VariationOfGaps is the scatter of what arrives in half a round trip from which there are breaks.
	VariationOfGaps = &Number{"VariationOfGaps", 0.2, "ratio",
		"arithmetic: a window that the link sends in 0.65 of the time; full links: 0.1 and less"}
)

// Loss.
var (
	// Losing is the share of what was sent that is retransmitted from which loss is no
	// accident. By the square-root law (Mathis et al. 1997) this share still allows 54
	// segments in flight, 1 Mbit/s over 600 ms.
	Losing = &Number{"Losing", 0.0005, "ratio",
		"attribution bank, loss under cubic; captures of loss-1pc"}
	// HeavyLoss is the share that a short queue does not lose even to BBR.
	HeavyLoss = &Number{"HeavyLoss", 0.1, "ratio",
		"BBRv1 (Cardwell et al. 2016) ignores loss up to a fifth"}
	// FewInFlight is the window below which halving leaves too few segments for a fast retransmission.
	FewInFlight = &Number{"FewInFlight", 8.0, "segments",
		"RFC 5681, 3.2: three duplicate acknowledgements"}
	// SpuriousRatio is the share of retransmitted segments with a DSACK from which reordering explains the apparent loss.
	// The DSACKs of the last ones are still missing. ReorderedSegments is the least number of reordered segments.
	SpuriousRatio = &Number{"SpuriousRatio", 0.5, "ratio", "definition: most of them"}
	// NeedlessRatio is the same without reordering from which nothing was lost.
	NeedlessRatio     = &Number{"NeedlessRatio", 0.9, "ratio", "lab, probes of late acknowledgements: 0.98 to 1"}
	ReorderedSegments = &Number{"ReorderedSegments", 3, "segments",
		"RFC 5681, 3.2: fewer than three duplicates are no sign of loss"}
	// QueueBeforeLoss is how many packets at least a link queues before it loses,
	// PacketBytes the size of one.
	QueueBeforeLoss = &Number{"QueueBeforeLoss", 5, "packets",
		"the lab's least queue is 10; routers hold 64 and more"}
	PacketBytes = &Number{"PacketBytes", 1500, "bytes", "RFC 894"}
	// QueueFormed is the share of them that the mean round trip must exceed the least by.
	QueueFormed = &Number{"QueueFormed", 0.4, "ratio", "a sawtooth's mean is half of its height"}
	// QueueResolvable is the share of the round trip that they must take to be seen in it.
	QueueResolvable = &Number{"QueueResolvable", 0.05, "ratio",
		"attribution bank: scatter of smoothed round trips"}
	// FirstBurst is by how much the peak must exceed all later rates for a policer's
	// bucket to have been full at first.
	FirstBurst = &Number{"FirstBurst", 1.3, "ratio",
		"attribution bank, policer; Flach et al. 2016, 3"}
	// DeliveryBurst is the same for the kernel's delivery rates, which count within a round trip.
	DeliveryBurst = &Number{"DeliveryBurst", 1.15, "ratio",
		"lab: policers 1.3 to 5; half of FirstBurst's excess"}
	// PolicedSteady is the share of the best later rate that the mean must reach.
	PolicedSteady = &Number{"PolicedSteady", 0.8, "ratio",
		"attribution bank: policers leave 0.86 and more, queues of ten packets 0.78"}
	// CubicDecrease is the share of its rate that CUBIC keeps after a loss.
	CubicDecrease = &Number{"CubicDecrease", 0.7, "ratio", "RFC 9438, 4.6: β"}
	// PolicedLoss is the share of retransmitted bytes, without a queue, from which a policer is looked for, and
	// PacedClean the largest share that a run paced below its rate retransmits.
	PolicedLoss = &Number{"PolicedLoss", 0.02, "ratio",
		"four recordings of policers: 0.034 to 0.22"}
	PacedClean = &Number{"PacedClean", 0.01, "ratio",
		"half of PolicedLoss: pacing takes most of the losses away"}
	// PolicedTime is the minimum time after slow start in which a rate can prove steady: cubic takes
	// ∛(0.3 W ∕ 0.4) s to grow back after a loss at W segments.
	PolicedTime = &Number{"PolicedTime", float64(3 * time.Second), "time",
		"RFC 9438, 4.1: 2.5 s at 20 segments, 4.2 s at 100"}
	// LossInBursts is the minimum ratio of variance to mean of the losses in a round, over at least
	// DispersionRounds, at which losses come in bursts.
	LossInBursts = &Number{"LossInBursts", 2.0, "ratio",
		"Poisson has 1; lab: 0.75 to 1.5 at random, 2.8 to 280 behind policers"}
	DispersionRounds = &Number{"DispersionRounds", 12.0, "rounds",
		"the estimate scatters by √(2/n): 0.4"}
	// QueueOfLost is the largest queue before losses, as a share of the time of the segments lost at once, that no link
	// explains. PolicedLosses is the least number of such losses.
	QueueOfLost = &Number{"QueueOfLost", 0.1, "ratio",
		"lab: policers 0.00 to 0.07, queues of 6 to 64 packets 0.2 to 1.4"}
	PolicedLosses = &Number{"PolicedLosses", 2.0, "events", "one may be an accident"}
	// PolicedSpread is the largest ratio of the windows at which one rate drops.
	PolicedSpread = &Number{"PolicedSpread", 1.15, "ratio",
		"lab: 7 policers 1.00 to 1.08, bursts at queues of 30 packets 1.18 to 1.7"}
	// SettledTrips is the time after the first losses end from which a delivery rate is a later one.
	SettledTrips = &Number{"SettledTrips", 10, "round trips",
		"recovery in congestion avoidance takes one or two"}
	// SpanOfArrivals is the time over which a receiver measures a rate, and StartSpans the number of first spans that
	// belong to slow start. SmallPacketQueue is the growth of the RTT of its own small packets from which a queue is in
	// the path.
	SpanOfArrivals = &Number{"SpanOfArrivals", float64(200 * time.Millisecond), "time",
		"five samples of 40 ms"}
	StartSpans = &Number{"StartSpans", 5, "spans",
		"a second: slow start reaches 1 Gbit/s over 80 ms"}
	SmallPacketQueue = &Number{"SmallPacketQueue", float64(3 * time.Millisecond), "time",
		"a host's own scatter: smoothed round trips on loopback, below 2 ms"}
	// Fewer than FewProbes may all be of a program that runs late. FastProbes is the share of the probes under load that
	// may take less than a standing queue makes them take.
	FewProbes  = &Number{"FewProbes", 5, "probes", "one each 200 ms: a second"}
	FastProbes = &Number{"FastProbes", 0.25, "ratio",
		"CUBIC leaves a queue of half a BDP empty for less of the time"}
	// LossExplains is the share of what Reno would reach with a path's losses that must have
	// arrived for them to be what limits: with any other sender it is more.
	LossExplains = &Number{"LossExplains", 0.5, "ratio",
		"RFC 9438, 4.3: CUBIC is no slower than Reno"}
	// ArrivesUnevenly is the deviation of arrivals' rates, as a share of their mean, from which a
	// late device feeds them and no link, over SpanOfArrivals or EvenRoundTrips.
	ArrivesUnevenly = &Number{"ArrivesUnevenly", 0.35, "ratio",
		"lab: full lines up to 0.23, browsers with a tenth of a core 0.48 to 0.91"}
	EvenRoundTrips = &Number{"EvenRoundTrips", 4, "round trips",
		"a congestion window's saw-tooth and BBR's probes even out"}
	// BlackHoleTimeouts in a row with nothing acknowledged are a path that swallows.
	BlackHoleTimeouts = &Number{"BlackHoleTimeouts", 2, "timeouts",
		"RFC 8899, 4.3: more than one probe; attribution bank, MTU black hole"}
)

// Several connections compared with one.
var (
	// StreamShare is the share of a single connection's rate that each of several must carry for a cap per connection.
	StreamShare = &Number{"StreamShare", 0.8, "ratio",
		"as PolicedSteady: connections behind a cap do not share, those on a link do"}
	// SameRTT and SameRTTNoise are how much the shortest round trip may differ between runs over the same path.
	SameRTT      = &Number{"SameRTT", 1.1, "ratio", "as StandingQueue"}
	SameRTTNoise = &Number{"SameRTTNoise", float64(time.Millisecond), "time",
		"RTT noise of an idle host: 0.1 to 0.3 ms"}
)

// Acknowledgements on their way back. Of what the round trip had waited, they waited at
// least AckQueue where they are what limits, and at most AckQueueHardly where data surely
// is.
var (
	AckQueue       = &Number{"AckQueue", 0.7, "ratio", "attribution bank, starved acknowledgements"}
	AckQueueHardly = &Number{"AckQueueHardly", 0.35, "ratio", "half of AckQueue"}
	AckLags        = &Number{"AckLags", 10, "samples", "a mean of fewer scatters by a third"}
	AckLagResolved = &Number{"AckLagResolved", float64(20 * time.Millisecond), "time",
		"two samples of 10 ms"}
	// Seen by the sender alone: the rate of acknowledgements scatters by AcksSteady at the most and by
	// AcksSteadier of what the rate of the data does, which is DataVaries at the least, over as many
	// spans as SteadySpans.
	AcksSteady = &Number{"AcksSteady", 0.1, "ratio",
		"lab, line back of 130 kbit/s: 0.04; a full line: 0.3 and more"}
	AcksSteadier = &Number{"AcksSteadier", 0.5, "ratio",
		"lab: 0.3; acknowledgements of each second segment: 1"}
	DataVaries = &Number{"DataVaries", 0.1, "ratio",
		"lab: 0.13 where they acknowledge more or less; full links with busy loops: 0.06"}
	SteadySpans = &Number{"SteadySpans", 8, "spans", "a deviation scatters by a quarter"}
	AckLagGap   = &Number{"AckLagGap", 2, "sampling intervals",
		"one sample left out: the state between is not known"}
)

// The sending and the receiving host.
var (
	// SaturatedThread is the share of wall time from which a data thread has no more to give.
	SaturatedThread = &Number{"SaturatedThread", 0.9, "ratio", "definition"}
	// SaturatedHost is the share of a host's processors from which nothing more is to be had.
	SaturatedHost = &Number{"SaturatedHost", 0.9, "ratio", "definition"}
	// RunDelay is the share of time without a core, and with nothing left to send, from
	// which it counts: an ordinary host's other programs take less.
	RunDelay = &Number{"RunDelay", 0.1, "ratio", "definition"}
	// StarvedHost is the same share from which what was measured is mostly the host's doing.
	StarvedHost = &Number{"StarvedHost", 0.5, "ratio", "a majority of the time"}
	// StarvedDevice is the share of the time in which a browser was to run and did not, from which
	// data that comes unevenly is its device's doing.
	StarvedDevice = &Number{"StarvedDevice", 0.25, "ratio",
		"lab, browsers with a tenth of a core: 0.50 and more"}
	// ClockStep is the clock step of a host from which it appears in the evidence, and ClockDrift the relative drift
	// between the ends' clocks from which it does.
	ClockStep = &Number{"ClockStep", float64(20 * time.Millisecond), "time",
		"Windows' clocks tick 64 times a second"}
	ClockDrift = &Number{"ClockDrift", 0.001, "ratio",
		"adjtimex slews by 500 ppm at most, quartzes are off by 100"}
	// MostlyWaiting is the share of a round in which a program that waits for data, or
	// pauses, does mostly that.
	MostlyWaiting = &Number{"MostlyWaiting", 0.5, "ratio", "a majority"}
	// PacedNear is how far the pacing rate may lie above the rate for pacing to limit it.
	PacedNear = &Number{"PacedNear", 1.1, "ratio", "definition"}
	// PacedFaster is how far it must lie above for pacing to leave the gaps between windows.
	PacedFaster = &Number{"PacedFaster", 2.0, "ratio",
		"tcp_bbr.c: 2.89 in its startup; lab: at 1.4 a window of half a BDP arrives without a gap"}
	// OpenWindow and OpenSteadyWindow are the shares of a window, and of a congestion
	// window that did not move, below which what is in flight leaves room.
	OpenWindow = &Number{"OpenWindow", 0.8, "ratio",
		"attribution bank, local shaper; tcp_is_cwnd_limited: half in slow start"}
	OpenSteadyWindow = &Number{"OpenSteadyWindow", 0.93, "ratio", "attribution bank, local shaper"}
	// Deferred is the share of what is in flight up to which data may wait unsent because the
	// sender gathers it into larger segments while its buffer is full.
	Deferred = &Number{"Deferred", 0.1, "ratio",
		"tcp_tso_should_defer; 148 kB in flight and at most 12 kB unsent, no queue"}
	// UnsentOften is the share of time with data unsent and room in both windows from
	// which, without loss, it is so between the samples too.
	UnsentOften = &Number{"UnsentOften", 0.3, "ratio", "attribution bank, local shaper"}
	// BBRProbing is by how much BBR's pacing rate exceeds the rate while it probes.
	BBRProbing = &Number{"BBRProbing", 1.12, "ratio",
		"tcp_bbr.c: bbr_pacing_gain probes by 5/4, half of it"}
)

// Two ways to one far end.
var (
	// CauseFactor is the factor from which a cause is one.
	CauseFactor = &Number{"CauseFactor", causeFactor, "ratio", "definition"}
	// LimiterCounts is the share of transfers that must show a limiter for it to count.
	LimiterCounts = &Number{"LimiterCounts", 1.0 / 3, "ratio", "one of three rounds"}
)

// Limits within which a verdict agrees with its own figures.
var (
	// CarriedMax is the largest ratio of a full link's volume to the bytes that were carried.
	CarriedMax = &Number{"CarriedMax", 1.3, "ratio",
		"arithmetic: bytes are conserved; a rate that lasted is up to a quarter above the mean"}
	// WindowMax and WindowMin bound the rate that a limiting window allows over the min RTT. It is at most WindowMax
	// times the measured rate, and not below it but for the scatter of the RTT.
	WindowMax = &Number{"WindowMax", 1.5, "ratio", "attribution bank, windows on paths with jitter"}
	WindowMin = &Number{"WindowMin", 1.1, "ratio",
		"conservation of packets: a window each round trip is the most"}
	// IdleTolerance is by how much idle time and the network's time together may exceed the total.
	IdleTolerance = &Number{"IdleTolerance", 0.05, "ratio", "the clocks' jiffies of 10 ms"}
	// RTTScatter is by how much the mean round trip may lie below the least one.
	RTTScatter = &Number{"RTTScatter", 1.01, "ratio",
		"smoothed round trips are rounded down to microseconds, eighths of them"}
	// SlowStartTrips is how many round trips one slow start takes at the most.
	SlowStartTrips = &Number{"SlowStartTrips", 60, "round trips",
		"doubling reaches 1 TiB from a segment in 30; HyStart++ takes as many again"}
	// FiguresAgree is how far a figure of a report may exceed a bound that its other figures set.
	FiguresAgree = &Number{"FiguresAgree", 1.05, "ratio", "definition"}
	// QueuedMax is how many times its granted size a send buffer contains at most.
	QueuedMax = &Number{"QueuedMax", 2.0, "ratio",
		"Linux grants twice what is asked for, and accepts a super-segment more"}
)
