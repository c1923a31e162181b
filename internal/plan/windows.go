package plan

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Which TCP templates Set-NetTCPSetting can change, by system.
const (
	onlyCustom      = "only the template named Custom can be set, and it acts only through New-NetTransportFilter"
	customTemplates = "only the Custom templates can be set, and they act only through New-NetTransportFilter or " +
		"AutomaticUseCustom"
	allTemplates          = "all templates can be set"
	fewTemplates          = "clients of Windows 10 refuse most templates: set, then read back"
	undocumentedTemplates = "which templates can be set is not documented: set, then read back"
)

// Largest windows of autotuning's levels, in bytes. Those of Restricted and
// Experimental are derived from their scale factors, 4 and 14.
var autotuning = []struct {
	level  string
	window int
}{
	{"Disabled", model.MaxUnscaled},
	{"HighlyRestricted", model.MaxUnscaled << 2},
	{"Restricted", model.MaxUnscaled << 4},
	{"Normal", model.MaxUnscaled << 8},
	{"Experimental", model.MaxUnscaled << 14},
}

// AutotuningWindow returns the largest window in bytes of a level of Windows' receive autotuning, 0 for an unknown
// level.
func AutotuningWindow(level string) int {
	for _, a := range autotuning {
		if strings.EqualFold(a.level, level) {
			return a.window
		}
	}
	return 0
}

// AutotuningLevel returns the level of Windows' receive autotuning below Normal whose largest window this is, in
// bytes, up to a hundredth; "" if it is none's. Disabled scales no window.
func AutotuningLevel(window int) string {
	for _, a := range autotuning[1:3] {
		if window <= a.window && window >= a.window-a.window/100 {
			return a.level
		}
	}
	return ""
}

// dynamicSendBuffers is the first version of Windows that sizes send buffers by itself (dynamic send buffering).
const dynamicSendBuffers = "6.1"

// windows plans for Vista, Server 2008 and later, which size windows by autotuning.
func (p *Plan) windows(v present, r Route) error {
	const level = "Normal" // Experimental's window scale makes some firewalls drop packets
	if err := r.checkWindows(); err != nil {
		return err
	}
	now := v.values["AutoTuningLevelLocal"]
	largest := max(AutotuningWindow(level), AutotuningWindow(now))
	if p.WindowBytes > largest && p.Role.has(Receiver) {
		p.warn(AutotuningEnds, units.Rate(model.Rate(largest, p.Path.RTT+p.Path.Jitter)),
			model.Connections(float64(p.WindowBytes), largest))
		p.WindowBytes = largest / (2 * p.Path.MSS) * 2 * p.Path.MSS
		p.derive()
	}
	if AutotuningWindow(now) < p.WindowBytes {
		p.set(v, Receiver, "AutoTuningLevelLocal", level)
	} else if p.Role.has(Receiver) {
		p.note(AutotuningSuffices, now, units.Size(AutotuningWindow(now)).Exact())
	}
	p.windowsRoute(v, r)
	if v.value("ScalingHeuristics") != "Disabled" && r.Prefix == "" {
		p.set(v, Receiver, "ScalingHeuristics", "Disabled")
	}
	if catalog.AtLeast(v.target.Version, dynamicSendBuffers) {
		if r.Prefix == "" {
			p.set(v, Sender, "winsock autotuning", "on")
		}
	} else if p.Role.has(Sender) {
		p.warn(NoDynamicSendBuffer, p.SendBytes)
	}
	if policy := v.value("AutoTuningLevelEffective"); strings.EqualFold(policy, "GroupPolicy") {
		p.warn(GroupPolicyForces)
	}
	if v.target.templates != "" {
		p.note(TemplatesOfTarget, v.target.templates)
	}
	p.note(RegistryIgnored)
	if p.Role.has(Receiver) {
		cap := AutotuningWindow("Restricted")
		p.note(RestrictedLowers, units.Size(cap).Exact(),
			units.Rate(model.Rate(cap, p.Path.RTT)))
		p.note(ReceiveBufferStopsAutotuning)
	}
	if p.Role.has(Sender) && catalog.AtLeast(v.target.Version, "10.0.14393") {
		p.note(InitialWindowIsDefault)
	}
	if !catalog.AtLeast(v.target.Version, "10.0") {
		p.note(GoUnsupported)
	}
	if r.Prefix == "" && p.setsDefaultsOnly(v) {
		p.note(DefaultsSuffice)
	}
	return nil
}

