package text

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// AuditSentences fills in the sentence and the fix of each finding, which the judge leaves empty, and returns all.
func AuditSentences(all []audit.Finding) []audit.Finding {
	for i := range all {
		f := &all[i]
		f.Text, f.Fix = auditSentence(f)
	}
	return all
}

func auditSentence(f *audit.Finding) (text, fix string) {
	s := auditSentences[f.Code]
	text = s.text
	args := []any{f.Command}
	for _, arg := range f.Args {
		args = append(args, auditValue(arg))
	}
	if len(f.Args) > 0 {
		text = fmt.Sprintf(text, args[1:]...)
	}
	switch {
	case strings.Contains(s.fix, "%["):
		return text, fmt.Sprintf(s.fix, args...)
	case f.Command != "":
		return text, f.Command
	}
	return text, s.fix
}

// auditValue returns a value in the format of its sentence.
func auditValue(value any) any {
	switch v := value.(type) {
	case audit.Bytes:
		return units.Size(v).Exact()
	case audit.Connections:
		return count(int(v), "connection")
	case audit.Packets:
		if v.Total <= 0 {
			return v.Count
		}
		return fmt.Sprintf("%d of %d (%.2g %%)", v.Count, v.Total, 100*float64(v.Count)/float64(v.Total))
	case audit.Path:
		return fmt.Sprintf("%s x %s", units.Rate(v.RateBps), units.Time(v.RTT))
	case audit.Socket:
		between := v.Local
		if v.Remote != "" {
			between += " to " + v.Remote
		}
		return fmt.Sprintf("%s (%s)", cmp.Or(v.Program, "a program"), between)
	case audit.Finding:
		inner, _ := auditSentence(&v)
		return inner
	case []string:
		return cmp.Or(strings.Join(v, ", "), "none")
	case time.Duration:
		return units.Time(v)
	}
	return value
}

const (
	withoutProgramBuffer = "take the setting out of the program, or: fullpipe exec --ignore-program-buffers -- PROGRAM"
	unlessTunnel         = "%[1]s, unless a tunnel needs it"
	scalingAtBothEnds    = "%[1]s; at both ends, then restart"
	unlessOffload        = "%[1]s, unless a capture or a faulty card needs it off"
	probeMTU             = "measure the path MTU: fullpipe tune PEER"
	fasterReader         = "read faster in the program, or raise tcp_rmem's maximum if more than that is in flight"
	smallDatagramBuffer  = "%s requests %s by %s and gets %s: a larger burst waits or is lost"
	largeForEachSocket   = " of %s applies to every socket, idle ones included, also under memory pressure; only the " +
		"maximum makes one transfer fast"
)

