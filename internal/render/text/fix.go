package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// FixSentence formats a remedy in the imperative.
func FixSentence(f advice.Fix) string {
	if c := f.Ceiling; c != nil {
		return ceilingSentence(c, &f)
	}
	if said := elsewhere[f.Action][f.System]; said != "" {
		return said
	}
	if said := elsewhere[f.Action][f.System.Family()]; said != "" {
		return said
	}
	if said, ok := imperatives[f.Action]; ok {
		return said
	}
	return f.Text
}

func ceilingSentence(c *advice.Ceiling, f *advice.Fix) string {
	if f.System.Family() == advice.Windows {
		return fmt.Sprintf("%s on the %s: %s ends at %s; if a group policy sets the level "+
			"(AutoTuningLevelEffective of Get-NetTCPSetting), change the policy: it wins", normalLevel, f.End, c.Name,
			units.Size(c.Bytes).Exact())
	}
	said := fmt.Sprintf("raise %s (max) on the %s: %s now", c.Name, f.End, units.Size(c.Bytes))
	if c.NeededBytes > 0 {
		return said + fmt.Sprintf(", %s needed", units.Size(c.NeededBytes))
	}
	return said + "; fullpipe tune finds how much it needs"
}

// do formats the first remedy of a verdict; "" if there is none.
func do(fixes []advice.Fix) string {
	if len(fixes) == 0 {
		return ""
	}
	f := &fixes[0]
	said := FixSentence(*f)
	var values []string
	for _, s := range f.Settings {
		value := s.Name + " = " + s.Value
		if strings.HasPrefix(s.Name, "--") { // an option of ours
			value = s.Name + " " + s.Value
		}
		if s.Value != "1" && !strings.Contains(said, value) {
			values = append(values, value)
		}
	}
	if len(values) > 0 {
		said += " (" + strings.Join(values, ", ") + ")"
	}
	if e := f.Expected; e != nil && e.HighBps > 0 {
		said += fmt.Sprintf("; that would give %s to %s", units.Rate(e.LowBps), units.Rate(e.HighBps))
	}
	return said
}

// doIf is do with a condition: a verdict of low confidence does not justify an unconditional
// change.
func doIf(fixes []advice.Fix, v verdict.Verdict) string {
	said := do(fixes)
	if said != "" && isConditional(fixes, &v) {
		return fmt.Sprintf("if it is %s: %s", v.Limiter, said)
	}
	return said
}

// operatorsRow points to the page of questions to the network's operators, for a limiter that
// is theirs: not where this host drops the packets.
func operatorsRow(t *table, limiter verdict.Name, lostAt []record.LostAt) {
	here := slices.ContainsFunc(lostAt, func(l record.LostAt) bool { return l.Side != "" })
	if !here && (limiter == verdict.Bottleneck || limiter == verdict.Congestion) {
		t.row("", "for the network's operators: docs/network-engineers.md lists data to send and questions to ask")
	}
}

// isConditional reports whether the first of fixes changes something because of a verdict of low confidence.
func isConditional(fixes []advice.Fix, v *verdict.Verdict) bool {
	return v.Confidence == verdict.Low && fixes[0].Limiter == v.Limiter && !fixes[0].Action.OnlyObserves()
}

// doAbout is doIf for a document that may have no fixes because it is older than they are.
func doAbout(fixes []advice.Fix, v verdict.Verdict) string {
	if len(fixes) == 0 {
		fixes = advice.Fixes(v, advice.Facts{})
	}
	return doIf(fixes, v)
}

const paceBelow = "send just below the policer's rate (fullpipe tune finds it): "

