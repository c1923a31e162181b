package audit

// Code names what a finding states. Codes stay as they are: programs read them in JSON. The sentences are in
// render/text.
type Code string

// Limits of windows and buffers on the stated path. Their last two values are the path and the rate that is left.
const (
	ReceiveMax              Code = "receive-max"
	ReceiveAutotuningOff    Code = "receive-autotuning-off"
	SendMax                 Code = "send-max"
	NoWindowScaling         Code = "no-window-scaling"
	RouteWindow             Code = "route-window"
	RouteCwnd               Code = "route-cwnd"
	AutotuningLevel         Code = "autotuning-level"
	AutotuningLevelByPolicy Code = "autotuning-level-by-policy"
	DynamicSendBufferOff    Code = "dynamic-send-buffer-off"
	MaxWindowSetting        Code = "max-window-setting"
	FixedReceiveWindow      Code = "fixed-receive-window"
	DisputedReceiveWindow   Code = "disputed-receive-window" // its default is disputed
	InterfaceReceiveWindow  Code = "interface-receive-window"
	AFDSendWindow           Code = "afd-send-window"
	AutomaticBufferMax      Code = "automatic-buffer-max"
	SocketBufferMax         Code = "socket-buffer-max"
	AutomaticBufferOff      Code = "automatic-buffer-off"
	ProgramBufferCaps       Code = "program-buffer-caps"
	LinkRate                Code = "link-rate"   // without the rate that is left: it is the link's
	ShaperRate              Code = "shaper-rate" // the same
)

// Settings and memory.
const (
	LargeMinimum            Code = "large-minimum"
	LargeDefault            Code = "large-default"
	ProgramWindowMax        Code = "program-window-max"
	ProgramBuffer           Code = "program-buffer"
	MemoryInPages           Code = "memory-in-pages"
	MemoryForConnections    Code = "memory-for-connections"
	CgroupForConnections    Code = "cgroup-for-connections"
	RouteMTU                Code = "route-mtu"
	BBRWithoutFQ            Code = "bbr-without-fq"
	InertSetting            Code = "inert-setting"
	InertInterfaceSetting   Code = "inert-interface-setting"
	HarmfulSetting          Code = "harmful-setting"
	HarmfulInterfaceSetting Code = "harmful-interface-setting"
	ImpossibleValue         Code = "impossible-value"
	UnknownSetting          Code = "unknown-setting"
	RemovedSetting          Code = "removed-setting"
	HarmfulAtBoot           Code = "harmful-at-boot"
	ImpossibleAtBoot        Code = "impossible-at-boot"
	DiffersAtBoot           Code = "differs-at-boot"
	GroupPolicy             Code = "group-policy"
	UnusedTemplate          Code = "unused-template"
	FilteredTemplate        Code = "filtered-template"
	FiltersUnread           Code = "filters-unread"
	ExperimentalLevel       Code = "experimental-level"
	UnscaledWindow          Code = "unscaled-window"
	UnscaledWindowNT4       Code = "unscaled-window-nt4"
	DisputedScaling         Code = "disputed-scaling"
	IgnoredInterfaceWindow  Code = "ignored-interface-window"
	InterfaceMTUSmall       Code = "interface-mtu-small"
	InterfaceMTULarge       Code = "interface-mtu-large"
)

// Devices and counters.
const (
	ShaperConfigured     Code = "shaper-configured"
	PacketsDamaged       Code = "packets-damaged"
	PacketsMissed        Code = "packets-missed"
	PacketsMissedByRing  Code = "packets-missed-by-ring" // the ring could be larger
	PacketsOverrun       Code = "packets-overrun"
	PacketsUnsent        Code = "packets-unsent"
	PacketsDropped       Code = "packets-dropped"
	PacketsDroppedQueued Code = "packets-dropped-queued"
	Collisions           Code = "collisions"
	HalfDuplex           Code = "half-duplex"
	TSOOff               Code = "tso-off"
	GROOff               Code = "gro-off"
	LinkMTUSmall         Code = "link-mtu-small"
	TransmitQueueShort   Code = "transmit-queue-short"
	WaitedForSendBuffer  Code = "waited-for-send-buffer"
	WaitedForWindow      Code = "waited-for-window"
	MemoryPressure       Code = "memory-pressure"
	ReceiveQueuePruned   Code = "receive-queue-pruned"
	SegmentsPruned       Code = "segments-pruned"
	BacklogDrops         Code = "backlog-drops"
	AcceptQueueOverflows Code = "accept-queue-overflows"
	SYNCookies           Code = "syn-cookies"
	CPUBacklogDrops      Code = "cpu-backlog-drops"
	DatagramsDropped     Code = "datagrams-dropped"
	DatagramsUnsent      Code = "datagrams-unsent"
)

// Containers, other namespaces, and unknown values.
const (
	OtherNamespace       Code = "other-namespace" // its value is a Finding
	NamespaceSettings    Code = "namespace-settings"
	OverlayMTU           Code = "overlay-mtu"
	OverlayUnknown       Code = "overlay-unknown"
	MemoryLimitHidden    Code = "memory-limit-hidden"
	DatagramBufferHidden Code = "datagram-buffer-hidden"
	DatagramBufferSmall  Code = "datagram-buffer-small"
	DatagramBufferOfHost Code = "datagram-buffer-of-host" // small, and only the host can change it
	UnknownSystem        Code = "unknown-system"
	Unread               Code = "unread" // its value is a text of the collector, or a Finding of the next codes
	NotNumbers           Code = "not-numbers"
	// UnknownAutotuningLevel and VersionAbsent are parts of Windows' own texts.
	UnknownAutotuningLevel Code = "unknown-autotuning-level"
	VersionAbsent          Code = "version-absent" // judged as Windows 2000 to Server 2003
)
