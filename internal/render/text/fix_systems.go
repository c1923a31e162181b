package text

import "github.com/fullpipe-net/fullpipe/internal/advice"

// elsewhere has the texts of actions on systems other than Linux, by action and system.
var elsewhere = map[advice.Action]map[advice.System]string{
	advice.OtherControl: {
		advice.Windows: "try BBR2 at the sender, on Windows 11 22H2 or later (not documented: read it back with " +
			"Get-NetTCPSetting): netsh int tcp set supplemental template=internet congestionprovider=bbr2",
		advice.FreeBSD: "try another congestion control at the sender: kldload tcp_bbr, then sysctl " +
			"net.inet.tcp.functions_default=bbr",
	},
	advice.WindowOfBDP: {
		advice.Windows:     windowOfBDP,
		advice.MacOS:       windowOfBDP,
		advice.FreeBSD:     windowOfBDP,
		advice.Windows2000: windowOfBDP,
	},
	advice.PaceBelow: {
		advice.Windows: paceBelow + "New-NetQosPolicy with -ThrottleRateActionBitsPerSecond at the sender, or a program " +
			"that paces itself",
		advice.MacOS:   paceBelow + "a dummynet pipe at the sender (dnctl, pfctl), or a program that paces itself",
		advice.FreeBSD: paceBelow + "a dummynet pipe at the sender (ipfw pipe), or a program that paces itself",
	},
	advice.RemovePacing: {
		advice.Windows:     "raise or remove the throttle on the sender (Get-NetQosPolicy)",
		advice.MacOS:       "raise or remove the pipe on the sender (dnctl list), or the program's own pacing",
		advice.FreeBSD:     "raise or remove the pipe on the sender (ipfw pipe show), or the program's own pacing",
		advice.Windows2000: "look at the sending program's own pacing: the system has none",
	},
	advice.RaiseShaper: {
		advice.Windows: "raise or remove the throttle on the sending host (Get-NetQosPolicy), or look at its interface's " +
			"speed (Get-NetAdapter)",
		advice.MacOS: "raise or remove the pipe on the sending host (dnctl list), or look at its interface's speed " +
			"(ifconfig)",
		advice.FreeBSD: "raise or remove the pipe on the sending host (ipfw pipe show), or look at its interface's speed " +
			"(ifconfig)",
		advice.Windows2000: "look at the sending host's interface: its speed and duplex, and a shaper of its driver",
	},
	advice.LargerWindows: {
		advice.Windows2000: "give both ends windows of the path's size: TcpWindowSize (95 to Me: DefaultRcvWindow) at " +
			"the receiver, DefaultSendWindow at the sender, or SO_RCVBUF and SO_SNDBUF in the program (fullpipe plan " +
			"--target windows-xp --format reg writes them)",
	},
	advice.LowWater: {advice.MacOS: "set TCP_NOTSENT_LOWAT, so that less waits in the sending host"},
	advice.SmallerSegment: {
		advice.Windows: "lower the MTU until full segments get through: netsh interface ipv4 (or ipv6) set subinterface " +
			"NAME mtu=BYTES store=persistent",
		advice.MacOS: "lower the MSS or the MTU until full segments get through: TCP_MAXSEG in the program, or ifconfig " +
			"mtu",
		advice.FreeBSD: "lower the MSS or the MTU until full segments get through: TCP_MAXSEG in the program, or route " +
			"-mtu",
		advice.Windows2000: "lower the MTU until full segments get through: the DWORD MTU below " +
			"Tcpip\\Parameters\\Interfaces\\{id}, then restart",
	},
	advice.ProbeMTU: {
		advice.MacOS:   "keep net.inet.tcp.pmtud_blackhole_detection at 1, the default, at the sender",
		advice.FreeBSD: "switch on net.inet.tcp.pmtud_blackhole_detection at the sender",
		advice.Windows2000: "switch on black hole detection at the sender: the DWORD EnablePMTUBHDetect 1 below " +
			"Tcpip\\Parameters, then restart",
	},
	advice.InitialWindow: {
		advice.Windows: "start with more at the sender, where the system lets the template be set (Server 2012 R2 and " +
			"later): Set-NetTCPSetting -SettingName InternetCustom -InitialCongestionWindowMss, and New-NetTransportFilter, " +
			"without which the template does not act",
		advice.FreeBSD: "start with more: sysctl net.inet.tcp.initcwnd_segments at the sender",
	},
	advice.ForgetMetrics: {
		advice.FreeBSD: "forget the metrics of earlier connections: sysctl net.inet.tcp.hostcache.purgenow=1",
	},
	advice.RaiseCeilings: {
		advice.Windows: "leave the systems' sizing on: " + normalLevel + " at the receiver, " +
			"netsh winsock set autotuning on at the sender",
		advice.MacOS: "raise the ceilings of automatic buffers: net.inet.tcp.autorcvbufmax and autosndbufmax, and " +
			"kern.ipc.maxsockbuf above both (fullpipe plan --target macos computes them)",
		advice.FreeBSD: "raise the ceilings of automatic buffers: net.inet.tcp.recvbuf_max and sendbuf_max, and " +
			"kern.ipc.maxsockbuf above both (fullpipe plan --target freebsd computes them)",
	},
	advice.WindowScaling: {
		advice.Windows: "switch window scaling on: " + normalLevel + ", or find the " +
			"middlebox that strips the option",
		advice.MacOS: "find the middlebox that strips the window scale option, or switch scaling on at the other end: " +
			"macOS always offers it",
		advice.FreeBSD: "switch window scaling on at both ends (net.inet.tcp.rfc1323), or find the middlebox that strips " +
			"the option",
		advice.Windows2000: "switch window scaling on at both ends: the DWORD Tcp1323Opts 1 below Tcpip\\Parameters, " +
			"then restart (95 and NT 4 have none: use several connections); or find the middlebox that strips the option",
	},
	advice.ScaleAsOffered: {
		advice.Windows:     scaleAsOffered,
		advice.MacOS:       scaleAsOffered,
		advice.FreeBSD:     scaleAsOffered,
		advice.Windows2000: scaleAsOffered,
	},
	advice.AnswerSYNs: {
		advice.Windows: "find what drops SYNs: the backlog of the server's program, Windows Firewall or another one and " +
			"its connection limit, or loss on the path",
		advice.MacOS: "find what drops SYNs: a full listen queue on the server (netstat -L; raise the program's backlog " +
			"and kern.ipc.somaxconn), a firewall or its connection limit, or loss on the path",
		advice.FreeBSD: "find what drops SYNs: a full listen queue on the server (netstat -L; raise the program's " +
			"backlog and kern.ipc.soacceptqueue), a firewall or its connection limit, or loss on the path",
		advice.Windows2000: "find what drops SYNs: the backlog of the server's program, a firewall and its connection " +
			"limit, or loss on the path",
	},
	advice.FindDrops: {
		advice.Windows: "find what drops segments on the receiving host: pktmon start --capture --counters-only, then " +
			"pktmon counters --type drop --drop-reason; Get-NetAdapterStatistics; its firewall; fullpipe why there",
		advice.MacOS: "find what drops segments on the receiving host: netstat -s -p tcp (bad checksums), netstat -id, its " +
			"firewall; fullpipe why there",
		advice.FreeBSD: "find what drops segments on the receiving host: netstat -s -p tcp (bad checksums), netstat -id, " +
			"its firewall",
		advice.Windows2000: "find what drops segments on the receiving host: netstat -e (discards, errors), its firewall, " +
			"its device's driver",
	},
	advice.MarkCongestion: {
		advice.Windows: "mark instead of dropping: netsh int tcp set global ecncapability=enabled, where the narrow " +
			"point's queue marks",
		advice.MacOS: "mark instead of dropping, where the narrow point's queue marks: net.inet.tcp.ecn=1, or in " +
			"releases without it net.inet.tcp.ecn_initiate_out=1 and ecn_negotiate_in=1",
		advice.FreeBSD: "mark instead of dropping: net.inet.tcp.ecn.enable=1, where the narrow point's queue marks",
	},
	advice.QuickAck: {
		advice.Windows:     ackFrequency,
		advice.Windows2000: ackFrequency + " (2000: TcpDelAckTicks 0)",
		advice.MacOS:       delayedAck,
		advice.FreeBSD:     delayedAck,
	},
	advice.AskSender: {
		advice.Windows: openPrefix + "run fullpipe why on the sending host while it sends, as Administrator",
		advice.MacOS:   openPrefix + "run fullpipe why on the sending host while it sends",
		advice.FreeBSD: openPrefix + "run netstat -xn -p tcp on the sending host while it sends: an empty send queue is " +
			"the program",
		advice.Windows2000: openPrefix + "capture at the sending host (WinDump, Wireshark) while it sends: bytes in " +
			"flight that stop at the same size are its buffer, pauses with nothing in flight its program",
	},
	advice.AskReceiver: {
		advice.Windows: openPrefix + "run fullpipe why on the receiving host, or capture there: a window that shrinks to " +
			"0 is a program that does not read, one that stays the same a window that is too small",
		advice.MacOS: openPrefix + "run netstat -an -p tcp on the receiving host; a Recv-Q that stays full is a program " +
			"that does not read, an empty one a window that is too small",
		advice.FreeBSD: openPrefix + "run netstat -an -p tcp on the receiving host; a Recv-Q that stays full is a " +
			"program that does not read, an empty one a window that is too small",
		advice.Windows2000: openPrefix + "capture at the receiving host: a window that shrinks to 0 is a program that " +
			"does not read, one that stays the same a window that is too small",
	},
	advice.CaptureSender: {
		advice.Windows: openPrefix + "capture at the sending host from the handshake on (pktmon start --capture, then " +
			"pktmon etl2pcap and fullpipe diagnose)",
		advice.MacOS: openPrefix + "capture at the sending host (tcpdump -s 128) from the handshake on, and fullpipe " +
			"diagnose it",
		advice.FreeBSD: openPrefix + "capture at the sending host (tcpdump -s 128) from the handshake on, and fullpipe " +
			"diagnose it",
		advice.Windows2000: openPrefix + "capture at the sending host (WinDump, Wireshark) from the handshake on, and " +
			"fullpipe diagnose it",
	},
}

// openPrefix begins the texts of actions that change nothing.
const normalLevel = "netsh int tcp set global autotuninglevel=normal"

const openPrefix = "to find out: "

const ackFrequency = "have the receiver acknowledge each segment at once: the DWORD TcpAckFrequency 1 below " +
	"Tcpip\\Parameters\\Interfaces\\{id} there, then restart"

const delayedAck = "have the receiver acknowledge each segment at once: sysctl net.inet.tcp.delayed_ack=0 there"

const windowOfBDP = "bound the receive window by the bandwidth-delay product: SO_RCVBUF in the receiving program"

const scaleAsOffered = "have the receiver keep the window scale that its handshake agreed on: look for a firewall " +
	"or a load balancer that changes the option; larger buffers do not help"
