package text

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// PlanSentences formats the warnings or the notes of a plan.
func PlanSentences(all []plan.Statement) (lines []string) {
	for _, s := range all {
		args := s.Args
		for i, arg := range args {
			if paths, ok := arg.([]plan.Shared); ok {
				args = slices.Clone(args)
				args[i] = planWants(paths)
			}
		}
		lines = append(lines, fmt.Sprintf(planSentences[s.Code], args...))
	}
	return lines
}

func planWants(paths []plan.Shared) string {
	var wants []string
	for _, s := range paths {
		wants = append(wants, fmt.Sprintf("%s x %s takes %s", units.Rate(s.RateBps), s.RTT, units.Size(s.Window)))
	}
	return strings.Join(wants, ", ")
}

const planMemory = "%d connection%s with full buffers take %s, more than 1/32 of %s of memory"

var planSentences = map[plan.Code]string{
	plan.LargestMacOSBuffer: "macOS has no socket buffers above 32 MiB: %s instead of %s, which allows %s",
	plan.MacOSLimitByMemory: "kern.ipc.maxsockbuf has a limit by memory, 6 to 32 MB; beyond it sysctl returns " +
		"ERANGE: read the value back",
	plan.BeyondSystem:    "the path needs windows of %s; the largest of this system allows %s: use %d connections",
	plan.NotThreeNumbers: "%s is %q, not three numbers: not changed",
	plan.FlowCapped:      "one connection gets %s of %s with any window: at least %.0f connections fill the path",
	plan.BeyondLargestWindow: "the BDP is %s, but no TCP window exceeds %s (RFC 7323): use at least %.0f " +
		"connections",
	plan.RateOrDelay: "no one window does both: %s needs at least %s for 95 %% of its rate, a delay of at most %s " +
		"allows no more than %s on %s; the one window is the smaller one, and %s gets %.3g %% of its rate",
	plan.LeastWindowDelays: "no window keeps the delay at %s on %s: even two segments add %s; " +
		"a smaller MTU of that interface lowers the delay",
	plan.LongRoundTrip: "a round trip of %s is unusual: TCP repeats its SYN after 1 s; check the unit",
	plan.LongQueue: "a window of %s adds %[3]s of delay on %[2]s: other programs there wait as long, and their " +
		"handshakes time out after 1 s; --max-delay 200ms bounds it",
	plan.DelayUnbounded: "these settings do not bound the queue: only the one window does, where a program sets it",
	plan.MemoryTooSmall: "even two segments each take %s: use at most %d connections",
	plan.AutotuningEnds: "autotuning level Normal ends at 16,776,960 bytes, %s here: use at least %d connections; do " +
		"not set Experimental: some firewalls drop its window scale of 14",
	plan.NoDynamicSendBuffer: "this system has no dynamic send buffering: programs have to set SO_SNDBUF to %d",
	plan.GroupPolicyForces: "a group policy sets the autotuning level: change the policy, a local setting does " +
		"nothing",
	plan.SendWindowTakesPool: "DefaultSendWindow is non-paged pool, up to %s for each connection that writes; " +
		"the whole system has at most 256 MB of it: set SO_SNDBUF in the one program instead",
	plan.NoWindowScaling: "this system has no window scaling: %s instead of %s, which allows %s",
	plan.CorrectedDriver: "Windows 98 scales only with a corrected vtcp.386 (knowledge base 239705, 236926): " +
		"without it windows above 65,535 bytes fail",
	plan.MemoryShort:  planMemory + ": nothing is lowered, the system bounds automatic buffers together",
	plan.MemoryLowers: planMemory + ": lowered to %s a connection, %s now, which is still enough for the path",
	plan.MemoryBounds: planMemory + ": no more than %s a connection, which is still enough for the path",
	plan.MemoryLowersBelowPath: planMemory + ": lowered to %s a connection, %s now, which allows one alone %s, " +
		"%.3g %% of what more memory gives it",
	plan.MemoryBoundsBelowPath: planMemory + ": no more than %s a connection, which allows one alone %s, " +
		"%.3g %% of what more memory gives it",

	plan.DefaultsSuffice: "the system's defaults already give this goodput; the settings below " +
		"are those defaults, for a host where someone changed them",
	plan.LimitSuffices:   "%s: its %s allow these windows",
	plan.ScaleFactorFits: "win_scale_factor 3 needs no change: the system raises it to fit",
	plan.CountsBookkeeping: "kern.ipc.maxsockbuf includes the kernel's overhead: 2048/2304 of " +
		"it can be used for data",
	plan.NothingSetsBuffers: "buffers size themselves up to %s (SB_MAX), and nothing sets that: there is " +
		"nothing to change",
	plan.BeforeSolaris11: "before Solaris 11: ndd -set /dev/tcp tcp_max_buf, tcp_cwnd_max, tcp_xmit_hiwat and " +
		"tcp_recv_hiwat, at every start",
	plan.OneSizeForAll: "windows of one size: every connection without SO_SNDBUF and SO_RCVBUF gets these",
	plan.InterfaceValuesWin: "an interface's own values win while use_isno is 1 (lsattr -E -l en0): set them " +
		"there too, chdev -l en0 -a tcp_recvspace=… -a tcp_sendspace=… -a rfc1323=1",
	plan.SaveRegistryKeys: "%s: save the keys before the change: %s",
	plan.MaximumSuffices:  "%s: its maximum of %s allows this window",
	plan.BuffersTwiceWindow: "the buffers are twice the window: before Linux 6.6 half of a " +
		"receive buffer is its window, and a send buffer has two thirds of it in flight",
	plan.TimestampsInSegments: "the windows are whole segments of %d bytes; with timestamps, the default here, a " +
		"segment carries %d, as predict and tune count: --mss %[2]d plans for that",
	plan.ProgramBuffersBounded: "if a program sets SO_RCVBUF or SO_SNDBUF, net.core.rmem_max " +
		"and wmem_max limit it, and autotuning ends for its socket",
	plan.MaximumIsCeiling: "a maximum reserves no memory: all connections that share this link " +
		"together use one bandwidth-delay product, plus the queue",
	plan.RouteOnlyLowers: "a route's window attribute can only lower the window; tcp_rmem's maximum raises it",
	plan.PresentWindowLarger: "the least window that costs no path more than 5 %% of its rate is %s; the system has " +
		"%s now, and nothing is lowered: the table is of that",
	plan.LeastWindowForAll: "one window serves all interfaces here: the least that costs no path more than 5 %% of its " +
		"rate",
	plan.InterfaceWindows: "an interface can have its own TcpWindowSize, below %s, which wins over the host's: %s",
	plan.CeilingsFollowLargest: "windows are automatic here: the ceilings follow the largest path, %s; the one " +
		"window is for programs that set their own",
	plan.RouteWindows:       "a route can have its own bound, --route PREFIX --clamp: %s",
	plan.AutotuningSuffices: "AutoTuningLevelLocal %s stays: its windows reach %s",
	plan.TemplatesOfTarget:  "templates: %s",
	plan.RegistryIgnored: "TcpWindowSize, GlobalMaxTcpWindowSize and Tcp1323Opts are ignored since Vista: they " +
		"are not part of the plan",
	plan.RestrictedLowers:             "AutoTuningLevelLocal Restricted is no cure: it lowers the ceiling to %s, %s here",
	plan.ReceiveBufferStopsAutotuning: "a program that sets SO_RCVBUF switches autotuning off for its socket",
	plan.InitialWindowIsDefault:       "InitialCongestionWindow 10 is this system's default: there is nothing to set",
	plan.GoUnsupported: "fullpipe does not run on this system (Go 1.21 and later need Windows 10 or Server 2016): " +
		"use the script",
	plan.ScalingOptions: "Tcp1323Opts 1 scales without timestamps, 3 with them; timestamps take %d bytes of " +
		"every segment, %.1f %% at MSS %d, for RTT samples and protection against wrapped sequence numbers (4 GiB " +
		"take %s here)",
	plan.ReceiveWindowSuffices: "the receiver's window of %s stays",
	plan.SendWindowSuffices:    "the sender's DefaultSendWindow of %s stays",
	plan.InterfaceWindowWins:   "a TcpWindowSize below %s wins over the global one; delete it, or set it there too",
	plan.OnlyWritesFile:        "fullpipe does not run on this system: it only writes the file",
	plan.WindowIsDword: "DefaultRcvWindow is a DWORD here, not a string; with Winsock 2 it is a string: " +
		"--target windows-95-winsock2",
	plan.MisspeltName: "Windows 98 reads the misspelt GlobalMaxTcpWindoSize: both are written, as DWORDs " +
		"(knowledge base 239731)",
	plan.OrInProgram: "or in the program, without a restart of the host: %s before connect() or listen() (--format c); " +
		"a window above 65,535 bytes needs Tcp1323Opts all the same",
	plan.SendBufferOfProgram: "the send buffer is the program's: SO_SNDBUF %d",
	plan.OneWindowForAll:     "one window serves all interfaces: a modem needs less than a LAN",
}