// setsDefaultsOnly reports whether every setting has the system's default.
func (p *Plan) setsDefaultsOnly(v present) bool {
	defaults := present{target: v.target}
	return len(p.Settings) > 0 && !slices.ContainsFunc(p.Settings, func(s Setting) bool {
		return s.Before != "" || !strings.EqualFold(defaults.value(s.Name), s.Value)
	})
}

// checkWindows refuses what a transport filter and a Custom template cannot do.
func (r Route) checkWindows() error {
	const right = "--route 10.2.0.0/16 with --initcwnd 16 or --congestion cubic"
	refused := func(argument, why string) error { return &ArgumentError{argument, why, right} }
	switch {
	case r.Prefix == "":
		return nil
	case r.Prefix == "default":
		return refused("--route", "a transport filter has a prefix; without --route the settings are the host's")
	case r.Via != "":
		return refused("--via", "a transport filter of Windows has no next hop")
	case r.Dev != "":
		return refused("--dev", "a transport filter of Windows has no interface")
	case r.InitRwnd != 0:
		return refused("--initrwnd", "Windows has no setting for the initial receive window")
	case r.Clamp:
		return refused("--clamp", "Windows has no setting that bounds the window to a size")
	case r.InitCwnd != 0 && (r.InitCwnd < 2 || r.InitCwnd > 64 || r.InitCwnd%2 != 0):
		return refused("--initcwnd", "Windows takes an even number of segments from 2 to 64")
	case r.Congestion != "" && windowsCongestion(r.Congestion) == "":
		return refused("--congestion", "Windows has NewReno, CTCP, DCTCP, CUBIC and, since 11 22H2, BBR2")
	}
	return nil
}

// windowsCongestion returns Windows' spelling of a congestion provider, "" if it has none of that name.
func windowsCongestion(name string) string {
	for _, known := range []string{"NewReno", "CTCP", "DCTCP", "CUBIC", "BBR2"} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return ""
}

// windowsRoute adds the settings of one destination's template.
func (p *Plan) windowsRoute(v present, r Route) {
	if r.InitCwnd > 0 {
		p.set(v, Sender, "InitialCongestionWindow", strconv.Itoa(r.InitCwnd))
	}
	if r.Congestion != "" {
		p.set(v, Sender, "CongestionProvider", windowsCongestion(r.Congestion))
	}
}

// noteTimestamps notes the share of a segment that RFC 7323 timestamps take.
func (p *Plan) noteTimestamps() {
	p.note(ScalingOptions, model.TimestampBytes, 100*float64(model.TimestampBytes)/float64(p.Path.MSS), p.Path.MSS,
		units.Time(model.RTT(1<<32, max(p.Path.RateBps, p.Path.BackBps))))
}

// largePool is the send buffer from which a few connections fill the non-paged pool of the
// systems before Vista, which ends at 256 MB on 32 bits.
const largePool = 16 << 20

// windows2000 plans for 2000, XP and Server 2003: fixed windows from the registry.
func (p *Plan) windows2000(v present, opt Options) {
	if most := 0x3fffffff / (2 * p.Path.MSS) * 2 * p.Path.MSS; max(p.WindowBytes, p.SendBytes) > most {
		p.WindowBytes = min(p.WindowBytes, most)
		p.SendBytes = min(p.SendBytes, most)
		p.derive()
	}
	if p.LargeWindows && !catalog.AtLeast(v.target.Version, "5.0") {
		p.boundUnscaled()
	}
	if p.LargeWindows {
		options := "1"
		if opt.Timestamps {
			options = "3"
		}
		p.set(v, Both, "Tcp1323Opts", options)
		p.noteTimestamps()
	}
	if p.changes(p.presentWindow, p.WindowBytes) {
		p.set(v, Receiver, "TcpWindowSize", dword(p.WindowBytes))
		p.set(v, Receiver, "GlobalMaxTcpWindowSize", dword(p.WindowBytes))
	} else if p.Role.has(Receiver) {
		p.note(ReceiveWindowSuffices, units.Size(p.presentWindow).Exact())
	}
	if p.changes(p.presentSend, p.SendBytes) {
		p.set(v, Sender, "DefaultSendWindow", dword(p.SendBytes))
	} else if p.Role.has(Sender) {
		p.note(SendWindowSuffices, units.Size(p.presentSend).Exact())
	}
	if send := p.SendBytes; send > largePool && p.Role.has(Sender) {
		p.warn(SendWindowTakesPool, units.Size(send))
	}
	if p.Role.has(Receiver) {
		p.note(InterfaceWindowWins, interfaceKey(v.target.Version))
	}
	if len(p.Settings) > 0 {
		p.note(OrInProgram, p.programSizes())
	}
	p.registryNotes(v.target)
	p.note(OnlyWritesFile)
}

