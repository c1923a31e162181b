package rfc6349

// Reasons why a test or a frame size did not run.
const (
	Refused         Code = "refused" // by the peer, with the Cause
	BudgetSpent     Code = "budget-spent"
	OneWayAtATime   Code = "one-way-at-a-time"
	NoUDP           Code = "no-udp"
	UDPFailed       Code = "udp-failed"
	FrameTooSmall   Code = "frame-too-small"
	FrameExceedsMTU Code = "frame-exceeds-mtu"
)

// Methods by which the path and its bottleneck were measured.
const (
	MTUProbed      Code = "mtu-probed"
	MTUOfKernel    Code = "mtu-of-kernel"
	ByUDP          Code = "udp"
	ByUDPUnsettled Code = "udp-unsettled"
	ByTCP          Code = "tcp"
	ByKernel       Code = "kernel" // TCP's own round trips
	ByEcho         Code = "echo"
	EchoAbove      Code = "echo-above" // the kernel saw a shorter round trip than all echoes
	Assumed        Code = "assumed"
)

// Reasons of the verdicts on criteria and frame sizes.
const (
	NotMeasured           Code = "not-measured"
	BottleneckNotMeasured Code = "bottleneck-not-measured"
	UDPTreatedWorse       Code = "udp-treated-worse"
	NoEndFound            Code = "no-end-found"
	LowerBoundOnly        Code = "lower-bound-only"
	LineTooNarrow         Code = "line-too-narrow"
	NotReached            Code = "not-reached"
	DidNotRun             Code = "did-not-run"
	RateInInterval        Code = "interval-holds-rate"
	LineNarrower          Code = "line-narrower"
	LimitedByEnd          Code = "limited-by-end"
	LimiterUnknown        Code = "limiter-unknown"
	TooFewRuns            Code = "too-few-runs"
	OtherNotMeasured      Code = "other-not-measured"
	AloneTooSlow          Code = "alone-too-slow"
	AcksDelayed           Code = "acks-delayed"
	SharedMedium          Code = "shared-medium"
	SharingUndecided      Code = "sharing-undecided"
	Limited               Code = "limited"
	LineFull              Code = "line-full"
	LossWithoutQueue      Code = "loss-without-queue"
	QueueWithoutLoss      Code = "queue-without-loss"
	QueueOverflow         Code = "queue-overflow"
	EveryRun              Code = "every-run"
	FiguresContradict     Code = "figures-contradict" // package guard
	SomeRuns              Code = "some-runs"
	FrameRateMet          Code = "frame-rate-met"
	FrameSenderLimit      Code = "frame-sender-limit"
	FrameSearchUnfinished Code = "frame-search-unfinished"
	FrameLoss             Code = "frame-loss"
	FrameLimitUnknown     Code = "frame-limit-unknown"
)

// Warnings.
const (
	UDPEndedEarly      Code = "udp-ended-early"
	NoRTT              Code = "no-rtt"
	HandshakeRewritten Code = "handshake-rewritten"
	SegmentsVanish     Code = "segments-vanish"
	NarrowerMTU        Code = "narrower-mtu"
)

// Steps of the test.
const (
	FirstTransfer     Code = "first-transfer"
	ProbingPath       Code = "probing-path"
	OfferingUDP       Code = "offering-udp"
	OfferingUDPLonger Code = "offering-udp-longer"
	FillingByTCP      Code = "filling-by-tcp"
	RunningAutomatic  Code = "running-automatic"
	RunningWindow     Code = "running-window"
	RunningSingle     Code = "running-single"
	RunningSeveral    Code = "running-several"
	RunningBoth       Code = "running-both"
	RepeatingRun      Code = "repeating-run"
	RepeatingBoth     Code = "repeating-both"
	OfferingFrames    Code = "offering-frames"
)
