// Package advice has the steps against each limiter, in the order in which they are worth trying, as data with sources.
// The sentences are in package render/text.
package advice

import "github.com/fullpipe-net/fullpipe/internal/verdict"

// Action is what a step does, as a code.
type Action string

// Actions that a measured transfer can try by socket options alone.
const (
	LargerWindows  Action = "larger-windows"      // buffers and windows of a BDP and more
	WindowOfBDP    Action = "window-of-bdp"       // no more in flight than the BDP
	OtherControl   Action = "congestion-control"  // another congestion control that the sender has
	PaceBelow      Action = "pace-below"          // just below the rate that is policed or full
	ParallelFlows  Action = "streams"             // several connections at once
	SmallerSegment Action = "smaller-segments"    // an MSS that fits the narrowest link
	NoDelay        Action = "no-delay"            // TCP_NODELAY, or whole requests in one write
	LowWater       Action = "not-sent-low-water"  // TCP_NOTSENT_LOWAT: less of the program's own delay
	LargerWrites   Action = "larger-writes"       // fewer system calls a byte
	RemovePacing   Action = "remove-pacing"       // lift SO_MAX_PACING_RATE
	ReadFaster     Action = "read-faster"         // the receiving program is slow
	WriteSooner    Action = "write-sooner"        // the sending program is slow
	LargerRequests Action = "larger-requests"     // fewer round trips for the same data
	ProgramsWindow Action = "program-window"      // the one that the receiving program gives the sending one
	KeepConnection Action = "keep-the-connection" // a warm one has its windows open
)

// Actions on a route, a host or the path.
const (
	InitialWindow  Action = "initial-window"   // ip route … initcwnd, initrwnd
	NoIdleRestart  Action = "no-idle-restart"  // net.ipv4.tcp_slow_start_after_idle = 0
	ForgetMetrics  Action = "forget-metrics"   // net.ipv4.tcp_no_metrics_save, ip tcp_metrics flush
	RaiseCeilings  Action = "raise-ceilings"   // tcp_rmem, tcp_wmem, rmem_max, wmem_max
	UpdateSystem   Action = "update-system"    // its TCP does not do what a standard asks for
	AutotuningOn   Action = "autotuning-on"    // net.ipv4.tcp_moderate_rcvbuf = 1
	UnfixBuffer    Action = "unfix-buffer"     // find what fixes it, a program, a default or a policy, and remove that
	WindowScaling  Action = "window-scaling"   // on at both ends, and let through
	ScaleAsOffered Action = "scale-as-offered" // SYN cookies or a middlebox lost or changed the scale
	// NoSegmentationOffload: the device or its driver sends super-segments unsplit.
	NoSegmentationOffload Action = "no-segmentation-offload"
	SendBufferOfTwo       Action = "send-buffer-of-two-blocks"
	QuickAck              Action = "quick-ack"           // the receiver acknowledges each segment at once
	MarkLater             Action = "mark-later"          // the queue marks before the path is full
	KeepSACK              Action = "keep-sack"           // a box renumbers sequence numbers, but not SACK blocks
	AnswerSYNs            Action = "answer-syns"         // a listen queue that is full, a firewall that drops them
	FindDrops             Action = "find-receiver-drops" // the receiving host drops segments
	FindDamage            Action = "find-damage"         // a device on the path damages segments
	ReorderLimit          Action = "reordering-limit"    // net.ipv4.tcp_reordering, which RACK outgrows
	ProbeMTU              Action = "probe-mtu"           // net.ipv4.tcp_mtu_probing = 1
	LetTooBigPass         Action = "let-too-big-pass"    // ICMP type 3 code 4, ICMPv6 type 2
	LargerPathMTU         Action = "larger-path-mtu"     // goodput under loss grows with the segment
	MarkCongestion        Action = "ecn"                 // only where the queue marks
	FairQueue             Action = "fair-queue"          // fq_codel or cake at the narrow point
	KeepFlowsInLine       Action = "keep-flows-in-line"  // balance by flow, not by packet
	ReplacePolicer        Action = "replace-policer"     // by a shaper
	RaiseShaper           Action = "raise-shaper"        // this host's qdisc or its interface's speed
	RoomForAcks           Action = "room-for-acks"       // on the way back
	FindLoss              Action = "find-loss"           // where segments vanish
	MoreCPU               Action = "more-cpu"            // a core, fewer copies, offloads
	FasterLine            Action = "faster-line"         // nothing to tune: the link is full
	MeasureOtherEnd       Action = "measure-other-end"   // to distinguish the candidates
)

// Scope is how far a change reaches, the narrowest first.
type Scope string

const (
	Program Scope = "program" // one program's sockets
	Route   Scope = "route"   // everything to one destination
	Host    Scope = "host"    // every connection of a host
	Network Scope = "network" // a device on the path, often somebody else's
	Nowhere Scope = ""        // nothing is changed
)

