package plan

import (
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

// dynamicSendBuffers is the first version of Windows that sizes send buffers by itself (dynamic send buffering).
const dynamicSendBuffers = "6.1"

// windows plans for Vista, Server 2008 and later, which size windows by autotuning.
func (p *Plan) windows(v present) {
	const level = "Normal" // Experimental's window scale makes some firewalls drop packets
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
	if v.value("ScalingHeuristics") != "Disabled" {
		p.set(v, Receiver, "ScalingHeuristics", "Disabled")
	}
	if catalog.AtLeast(v.target.Version, dynamicSendBuffers) {
		p.set(v, Sender, "winsock autotuning", "on")
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
	p.registryNotes(v.target)
	p.note(OnlyWritesFile)
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