// programSizes returns the socket options that give one program the plan's sizes.
func (p *Plan) programSizes() string {
	var options []string
	if p.Role.has(Sender) {
		options = append(options, "SO_SNDBUF "+strconv.Itoa(p.SendBytes))
	}
	if p.Role.has(Receiver) {
		options = append(options, "SO_RCVBUF "+strconv.Itoa(p.WindowBytes))
	}
	return strings.Join(options, " and ")
}

// interfaceKey is the registry key of one interface's values, below CurrentControlSet\Services\Tcpip\Parameters,
// or below Services on NT 4.
func interfaceKey(version string) string {
	if catalog.AtLeast(version, "5.0") {
		return `Interfaces\{id}`
	}
	return `Services\{adapter}\Parameters\Tcpip`
}

// boundUnscaled limits the windows to 65,535 bytes, for systems without window scaling.
func (p *Plan) boundUnscaled() {
	asked := p.largest()
	most := model.MaxUnscaled / p.Path.MSS * p.Path.MSS
	p.WindowBytes = min(p.WindowBytes, most)
	p.SendBytes = min(p.SendBytes, most)
	p.derive()
	p.warn(NoWindowScaling, units.Size(most).Exact(),
		units.Size(asked).Exact(), units.Rate(model.Rate(most, p.Path.RTT+p.Path.Jitter)))
}

// windows9x plans for 95, 98 and Me: one receive window for all interfaces.
func (p *Plan) windows9x(v present, opt Options) {
	scales := catalog.AtLeast(v.target.Version, "4.10")
	if p.LargeWindows && !scales {
		p.boundUnscaled()
	}
	if p.changes(p.presentWindow, p.WindowBytes) {
		p.set(v, Receiver, "DefaultRcvWindow", strconv.Itoa(p.WindowBytes))
	} else if p.Role.has(Receiver) {
		p.note(ReceiveWindowSuffices, units.Size(p.presentWindow).Exact())
	}
	for i := range p.Settings { // the value of the key itself; those of Parameters are always a DWORD
		p.Settings[i].Type = "dword"
		if catalog.AtLeast(v.target.Version, "4.0.1") {
			p.Settings[i].Type = "string"
		}
	}
	if v.target.Version == "4.0" && p.Role.has(Receiver) {
		p.note(WindowIsDword)
	}
	if scales && p.LargeWindows {
		p.set(v, Receiver, "GlobalMaxTcpWindowSize", strconv.Itoa(p.WindowBytes))
		p.set(v, Receiver, "GlobalMaxTcpWindoSize", strconv.Itoa(p.WindowBytes))
		options := "1"
		if opt.Timestamps {
			options = "3"
		}
		p.set(v, Both, "Tcp1323Opts", options)
		p.note(MisspeltName)
		if !catalog.AtLeast(v.target.Version, "4.90") {
			p.warn(CorrectedDriver)
		}
		p.noteTimestamps()
	}
	if p.Role.has(Sender) {
		p.note(SendBufferOfProgram, p.SendBytes)
	}
	p.note(OneWindowForAll)
	p.registryNotes(v.target)
	p.note(OnlyWritesFile)
}

// changes reports whether a fixed size for all connections changes: it is raised if the path needs more, and lowered
// only if memory or delay bounds it.
func (p *Plan) changes(now, wanted int) bool {
	return now < wanted || p.bounded && now > wanted
}

func dword(n int) string { return strconv.Itoa(n) }