// imperatives has one entry for each action; a test checks that none is missing.
var imperatives = map[advice.Action]string{
	advice.LargerWindows: "give both ends larger buffers, or leave SO_RCVBUF and SO_SNDBUF alone so that the systems " +
		"size them (fullpipe tune finds how large)",
	advice.WindowOfBDP:    "limit the receive window to the BDP (fullpipe tune finds it)",
	advice.OtherControl:   "try another congestion control, by TCP_CONGESTION in the program or congctl on the route",
	advice.PaceBelow:      paceBelow + "SO_MAX_PACING_RATE in the program, or a shaper on the sending host",
	advice.ParallelFlows:  "use several connections at once, at the cost of whoever shares the line",
	advice.SmallerSegment: "lower the MSS or the MTU until full segments get through (fullpipe measure --mss)",
	advice.NoDelay:        "set TCP_NODELAY, or write each request in one piece",
	advice.SendBufferOfTwo: "raise SO_SNDBUF in the sending program to more than two blocks, or leave it alone, so " +
		"that it sends the next block before the last acknowledgement; or write blocks of an even number of segments",
	advice.QuickAck: "have the receiver acknowledge each segment at once: ip route change … quickack 1 there, or " +
		"TCP_QUICKACK in its program after each read",
	advice.LowWater:     "set TCP_NOTSENT_LOWAT, so that less waits in the sending host",
	advice.LargerWrites: "use larger writes, fewer copies or more threads: a processor core is what is full",
	advice.RemovePacing: "raise or remove the pacing rate on the socket (SO_MAX_PACING_RATE)",
	advice.UpdateSystem: "update the receiver's system: its TCP does not announce that the window opens again; " +
		"until then a larger receive buffer carries more between two probes",
	advice.ReadFaster: "have the receiving program read faster; a larger window only delays the stop",
	advice.LessWork: "spend less processor time on a byte (compression, cipher, copies), use several threads or a " +
		"faster processor",
	advice.FreeProcessors: "run fewer other programs on this host, or give it more processors; sched(7) has priorities",
	advice.RaiseQuota:     "raise the CPU quota: CPUQuota= of the unit, --cpus of the container, cpu.max of the group",
	advice.FasterDisk:     "use a faster disk, larger reads and writes, or several at a time (iostat -x shows the disk)",
	advice.MoreMemory:     "give the program more memory, or other programs less",
	advice.FollowProgram:  "look at the program at the other end of the pipe, or at the child: it limits this one",
	advice.FollowPeer:     "run fullpipe why on the host for whose data the program waits",
	advice.ReleaseLock:    "find the lock's owner (lslocks has those of files) and have it release the lock sooner",
	advice.ShorterPause:   "shorten the program's pauses, or lift its rate limit",
	advice.WriteSooner:    "have the sending program write sooner and more at a time; the network has room",
	advice.ProgramsWindow: "raise the window that the receiving program gives (fullpipe plan --app lists known ones)",
	advice.LargerRequests: "ask for more at a time, or for several things at once",
	advice.KeepConnection: "keep the connection open and use it again: its windows are open",
	advice.InitialWindow:  "start with more: ip route change … initcwnd at the sender, initrwnd at the receiver",
	advice.AutotuningOn: "have the receiver's system size its windows: net.ipv4.tcp_moderate_rcvbuf = 1 there " +
		"(fullpipe plan prints the maximum)",
	advice.NoIdleRestart: "keep the window over pauses: net.ipv4.tcp_slow_start_after_idle = 0 at the sender",
	advice.ForgetMetrics: "forget what an earlier connection learnt: ip tcp_metrics flush, " +
		"net.ipv4.tcp_no_metrics_save = 1",
	advice.RaiseCeilings: "raise the ceilings of automatic buffers: the third values of net.ipv4.tcp_rmem and tcp_wmem " +
		"(fullpipe plan computes them)",
	advice.NoSegmentationOffload: "switch segmentation offload off on the sending host: ethtool -K DEVICE tso off gso " +
		"off (Windows: Disable-NetAdapterLso -Name *); if that does not help, look for a tunnel below the MSS",
	advice.MarkLater: "have the queue that marks (ECN) do so later: a target or step above the bursts of its link " +
		"(the target of CoDel and FQ-CoDel, the step of DualPI2)",
	advice.KeepSACK: "find the firewall that renumbers sequence numbers but not SACK blocks and switch that off " +
		"(Cisco ASA: set connection random-sequence-number disable); until then switch SACK off at one end",
	advice.FindDrops: "find what drops segments on the receiving host: nstat (TcpExtTCPBacklogDrop, " +
		"TcpExtTCPRcvQDrop, TcpInCsumErrors), ip -s link and ethtool -S of its device, its firewall; " +
		"fullpipe why there",
	advice.FindDamage: "find the device that damages segments: swap cables and ports, look at the error counters of " +
		"each (ethtool -S), switch offloads off",
	advice.AnswerSYNs: "find what drops SYNs: a full listen queue on the server (nstat TcpExtListenDrops, ss -ltn; " +
		"raise the program's backlog and net.core.somaxconn), a firewall or its connection limit, or loss on the path",
	advice.ScaleAsOffered: "have the receiver keep the window scale that its handshake agreed on: raise " +
		"net.ipv4.tcp_max_syn_backlog and net.core.somaxconn so that it needs no SYN cookies, and look for a firewall or a " +
		"load balancer that changes the option; larger buffers do not help",
	advice.UnfixBuffer: "find what fixes the receiver's buffer (a program's SO_RCVBUF, a default, a policy) and " +
		"remove it",
	advice.WindowScaling: "switch window scaling on at both ends (net.ipv4.tcp_window_scaling), or find the middlebox " +
		"that strips the option",
	advice.ReorderLimit: "let more reordering pass for no loss: a larger net.ipv4.tcp_reordering at the sender",
	advice.KeepFlowsInLine: "have what spreads packets over several links keep each connection on one (by flow, not by " +
		"packet)",
	advice.ProbeMTU:       "switch on net.ipv4.tcp_mtu_probing at the sender",
	advice.LetTooBigPass:  "let ICMP \"too big\" through",
	advice.LargerPathMTU:  "use a larger MTU along the path: goodput under loss grows with the segment",
	advice.MarkCongestion: "mark instead of dropping: ECN at both ends, where the narrow point's queue marks",
	advice.FairQueue:      "put a fair queue at the narrow point (fq_codel, cake)",
	advice.ReplacePolicer: "have the policer replaced by a shaper",
	advice.RaiseShaper: "raise or remove the shaper on the sending host (tc qdisc show), or look at its interface's " +
		"speed",
	advice.RoomForAcks: "make room on the way back: a faster line there, or less of other traffic",
	advice.FindLoss: "find what loses packets: capture at both ends and compare (fullpipe diagnose --near A.pcap " +
		"--far B.pcap)",
	advice.MoreCPU:         "give it a core of its own, or offloads that spare one",
	advice.FasterLine:      "nothing to tune: the link is full, only a faster one or less data helps",
	advice.MeasureOtherEnd: "measure from the other end too: this end's counters do not show the cause",
	advice.AskSender: openPrefix + "run fullpipe why on the sending host while it sends; or ss -tim there: " +
		"notsent 0 is the program or its send buffer, notsent above 0 is pacing or the host's queue",
	advice.AskReceiver: "to find out: run ss -tm on the receiving host; a Recv-Q that stays full is a program that does " +
		"not read, an empty one a window that is too small",
	advice.CaptureSender: "to find out: capture at the sending host (fullpipe diagnose --interface, or tcpdump -s 128) " +
		"from the handshake on",
	advice.CaptureFar: "to find out: capture at the other end as well (fullpipe diagnose --near A.pcap --far B.pcap); " +
		"segments missing there were lost on the way, and times between the two taps show the queue's direction",
	advice.MeasureLonger: "to find out: measure, or look, for longer; a transfer that is still starting, or grows back " +
		"from a loss, shows no steady rate",
	advice.MeasureWider: "to find out: measure with twice the window (--receive-buffer, --send-buffer, or the host's " +
		"ceilings); if that gives less than 10 % more, the link is full",
	advice.MeasureAgain: "to find out: measure again without the disturbance: this result " +
		"describes the disturbance more than the path",
	advice.LargerBudget: openPrefix + "run fullpipe tune again with more time",
	advice.SeeHandshake: openPrefix + "capture from the handshake on; the window scale is in the SYNs only",
}
