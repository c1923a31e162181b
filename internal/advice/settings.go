package advice

import (
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// settings returns a step's at one place, as far as their values are known.
func (f *Facts) settings(s Step, at place, v verdict.Verdict) []plan.Setting {
	role := plan.Sender
	if at.end == Receiver {
		role = plan.Receiver
	}
	one := func(name, where, value string) []plan.Setting {
		return []plan.Setting{{Role: role, Name: name, Where: where, Value: value, Source: s.sourceOn(at.system)}}
	}
	const sysctl, inProgram = "sysctl, every new connection of the host", "in the program, before connect() or listen()"
	const anyTime = "in the program"
	if at.system != Linux {
		return f.settingsElsewhere(s, at.system, v, one)
	}
	switch s.Action {
	case LargerWindows:
		if f.Windows != nil {
			return f.Windows
		}
	case WindowOfBDP:
		if window := f.window(); window > 0 {
			return one("TCP_WINDOW_CLAMP", anyTime, strconv.Itoa(window))
		}
	case OtherControl:
		return one("TCP_CONGESTION", inProgram, f.otherControl())
	case PaceBelow:
		if rate := cleanBps(&v); rate > 0 {
			return one("SO_MAX_PACING_RATE", anyTime, strconv.Itoa(int(rate/8)))
		}
	case ParallelFlows:
		return one("connections at once", anyTime, strconv.Itoa(streamsAtOnce(&v)))
	case SmallerSegment:
		if f.PassingMSS >= minMSS {
			return one("TCP_MAXSEG", inProgram, strconv.Itoa(f.PassingMSS))
		}
	case NoDelay:
		return one("TCP_NODELAY", inProgram, "1")
	case LowWater:
		return one("TCP_NOTSENT_LOWAT", anyTime, "131072")
	case InitialWindow:
		return f.initialWindows(s, at.end)
	case WindowScaling:
		return one("net.ipv4.tcp_window_scaling", sysctl, "1")
	case ProbeMTU:
		return one("net.ipv4.tcp_mtu_probing", sysctl, "1")
	case QuickAck:
		return one("quickack", "of the route to the other end: ip route change", "1")
	case AutotuningOn:
		return one("net.ipv4.tcp_moderate_rcvbuf", sysctl, "1")
	case NoIdleRestart:
		return one("net.ipv4.tcp_slow_start_after_idle", sysctl, "0")
	case ForgetMetrics:
		return one("net.ipv4.tcp_no_metrics_save", sysctl, "1")
	case MarkCongestion:
		return one("net.ipv4.tcp_ecn", sysctl, "1")
	}
	return []plan.Setting{}
}

// settingsElsewhere returns a step's settings on another system than Linux, except those that its words contain.
func (f *Facts) settingsElsewhere(s Step, system System, v verdict.Verdict,
	one func(name, where, value string) []plan.Setting) []plan.Setting {
	windows := system.Family() == Windows
	rate := cleanBps(&v)
	window := f.window()
	segments := f.initialWindow()
	passing := f.PassingMSS >= minMSS
	protocol := "ipv4"
	if f.PassingMTU > f.PassingMSS+model.IPHeaders {
		protocol = "ipv6"
	}
	switch {
	case s.Action == LargerWindows && f.Windows != nil:
		return f.Windows
	case s.Action == SmallerSegment && system == Windows2000:
		if passing && f.PassingMTU > f.PassingMSS {
			return one("MTU", `Tcpip\Parameters\Interfaces\{id}, DWORD, after a restart`, strconv.Itoa(f.PassingMTU))
		}
	case s.Action == ProbeMTU && system == Windows2000:
		return one("EnablePMTUBHDetect", `Tcpip\Parameters, DWORD, after a restart`, "1")
	case s.Action == WindowScaling && system == Windows2000:
		return one("Tcp1323Opts", `Tcpip\Parameters, DWORD, after a restart`, "1")
	case s.Action == QuickAck && (windows || system == Windows2000):
		return one("TcpAckFrequency", `Tcpip\Parameters\Interfaces\{id}, DWORD, after a restart`, "1")
	case s.Action == QuickAck:
		return one("net.inet.tcp.delayed_ack", "sysctl", "0")
	case s.Action == WindowOfBDP && window > 0:
		return one("SO_RCVBUF", "in the program, before connect() or listen()", strconv.Itoa(window))
	case s.Action == PaceBelow && windows && rate > 0:
		return one("ThrottleRateActionBitsPerSecond", "New-NetQosPolicy", strconv.Itoa(int(rate)))
	case s.Action == SmallerSegment && windows:
		if passing && f.PassingMTU > f.PassingMSS {
			return one("mtu", "netsh interface "+protocol+" set subinterface", strconv.Itoa(f.PassingMTU))
		}
	case s.Action == SmallerSegment && passing:
		return one("TCP_MAXSEG", "in the program, before connect() or listen()", strconv.Itoa(f.PassingMSS))
	case s.Action == InitialWindow && windows && segments > 0:
		const maxInitial = 64 // learn.microsoft.com, Set-NetTCPSetting: even, 2 to 64
		return one("InitialCongestionWindowMss", "Set-NetTCPSetting", strconv.Itoa(min(segments/2*2, maxInitial)))
	case s.Action == InitialWindow && segments > 0:
		return one("net.inet.tcp.initcwnd_segments", "sysctl", strconv.Itoa(segments))
	case s.Action == LowWater:
		return one("TCP_NOTSENT_LOWAT", "in the program", "131072")
	}
	return []plan.Setting{}
}

// window returns the window that fills the path; 0 where the path is not known.
func (f *Facts) window() int {
	if f.PathBps <= 0 || f.RTTS <= 0 || f.MSSBytes <= 0 {
		return 0
	}
	return model.Window(f.PathBps/8*f.RTTS, f.MSSBytes)
}

// otherControl is one that the sender does not use.
func (f *Facts) otherControl() string {
	if f.usesBBR() {
		return "cubic"
	}
	return "bbr"
}

// usesBBR reports that the sender's congestion control is a version of BBR.
func (f *Facts) usesBBR() bool { return strings.HasPrefix(f.Congestion, "bbr") }

// initialWindows returns the attributes of the route at an end, or at both.
func (f *Facts) initialWindows(s Step, end End) []plan.Setting {
	segments := f.initialWindow()
	all := []plan.Setting{}
	const where = "of the route to the other end: ip route change"
	value := strconv.Itoa(segments)
	if segments > 0 && end != Receiver {
		all = append(all, plan.Setting{Role: plan.Sender, Name: "initcwnd", Where: where, Value: value, Source: s.Source})
	}
	if segments > 0 && end != Sender {
		all = append(all, plan.Setting{Role: plan.Receiver, Name: "initrwnd", Where: where, Value: value, Source: s.Source})
	}
	return all
}
