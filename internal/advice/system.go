package advice

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// System is the kind of operating system that a fix is for. Its zero value is Linux, or not known.
type System string

// Systems whose words or settings differ from Linux's.
const (
	Linux       System = ""
	Windows     System = "windows"      // with BBR2, or of a version that is not known
	Windows10   System = "windows-10"   // and Vista to Server 2022: without BBR2
	Windows2000 System = "windows-2000" // and all before Vista: windows of one size, from the registry
	MacOS       System = "macos"
	FreeBSD     System = "freebsd"
)

// Systems lists them.
func Systems() []System { return []System{Linux, Windows, Windows10, Windows2000, MacOS, FreeBSD} }

// Family returns the system without its version.
func (s System) Family() System {
	if s == Windows10 {
		return Windows
	}
	return s
}

// firstBBR2 is the first build of Windows whose CongestionProvider may be BBR2: 11 22H2 (learn.microsoft.com,
// Set-NetTCPSetting).
const firstBBR2 = 22621

// firstVista is the major version of Windows Vista, which sizes windows by itself.
const firstVista = 6

// SystemOf returns the system of a kernel as an end of a transfer names it: "Linux 6.18.1", "windows 10.0.19045".
func SystemOf(kernel string) System {
	name, version, _ := strings.Cut(strings.ToLower(kernel), " ")
	switch name {
	case "windows-2000", "windows-9x":
		return Windows2000
	case "windows":
		numbers := strings.Split(version, ".")
		if major, err := strconv.Atoi(numbers[0]); err == nil && major < firstVista {
			return Windows2000
		}
		if build, err := strconv.Atoi(numbers[len(numbers)-1]); err == nil && build < firstBBR2 {
			return Windows10
		}
		return Windows
	case "darwin", "macos":
		return MacOS
	case "freebsd":
		return FreeBSD
	}
	return Linux
}

