package plan

// Code names the statement of a warning or a note. Package render/text has the sentences.
type Code string

// Statement is a code with the values of its sentence in their order.
type Statement struct {
	Code Code
	Args []any
}

// Warnings.
const (
	LargestMacOSBuffer    Code = "largest-macos-buffer"
	MacOSLimitByMemory    Code = "macos-limit-by-memory"
	BeyondSystem          Code = "beyond-system"
	NotThreeNumbers       Code = "not-three-numbers"
	FlowCapped            Code = "flow-capped"
	BeyondLargestWindow   Code = "beyond-largest-window"
	RateOrDelay           Code = "rate-or-delay"
	LeastWindowDelays     Code = "least-window-delays"
	DelayUnbounded        Code = "delay-unbounded"
	MemoryTooSmall        Code = "memory-too-small"
	AutotuningEnds        Code = "autotuning-ends"
	NoDynamicSendBuffer   Code = "no-dynamic-send-buffer"
	GroupPolicyForces     Code = "group-policy-forces"
	SendWindowTakesPool   Code = "send-window-takes-pool"
	NoWindowScaling       Code = "no-window-scaling"
	CorrectedDriver       Code = "corrected-driver"
	LongRoundTrip         Code = "long-round-trip"
	LongQueue             Code = "long-queue"
	MemoryShort           Code = "memory-short"
	MemoryLowers          Code = "memory-lowers"
	MemoryBounds          Code = "memory-bounds"
	belowPath             Code = "-below-path" // ends MemoryLowers and MemoryBounds where the path needs more
	MemoryLowersBelowPath      = MemoryLowers + belowPath
	MemoryBoundsBelowPath      = MemoryBounds + belowPath
)

// Notes.
const (
	LimitSuffices                Code = "limit-suffices"
	ScaleFactorFits              Code = "scale-factor-fits"
	CountsBookkeeping            Code = "counts-bookkeeping"
	NothingSetsBuffers           Code = "nothing-sets-buffers"
	BeforeSolaris11              Code = "before-solaris-11"
	OneSizeForAll                Code = "one-size-for-all"
	InterfaceValuesWin           Code = "interface-values-win"
	SaveRegistryKeys             Code = "save-registry-keys"
	MaximumSuffices              Code = "maximum-suffices"
	BuffersTwiceWindow           Code = "buffers-twice-window"
	TimestampsInSegments         Code = "timestamps-in-segments"
	ProgramBuffersBounded        Code = "program-buffers-bounded"
	MaximumIsCeiling             Code = "maximum-is-ceiling"
	RouteOnlyLowers              Code = "route-only-lowers"
	PresentWindowLarger          Code = "present-window-larger"
	LeastWindowForAll            Code = "least-window-for-all"
	InterfaceWindows             Code = "interface-windows"
	CeilingsFollowLargest        Code = "ceilings-follow-largest"
	RouteWindows                 Code = "route-windows"
	AutotuningSuffices           Code = "autotuning-suffices"
	DefaultsSuffice              Code = "defaults-suffice"
	TemplatesOfTarget            Code = "templates-of-target"
	RegistryIgnored              Code = "registry-ignored"
	RestrictedLowers             Code = "restricted-lowers"
	ReceiveBufferStopsAutotuning Code = "receive-buffer-stops-autotuning"
	InitialWindowIsDefault       Code = "initial-window-is-default"
	GoUnsupported                Code = "go-unsupported"
	ScalingOptions               Code = "scaling-options"
	ReceiveWindowSuffices        Code = "receive-window-suffices"
	SendWindowSuffices           Code = "send-window-suffices"
	InterfaceWindowWins          Code = "interface-window-wins"
	OnlyWritesFile               Code = "only-writes-file"
	OrInProgram                  Code = "or-in-program"
	WindowIsDword                Code = "window-is-dword"
	MisspeltName                 Code = "misspelt-name"
	SendBufferOfProgram          Code = "send-buffer-of-program"
	OneWindowForAll              Code = "one-window-for-all"
)