// auditSentences has the sentence of each code. A fix with %[1]s contains the finding's command, and %[2]v and later
// are the sentence's values; another fix is for findings without a command.
var auditSentences = map[audit.Code]struct{ text, fix string }{
	audit.ReceiveMax: {text: "tcp_rmem max %s, a window of %s, caps %s at %s"},
	audit.ReceiveAutotuningOff: {
		text: "autotuning is off: every receive buffer stays at %s, which caps %s at %s"},
	audit.SendMax:         {text: "tcp_wmem max %s caps %s at %s"},
	audit.NoWindowScaling: {text: "no window scaling: windows of at most 65,535 bytes, which caps %s at %s"},
	audit.RouteWindow:     {text: "the route to %s clamps the window to %s, which caps %s at %s"},
	audit.RouteCwnd: {
		text: "the route to %s clamps the congestion window to %d segments, which caps %s at %s"},
	audit.AutotuningLevel: {text: "autotuning level %s ends at %s, which caps %s at %s"},
	audit.AutotuningLevelByPolicy: {"autotuning level %s ends at %s, which caps %s at %s",
		"change the group policy: a local setting does nothing"},
	audit.DynamicSendBufferOff: {text: "dynamic send buffering is off: programs that set no SO_SNDBUF keep at most " +
		"64 KiB in flight, which caps %s at %s"},
	audit.MaxWindowSetting:   {text: "%s limits every window to %s, which caps %s at %s"},
	audit.FixedReceiveWindow: {text: "the receive window of %s caps %s at %s"},
	audit.DisputedReceiveWindow: {
		text: "the receive window of %s (or less: sources disagree on the default) caps %s at %s"},
	audit.InterfaceReceiveWindow: {text: "the receive window of interface %s, %s, caps %s at %s"},
	audit.AFDSendWindow: {text: "programs that set no SO_SNDBUF keep %s and one write more in flight (AFD), which " +
		"caps %s at %s"},
	audit.AutomaticBufferMax: {text: "%s %s caps %s at %s"},
	audit.SocketBufferMax:    {text: "kern.ipc.maxsockbuf %s, %s of it usable, caps %s at %s"},
	audit.AutomaticBufferOff: {text: "automatic sizing is off: the buffer stays at %s, which caps %s at %s"},
	audit.ProgramBufferCaps: {"%s set %s: its buffer stays at %s and autotuning is off; half of it is payload, which " +
		"caps %s at %s", withoutProgramBuffer},
	audit.LinkRate: {"the link runs at %s, which caps %s",
		"check the cable, the port and the negotiation of both ends"},
	audit.ShaperRate: {"this host's own shaper sends at most %s, which caps %s", "raise its rate (%[1]s shows it)"},

	audit.LargeMinimum: {text: "a minimum" + largeForEachSocket},
	audit.LargeDefault: {text: "a default" + largeForEachSocket},
	audit.ProgramWindowMax: {"programs that set %s get a window of at most %s, %s here; other programs are not affected",
		"leave %[2]s out of the program, or %[1]s"},
	audit.ProgramBuffer: {"%s set %s: its buffer stays at %s and autotuning is off", withoutProgramBuffer},
	audit.MemoryInPages: {
		text: "its unit is pages: TCP may use %s on a host of %s; the value was probably meant in bytes"},
	audit.MemoryForConnections: {text: "buffers of 2 x BDP for %s need %s, more than half of the %s at which TCP's " +
		"buffers stop growing"},
	audit.CgroupForConnections: {"buffers of 2 x BDP for %s need %s, more than half of the cgroup's limit of %s, which " +
		"counts socket buffers too", "raise the container's memory limit, or use fewer connections"},
	audit.RouteMTU: {"packets to %s have %d bytes at most: %.0f %% headers",
		unlessTunnel},
	audit.BBRWithoutFQ:            {text: "bbr needs fq to pace before Linux 4.13; new interfaces get %s"},
	audit.InertSetting:            {"does nothing here: %s", "remove it"},
	audit.InertInterfaceSetting:   {"does nothing here: %s (interface %s)", "remove it"},
	audit.HarmfulSetting:          {text: "%s"},
	audit.HarmfulInterfaceSetting: {text: "%s (interface %s)"},
	audit.ImpossibleValue: {"an impossible value: not within %s; probably an overflow of 32 bits or a typing error",
		"remove what sets it and restart: the system computes it"},
	audit.UnknownSetting: {text: "fullpipe does not know this setting (%s)"},
	audit.RemovedSetting: {"removed from the kernel in %s (%s)", "remove the line"},
	audit.ImpossibleAtBoot: {"an impossible value (%s): not within %s; at the next boot it is refused, or overflows",
		"correct the line"},
	audit.HarmfulAtBoot: {"takes effect at the next boot (%s): %s", "remove the line"},
	audit.DiffersAtBoot: {text: "it is %s now and will be %s after the next boot (%s)"},
	audit.GroupPolicy:   {text: "a group policy sets receive autotuning to %s; AutoTuningLevelLocal (%s) does nothing"},
	audit.ExperimentalLevel: {text: "some firewalls and servers do not support its window scale of 14; Normal, with 8, " +
		"allows %s"},
	audit.UnusedTemplate: {text: "the template was changed, but no transport filter assigns a connection to it: it does " +
		"nothing"},
	audit.FilteredTemplate: {text: "template %s, which a transport filter assigns to destinations %s, ends at %s, which " +
		"caps %s at %s for them"},
	audit.FiltersUnread: {text: "the template was changed; it acts only where a transport filter or AutomaticUseCustom " +
		"assigns connections to it, and this text does not list the filters"},
	audit.UnscaledWindow: {"%s is %s, but without bit 0 of Tcp1323Opts no window exceeds 65,535 bytes",
		scalingAtBothEnds},
	audit.UnscaledWindowNT4: {"%s is %s, but NT 4 has no window scaling: no window exceeds 65,535 bytes",
		"set TcpWindowSize to 64240, or use a later system"},
	audit.DisputedScaling: {"%s is %s, but sources disagree whether Windows 2000 scales with Tcp1323Opts unset: " +
		"cc957546 says that it does, knowledge base 224829 that no window exceeds 65,535 bytes",
		scalingAtBothEnds},
	audit.IgnoredInterfaceWindow: {"Windows 2000 uses an interface's value of 64,240 or more for connections that it " +
		"opens, and 17,520 bytes for those that it accepts", "set TcpWindowSize for the host, not for the interface"},
	audit.InterfaceMTUSmall: {"packets of %d bytes: %.3g %% headers, %.3g %% with 1500 (interface %s)",
		unlessTunnel},
	audit.InterfaceMTULarge: {"packets of %d bytes: more than Ethernet's 1500 pass only where every link of the path " +
		"carries them (interface %s)", unlessTunnel},

	audit.ShaperConfigured: {"this host shapes what it sends: a rate set here looks like a slow path",
		"%[1]s shows its rate"},
	audit.PacketsDamaged: {"packets that arrived damaged: %v",
		"check the cable, the connectors and the port of the other end"},
	audit.PacketsMissed: {text: "packets that found no free receive descriptor: %v"},
	audit.PacketsMissedByRing: {text: "packets that found no free receive descriptor: %v; the " +
		"receive ring has %d and can have more"},
	audit.PacketsOverrun:       {text: "packets that overran the network card's memory: %v"},
	audit.PacketsUnsent:        {text: "packets that could not be sent: %v"},
	audit.PacketsDropped:       {text: "packets dropped by the driver: %v"},
	audit.PacketsDroppedQueued: {text: "packets dropped by this host's own queue: %v"},
	audit.Collisions:           {text: "packets that collided: %v"},
	audit.HalfDuplex: {"acknowledgements and data collide: often a port whose other end does not negotiate",
		"let both ends negotiate"},
	audit.TSOOff: {"the CPU cuts every segment: at 1 Gbit/s and more one core may be too slow", unlessOffload},
	audit.GROOff: {"the CPU handles every packet on its own: at 1 Gbit/s and more one core may be too slow",
		unlessOffload},
	audit.LinkMTUSmall:        {"%.0f %% of every packet is headers", unlessTunnel},
	audit.TransmitQueueShort:  {text: "bursts of more than %d packets are dropped in this host"},
	audit.WaitedForSendBuffer: {text: "%s waited for its own send buffer in %.0f %% of its %s of sending"},
	audit.WaitedForWindow:     {text: "%s waited for the other end's receive window in %.0f %% of its %s of sending"},
	audit.MemoryPressure: {"TCP ran into memory pressure (tcp_mem) %d times since boot, and buffers shrank",
		"lower the maxima of tcp_rmem and tcp_wmem, or raise tcp_mem"},
	audit.ReceiveQueuePruned: {"%d times since boot the kernel had to shrink a receive queue because its buffer was full",
		fasterReader},
	audit.SegmentsPruned: {"%d segments dropped from a full receive buffer since boot", fasterReader},
	audit.BacklogDrops: {"%d segments dropped since boot while a program had its socket locked",
		"raise the socket's receive buffer"},
	audit.AcceptQueueOverflows: {"%d connection requests dropped since boot because a listener's accept queue was full",
		"raise the program's backlog and net.core.somaxconn"},
	audit.SYNCookies: {"%d handshakes answered by SYN cookies since boot: a listener's queue was full, and connections " +
		"without timestamps got no window scaling and no SACK",
		"raise the program's backlog, net.core.somaxconn and net.ipv4.tcp_max_syn_backlog"},
	audit.CPUBacklogDrops: {"%d packets dropped before TCP since boot: a CPU's backlog was full",
		"raise net.core.netdev_max_backlog, or spread the load (RPS, more queues)"},
	audit.DatagramsDropped: {"%d datagrams dropped since boot because a UDP socket's receive buffer was full; " +
		"QUIC takes them for lost", "read sooner in the program, or raise its SO_RCVBUF, which net.core.rmem_max limits " +
		"(fullpipe plan --app quic-go)"},
	audit.DatagramsUnsent: {"%d datagrams not sent since boot because a UDP socket's send buffer was full",
		"raise the program's SO_SNDBUF, which net.core.wmem_max limits (fullpipe plan --app quic-go)"},

	audit.OtherNamespace: {"in the network namespace of %s (pid %d), which has its own sysctls: %s",
		"%[1]s, then apply there"},
	audit.NamespaceSettings: {"these are a network namespace's own sysctls; not visible from here: %s; visible, but " +
		"only the host can change them: %s; the host's network cards, their errors and queues and its connection tracking " +
		"are not visible either", "run fullpipe audit on the host too"},
	audit.OverlayMTU:     {"an overlay of %s leaves this MTU: the network outside has to carry 1500 bytes", probeMTU},
	audit.OverlayUnknown: {"whether an overlay network takes bytes of each packet is not visible from here", probeMTU},
	audit.MemoryLimitHidden: {
		text: "no memory limit is visible from inside; a limit of an outer cgroup counts socket buffers too"},
	audit.DatagramBufferHidden: {"%s requests %s by %s; whether it gets them is not visible from here",
		"%[1]s on the host"},
	audit.DatagramBufferSmall:    {text: smallDatagramBuffer},
	audit.DatagramBufferOfHost:   {smallDatagramBuffer, "%[1]s on the host"},
	audit.UnknownSystem:          {text: "fullpipe does not know this system"},
	audit.Unread:                 {text: "could not be read: %s"},
	audit.NotNumbers:             {text: "%s %.40q, which is no number"},
	audit.UnknownAutotuningLevel: {text: "unknown autotuning level %.40q"},
	audit.VersionAbsent: {text: "the version, which a .reg file does not have: judged as Windows 2000 to Server 2003; " +
		"Vista and later ignore these values"},
}