// elsewhere lists on which systems besides Linux an action exists whose words or settings are a system's own. Actions
// that are not in it are the same on every system.
var elsewhere = map[Action][]System{
	OtherControl:   {Windows, FreeBSD},
	WindowOfBDP:    {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	PaceBelow:      {Windows, Windows10, MacOS, FreeBSD},
	RemovePacing:   {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	RaiseShaper:    {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	LowWater:       {MacOS},
	SmallerSegment: {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	ProbeMTU:       {Windows2000, MacOS, FreeBSD},
	InitialWindow:  {Windows, Windows10, FreeBSD},
	AutotuningOn:   {},
	NoIdleRestart:  {},
	ForgetMetrics:  {FreeBSD},
	RaiseCeilings:  {Windows, Windows10, MacOS, FreeBSD},
	WindowScaling:  {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	ScaleAsOffered: {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	AnswerSYNs:     {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	FindDrops:      {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	ReorderLimit:   {},
	MarkCongestion: {Windows, Windows10, MacOS, FreeBSD},
	QuickAck:       {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	AskSender:      {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	AskReceiver:    {Windows, Windows10, Windows2000, MacOS, FreeBSD},
	CaptureSender:  {Windows, Windows10, Windows2000, MacOS, FreeBSD},
}

// options lists the systems that have a socket option which not every system has.
var options = map[string][]System{
	"TCP_CONGESTION":     {Linux},
	"SO_MAX_PACING_RATE": {Linux},
	"TCP_WINDOW_CLAMP":   {Linux},
	"TCP_MAXSEG":         {Linux, MacOS, FreeBSD},
}

// Has reports whether a system's programs can set a socket option, by its name on Linux. FreeBSD's
// TCP_CONGESTION chooses among controls that all take a loss for a full link; its BBR is a stack of
// its own.
func (s System) Has(option string) bool {
	systems, some := options[option]
	return !some || slices.Contains(systems, s)
}

// sources says where it is said that an action helps on another system, if Step.Source is of Linux.
var sources = map[Action]map[System]string{
	PaceBelow: {Windows: "RFC 2698; learn.microsoft.com: New-NetQosPolicy", MacOS: "RFC 2698; man dnctl(8)",
		FreeBSD: "RFC 2698; man ipfw(8)"},
	RemovePacing:  {Windows: qosPolicy, Windows2000: noThrottle, MacOS: "man dnctl(8)", FreeBSD: "man ipfw(8)"},
	RaiseShaper:   {Windows: qosPolicy, Windows2000: noThrottle, MacOS: "man dnctl(8)", FreeBSD: "man ipfw(8)"},
	LargerWindows: {Windows2000: "Microsoft knowledge base 224829, 214397"},
	LowWater:      {MacOS: "xnu: bsd/netinet/tcp.h, TCP_NOTSENT_LOWAT"},
	ProbeMTU: {Windows2000: "Windows 2000 Resource Kit: EnablePMTUBHDetect (cc960465)",
		MacOS:   "RFC 4821; xnu: bsd/netinet/tcp_timer.c, pmtud_blackhole_detection",
		FreeBSD: "RFC 4821; man tcp(4): pmtud_blackhole_detection"},
	InitialWindow: {Windows: "RFC 6928; learn.microsoft.com: Set-NetTCPSetting, New-NetTransportFilter",
		FreeBSD: "RFC 6928; man tcp(4): initcwnd_segments"},
	ForgetMetrics: {FreeBSD: "man tcp(4): hostcache.purgenow"},
	RaiseCeilings: {Windows: "learn.microsoft.com: Set-NetTCPSetting, netsh winsock",
		MacOS: "xnu: bsd/netinet/tcp_subr.c", FreeBSD: "man tcp(4): recvbuf_max, sendbuf_max"},
	SmallerSegment: {Windows2000: "RFC 2923; Microsoft knowledge base 314053"},
	WindowScaling:  {Windows2000: "RFC 7323; Microsoft knowledge base 224829"},
	QuickAck: {Windows: "Microsoft knowledge base 328890", Windows2000: "Microsoft knowledge base 328890",
		MacOS: "xnu: bsd/netinet/tcp_input.c, delayed_ack", FreeBSD: "man tcp(4): delayed_ack"},
	ScaleAsOffered: {Windows: scaleSource, Windows2000: scaleSource, MacOS: scaleSource, FreeBSD: scaleSource},
	AnswerSYNs: {Windows: "RFC 6298 section 5; learn.microsoft.com: listen",
		Windows2000: "RFC 6298 section 5; learn.microsoft.com: listen", MacOS: "RFC 6298 section 5; man listen(2)",
		FreeBSD: "RFC 6298 section 5; man listen(2)"},
	FindDrops: {Windows: "learn.microsoft.com: pktmon counters, Get-NetAdapterStatistics",
		Windows2000: "learn.microsoft.com: netstat", MacOS: "man netstat(1)", FreeBSD: "man netstat(1)"},
	AskSender: {Windows: "RFC 4898; learn.microsoft.com: GetPerTcpConnectionEStats",
		Windows2000: "RFC 9293 section 3.8.6", MacOS: "xnu: net.inet.tcp.pcblist_n", FreeBSD: "man netstat(1)"},
	AskReceiver: {Windows: "RFC 9293 section 3.8.6", Windows2000: "RFC 9293 section 3.8.6",
		MacOS: "man netstat(1)", FreeBSD: "man netstat(1)"},
}

const (
	qosPolicy   = "learn.microsoft.com: Get-NetQosPolicy"
	scaleSource = "RFC 7323 section 2.2; RFC 4987 section 3.6"
	noThrottle  = "Windows before Vista has no throttle of its own"
)

// sourceOn returns where it is said that a step helps on a system.
func (s Step) sourceOn(system System) string {
	return cmp.Or(sources[s.Action][system.Family()], s.Source)
}

// Specific reports whether the words or settings of an action are a system's own.
func (a Action) Specific() bool {
	_, specific := elsewhere[a]
	return specific
}

// existsOn reports whether a system has an action.
func (a Action) existsOn(s System) bool {
	systems, specific := elsewhere[a]
	return !specific || s == Linux || slices.Contains(systems, s)
}

// place is an end of a transfer and its system.
type place struct {
	end    End
	system System
}

// places returns where a step is to be done: at each end on its own where the systems differ and the step does too.
// It returns nil where no end's system has the step.
func (f *Facts) places(s Step) (all []place) {
	switch {
	case s.Action == LargerWindows && f.Sender == Windows2000 && f.Receiver == Windows2000:
		return []place{{s.End, Windows2000}}
	case !s.Action.Specific() || s.End == Between:
		return []place{{s.End, Linux}}
	case s.End == Sender:
		all = []place{{Sender, f.Sender}}
	case s.End == Receiver:
		all = []place{{Receiver, f.Receiver}}
	case f.Sender == f.Receiver:
		all = []place{{Both, f.Sender}}
	default:
		all = []place{{Sender, f.Sender}, {Receiver, f.Receiver}}
	}
	return slices.DeleteFunc(all, func(p place) bool {
		initial := s.Action == InitialWindow && p.system != Linux && p.end == Receiver // only Linux has initrwnd
		return initial || !s.Action.existsOn(p.system)
	})
}