// End says on which side of the transfer it is done.
type End string

const (
	Sender   End = "sender"
	Receiver End = "receiver"
	Both     End = "both"
	Between  End = "path"
)

// Step is one thing to do about a limiter.
type Step struct {
	Action Action
	Scope  Scope
	End    End
	Source string // where it is said that this helps
}

// For lists the steps for a verdict, the first to be tried first. It is never empty.
func For(name verdict.Name, subtype string) []Step {
	if steps, ok := table[key{name, subtype}]; ok {
		return steps
	}
	if steps, ok := table[key{name, ""}]; ok {
		return steps
	}
	return table[key{verdict.Unknown, ""}]
}

type key struct {
	name    verdict.Name
	subtype string
}

var (
	control = Step{OtherControl, Program, Sender, "RFC 9438; Cardwell et al., BBR, ACM Queue 14-5 (2016)"}
	atBDP   = Step{WindowOfBDP, Program, Receiver, "RFC 6349 section 3.3"}
	streams = Step{ParallelFlows, Program, Both,
		"Hacker et al., IPDPS 2002: n flows react to a loss as 1/n of one"}
	paceBelow = Step{PaceBelow, Program, Sender, "RFC 2698; socket(7) SO_MAX_PACING_RATE"}
	windows   = Step{LargerWindows, Program, Both, "RFC 7323 section 2"}
	scaling   = Step{WindowScaling, Host, Both, "RFC 7323 section 2.2"}
	ceilings  = Step{RaiseCeilings, Host, Both, "tcp(7) tcp_rmem, tcp_wmem"}
	pathMTU   = Step{LargerPathMTU, Network, Between, "Mathis et al., CCR 27-3 (1997): rate grows with the MSS"}
	findLoss  = Step{FindLoss, Network, Between, "RFC 6349 section 3.4"}
	ecn       = Step{MarkCongestion, Host, Both, "RFC 3168; RFC 8087"}
	keepSACK  = Step{KeepSACK, Network, Between, "RFC 2018 section 8; Cisco ASA random-sequence-number"}
	quickAck  = Step{QuickAck, Route, Receiver, "ip-route(8) quickack; tcp(7) TCP_QUICKACK"}
	unfix     = Step{UnfixBuffer, Host, Receiver,
		"RFC 7323 section 2.3; learn.microsoft.com: SOL_SOCKET socket options, Get-NetTCPSetting"}
	fairQueue = Step{FairQueue, Network, Between, "RFC 8290; RFC 7567"}
)

var table = map[key][]Step{
	{verdict.ReceiverWindow, ""}:                {windows, ceilings, streams},
	{verdict.ReceiverWindow, verdict.Unscaled}:  {scaling, windows, streams},
	{verdict.ReceiverWindow, verdict.ScaleZero}: {unfix, windows, streams},
	{verdict.ReceiverWindow, verdict.ScaleMismatch}: {{ScaleAsOffered, Host, Receiver,
		"RFC 7323 section 2.2; RFC 4987 section 3.6; Linux ip-sysctl tcp_syncookies"}, streams},
	{verdict.ReceiverWindow, verdict.AutotuneOff}: {{AutotuningOn, Host, Receiver,
		"tcp(7) tcp_moderate_rcvbuf"}, windows, streams},
	{verdict.ReceiverWindow, verdict.Fixed}:           {windows, ceilings, streams},
	{verdict.ReceiverWindow, verdict.AutotuneCeiling}: {ceilings, windows, streams},
	{verdict.ReceiverWindow, verdict.AutotuneGrowing}: {windows, {KeepConnection, Program, Both,
		"RFC 9112 section 9.3"}, ceilings},
	{verdict.ReceiverWindow, verdict.NoUpdates}: {{UpdateSystem, Host, Receiver, "RFC 9293 section 3.8.6.2.2"},
		windows},
	{verdict.SendBuffer, ""}: {windows, ceilings, streams},
	{verdict.Congestion, ""}: {control, atBDP, streams, findLoss, pathMTU, ecn},
	{verdict.Congestion, verdict.Policer}: {paceBelow, control, atBDP, streams,
		{ReplacePolicer, Network, Between, "Flach et al., SIGCOMM 2016, section 5"}},
	{verdict.Congestion, verdict.LostSYNs}: {{AnswerSYNs, Host, Receiver,
		"RFC 6298 section 5; listen(2); Linux ip-sysctl tcp_max_syn_backlog"}, findLoss},
	{verdict.Congestion, verdict.Marked}: {control, atBDP,
		{MarkLater, Network, Between, "RFC 7567 section 4.6; RFC 8511; RFC 9332 section 4"}, streams},
	{verdict.Congestion, verdict.ReceiverDrops}: {{FindDrops, Host, Receiver,
		"nstat(8); ip-link(8) -statistics; ethtool(8) --statistics"}, control},
	{verdict.Congestion, verdict.Damaged}: {{FindDamage, Network, Between,
		"RFC 1071; Stone, Partridge, SIGCOMM 2000"}},
	{verdict.Congestion, verdict.LowSsthresh}: {
		{ForgetMetrics, Host, Sender, "ip-tcp_metrics(8); Linux ip-sysctl tcp_no_metrics_save"}, control, streams},
	{verdict.Congestion, verdict.Reordering}: {control,
		{KeepFlowsInLine, Network, Between, "RFC 2991 section 2; RFC 4737"},
		{ReorderLimit, Host, Sender, "RFC 8985 section 7.1; Linux ip-sysctl tcp_reordering"}, streams},
	{verdict.Bottleneck, ""}: {{FasterLine, Nowhere, Between, "RFC 6349 section 3.3"}, fairQueue,
		{LowWater, Program, Sender, "tcp(7) TCP_NOTSENT_LOWAT"}},
	{verdict.Bottleneck, verdict.PerFlow}: {streams},
	{verdict.Bottleneck, verdict.Shared}: {{FasterLine, Nowhere, Between, "RFC 6349 section 3.3"}, streams,
		fairQueue},
	{verdict.SlowStart, ""}: {{KeepConnection, Program, Both, "RFC 9112 section 9.3"},
		{InitialWindow, Route, Both, "RFC 6928; ip-route(8) initcwnd, initrwnd"},
		{NoIdleRestart, Host, Sender, "RFC 5681 section 4.1; tcp(7) tcp_slow_start_after_idle"},
		{ForgetMetrics, Host, Sender, "ip-tcp_metrics(8)"}, streams},
	{verdict.SlowStart, verdict.IdleRestart}: {
		{NoIdleRestart, Host, Sender, "RFC 5681 section 4.1; tcp(7) tcp_slow_start_after_idle"},
		{InitialWindow, Route, Both, "RFC 6928; ip-route(8) initcwnd, initrwnd"}, streams},
	{verdict.MTUBlackHole, verdict.Oversized}: {
		{NoSegmentationOffload, Host, Sender, "ethtool(8) tso, gso; learn.microsoft.com: Disable-NetAdapterLso"},
		{SmallerSegment, Program, Both, "RFC 2923"}},
	{verdict.NagleDelayedAck, ""}: {{NoDelay, Program, Sender, "RFC 9293 section 3.7.4; tcp(7) TCP_NODELAY"}},
	{verdict.NagleDelayedAck, verdict.AckTimer}: {{SendBufferOfTwo, Program, Sender,
		"support.microsoft.com: KB 823764, methods 1 and 2; RFC 9293 section 3.8.6.3"}, quickAck},
	{verdict.Application, ""}: {{WriteSooner, Program, Sender, "RFC 6349 section 3.1"},
		{LargerRequests, Program, Both, "RFC 6349 section 3.1"}},
	{verdict.Application, verdict.RequestResponse}: {{LargerRequests, Program, Both, "RFC 6349 section 3.1"},
		streams, {WriteSooner, Program, Sender, "RFC 6349 section 3.1"}},
	{verdict.Application, verdict.ProgramWindow}: {{ProgramsWindow, Program, Receiver,
		"RFC 4254 section 5.2; RFC 9113 section 5.2"}, streams},
	{verdict.ReceiverApplication, ""}: {{ReadFaster, Program, Receiver, "RFC 9293 section 3.8.6"}},
	{verdict.LocalQueue, ""}:          {{RaiseShaper, Host, Sender, "tc(8)"}, control},
	{verdict.AckPath, ""}: {{RoomForAcks, Network, Between, "RFC 3449"}, fairQueue, control,
		{LargerPathMTU, Network, Between, "RFC 3449 section 5.1: fewer segments, fewer acknowledgements"}},
	{verdict.MTUBlackHole, ""}: {{SmallerSegment, Program, Both, "RFC 2923"},
		{ProbeMTU, Host, Sender, "RFC 4821; tcp(7) tcp_mtu_probing"},
		{LetTooBigPass, Network, Between, "RFC 1191; RFC 4890 section 4.3.1"}},
	{verdict.Pacing, ""}: {{RemovePacing, Program, Sender, "socket(7) SO_MAX_PACING_RATE"}},
	{verdict.CPU, ""}: {{LargerWrites, Program, Both, "RFC 6349 section 3.1"}, streams,
		{MoreCPU, Host, Both, "RFC 6349 section 3.1"}},
	{verdict.Sender, ""}: {{MeasureOtherEnd, Nowhere, Sender, "tcp(7) TCP_INFO"}},
	{verdict.Mixed, ""}:  {control, atBDP, streams, {MeasureOtherEnd, Nowhere, Both, "RFC 4898"}},
	{verdict.Unknown, ""}: {control, atBDP, streams, {SmallerSegment, Program, Both, "RFC 2923"}, paceBelow,
		{MeasureOtherEnd, Nowhere, Both, "RFC 4898"}},
}
