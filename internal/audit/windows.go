package audit

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

const (
	staticSendBuffer = 64 << 10 // bytes in flight on Windows 7 and later without dynamic send buffering

	// minIgnoredWindow is the TcpWindowSize of one interface that Windows 2000 does not use for connections that it
	// accepts (knowledge base 263088).
	minIgnoredWindow = 64240

	minWindowsMTU = 88 // a smaller value counts as this (knowledge base 120642)

	ethernetMTU  = 1500          // an interface's MTU without a value of its own
	perInterface = "Interfaces/" // begins the names of values of one interface: Interfaces/{id}/MTU
)

// windows judges the settings of the NetTCP cmdlets and the registry.
func (j *judge) windows() {
	template := j.template()
	local := cmp.Or(j.Values[template+"/AutoTuningLevelLocal"], j.Values["AutoTuningLevelLocal"])
	level := local
	f := Finding{Code: AutotuningLevel, Parameter: "AutoTuningLevelLocal",
		Command: "netsh int tcp set global autotuninglevel=normal"} // every version accepts it; some cmdlets refuse
	if strings.EqualFold(level, "Normal") {
		f.Command = j.planCommand()
	}
	if strings.EqualFold(j.Values["AutoTuningLevelEffective"], "GroupPolicy") {
		level = j.Values["AutoTuningLevelGroupPolicy"]
		f.Code = AutotuningLevelByPolicy
		f.Command = ""
		j.overridden = "AutoTuningLevelLocal"
		j.add(Finding{Grade: Risk, Code: GroupPolicy, Parameter: "AutoTuningLevelEffective", Value: "GroupPolicy",
			Confirmed: true, Source: "learn.microsoft.com: Get-NetTCPSetting",
			Args: []any{cmp.Or(level, "a level that was not read"), cmp.Or(local, "not read")}})
	}
	f.Value = level
	if window := plan.AutotuningWindow(level); window > 0 {
		f.Args = []any{level, Bytes(window)}
		j.limit(int64(window), f)
	}
	if strings.EqualFold(level, "Experimental") {
		j.add(Finding{Grade: Risk, Code: ExperimentalLevel, Parameter: f.Parameter, Value: level,
			Args:    []any{Bytes(plan.AutotuningWindow("Normal"))},
			Command: "netsh int tcp set global autotuninglevel=normal"})
	}
	if strings.EqualFold(j.Values["winsock autotuning"], "off") {
		j.limitSend(staticSendBuffer, Finding{Code: DynamicSendBufferOff, Parameter: "winsock autotuning", Value: "off",
			Command: "netsh winsock set autotuning on"})
	}
	j.customTemplates(template, local)
}

// datacenterRTT is the largest round trip of connections with the Datacenter template, by the template Automatic
// (learn.microsoft.com: Set-NetTCPSetting).
const datacenterRTT = 10 * time.Millisecond

// template returns the TCP template that connections on the path get without a transport filter.
func (j *judge) template() string {
	template := "Internet"
	if j.path.stated() && j.path.RTT <= datacenterRTT && j.Values["Datacenter/AutoTuningLevelLocal"] != "" {
		template = "Datacenter"
	}
	if strings.EqualFold(j.Values["Automatic/AutomaticUseCustom"], "Enabled") {
		template += "Custom"
	}
	return template
}

// customTemplates judges the templates that act only through a transport filter or AutomaticUseCustom. used is the
// template of the path, and level its autotuning level.
func (j *judge) customTemplates(used, level string) {
	for _, template := range []string{"InternetCustom", "DatacenterCustom", "Custom"} {
		custom := j.Values[template+"/AutoTuningLevelLocal"]
		if custom == "" || custom == level || template == used {
			continue
		}
		prefixes := j.filters(template)
		f := Finding{Grade: Inert, Code: UnusedTemplate, Parameter: "SettingName", Value: template,
			Command: "New-NetTransportFilter -SettingName " + template + " -DestinationPrefix …"}
		switch {
		case len(prefixes) > 0:
			window := plan.AutotuningWindow(custom)
			f := Finding{Code: FilteredTemplate, Parameter: "AutoTuningLevelLocal", Value: custom,
				Args:    []any{template, strings.Join(prefixes, ", "), Bytes(window)},
				Command: "Set-NetTCPSetting -SettingName " + template + " -AutoTuningLevelLocal Normal"}
			if bps, _, limits := j.goodput(int64(window), model.MaxWindow); limits {
				f.Grade = Risk // the path's address is not known
				f.Args = append(f.Args, j.path, units.Rate(bps))
				j.add(f)
			}
		case j.Values[filterCount] == "":
			f.Grade = Unknown
			f.Code = FiltersUnread
			f.Command = "Get-NetTransportFilter"
			j.add(f)
		default:
			j.add(f)
		}
	}
}

// filterCount names the number of transport filters, which the collector counts. A text without it says nothing about
// filters.
const filterCount = "filters"

// filters returns the destinations whose connections transport filters assign to the template.
func (j *judge) filters(template string) (prefixes []string) {
	for _, name := range slices.Sorted(maps.Keys(j.Values)) {
		if prefix, ok := strings.CutPrefix(name, "filter/"+template+"/"); ok {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// windows9x judges Windows 95, 98 and Me. All interfaces have the same receive window; programs set the send buffer.
func (j *judge) windows9x() {
	const name = "DefaultRcvWindow"
	if j.keys != nil && !j.keys[`vxd\mstcp`] {
		return
	}
	window, set := j.number(name)
	value := j.Values[name]
	if !set {
		window, _ = j.defaultNumber(catalog.Windows9x, name)
		value = "unset"
	}
	options, _ := j.number("Tcp1323Opts")
	if window > model.MaxUnscaled && options&1 == 0 {
		j.add(Finding{Grade: Risk, Code: UnscaledWindow, Parameter: "Tcp1323Opts",
			Value: cmp.Or(j.Values["Tcp1323Opts"], "unset"), Args: []any{name, value}, Command: j.scalingCommand()})
		window = model.MaxUnscaled
	}
	for _, maximum := range []string{"GlobalMaxTcpWindoSize", "GlobalMaxTcpWindowSize"} { // 98 reads the first
		if size, bounded := j.number(maximum); bounded && size > 0 && size < window {
			j.limitedBySetting(maximum, size, j.planCommand())
			return
		}
	}
	j.limit(wholeSegments(window), Finding{Code: FixedReceiveWindow, Parameter: name, Value: value,
		Args: []any{Bytes(window)}, Command: j.planCommand()})
}

// defaultNumber returns a parameter's default in this version, and whether sources disagree on it.
func (j *judge) defaultNumber(system, name string) (n int64, disputed bool) {
	entry, _ := catalog.Get(system, name)
	usual, _ := entry.DefaultFor(j.Version)
	n, _ = strconv.ParseInt(usual.Value, 10, 64)
	return n, usual.Unconfirmed
}

// limitedBySetting appends a finding that a setting limits every window to a size.
func (j *judge) limitedBySetting(name string, size int64, command string) {
	j.limit(size, Finding{Code: MaxWindowSetting, Parameter: name, Value: j.Values[name],
		Args: []any{name, Bytes(size)}, Command: command})
}

// windows2000 judges NT 4, 2000, XP and Server 2003. Their windows have a fixed size.
func (j *judge) windows2000() {
	canScale := j.Version == "" || catalog.AtLeast(j.Version, "5.0")
	options, _ := j.number("Tcp1323Opts")
	var names []string
	if j.keys == nil || j.keys[`tcpip\parameters`] {
		names = append(names, "TcpWindowSize")
	}
	for name := range j.Values {
		if strings.HasPrefix(name, perInterface) && strings.HasSuffix(name, "/TcpWindowSize") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	maximum, _ := j.number("GlobalMaxTcpWindowSize")
	if !canScale {
		maximum = 0 // NT 4 does not read it
	}
	for _, name := range names {
		j.checkWindows2000(name, canScale && options&1 != 0, maximum, len(names) > 1)
	}
	if j.keys != nil && !j.keys[`afd\parameters`] {
		return
	}
	send, set := j.number("DefaultSendWindow")
	value := j.Values["DefaultSendWindow"]
	if !set || send <= 0 {
		send = int64(model.AFDQuota(j.MemoryBytes))
		value = "unset"
	}
	j.limitSend(send, Finding{Code: AFDSendWindow, Parameter: "DefaultSendWindow", Value: value, Args: []any{Bytes(send)},
		Command: j.planCommand()})
}

// checkWindows2000 judges TcpWindowSize on Windows 2000 and XP: the host's, or an interface's, which has priority.
// maximum is GlobalMaxTcpWindowSize, 0 if not set. others reports whether an interface has its own value.
func (j *judge) checkWindows2000(name string, scales bool, maximum int64, others bool) {
	const parameter = "TcpWindowSize"
	window, set := j.number(name)
	f := Finding{Code: FixedReceiveWindow, Parameter: parameter, Value: j.Values[name], Command: j.planCommand()}
	id := ""
	if rest, isInterface := strings.CutPrefix(name, perInterface); isInterface {
		id = strings.TrimSuffix(rest, "/"+parameter)
		entry, _ := catalog.Get(catalog.Windows2000, parameter)
		f.Code = InterfaceReceiveWindow
		f.Args = []any{id}
		f.Command = j.registryCommand(entry, "unset", id) + "; then " + f.Command
	}
	if !set {
		if others || id != "" { // each interface that has its own was judged
			return
		}
		disputed := false
		window, disputed = j.defaultNumber(catalog.Windows2000, parameter)
		f.Value = "unset"
		if disputed {
			f.Code = DisputedReceiveWindow
		}
	}
	if set && window > model.MaxUnscaled && !scales {
		window = j.unscaled2000(window, name)
	}
	if id != "" && window >= minIgnoredWindow && j.Version != "" && !catalog.AtLeast(j.Version, "5.1") {
		j.add(Finding{Grade: Risk, Code: IgnoredInterfaceWindow, Parameter: parameter, Value: f.Value,
			Source: "Microsoft knowledge base 263088", Confirmed: true})
	}
	if maximum > 0 && maximum < window {
		j.limitedBySetting("GlobalMaxTcpWindowSize", maximum, f.Command)
		return
	}
	f.Args = append(f.Args, Bytes(window))
	j.limit(wholeSegments(window), f)
}

// wholeSegments returns a window of the registry as these systems round it.
func wholeSegments(window int64) int64 {
	return int64(plan.WholeSegments(int(min(window, model.MaxWindow)), plan.DefaultMSS))
}

// unscaled2000 appends the finding that a TcpWindowSize above 65,535 bytes lacks window scaling, and returns the
// effective window.
func (j *judge) unscaled2000(window int64, name string) int64 {
	f := Finding{Grade: Risk, Code: UnscaledWindow, Parameter: "Tcp1323Opts",
		Value: cmp.Or(j.Values["Tcp1323Opts"], "unset"), Args: []any{strings.TrimPrefix(name, perInterface), j.Values[name]},
		Command: j.scalingCommand()}
	switch {
	case j.Version != "" && !catalog.AtLeast(j.Version, "5.0"):
		f.Command = ""
		f.Code = UnscaledWindowNT4
		f.Source = "Microsoft knowledge base 199947"
		f.Confirmed = true
	case f.Value == "unset" && !catalog.AtLeast(j.Version, "5.1"): // a .reg file, without a version, may be of 2000
		f.Code = DisputedScaling
		f.Source = "Windows 2000 Resource Kit: TcpWindowSize (cc957546); Microsoft knowledge base 224829"
		j.add(f)
		return window
	}
	j.add(f)
	return model.MaxUnscaled
}

// scalingCommand returns the change that switches window scaling on, without timestamps.
func (j *judge) scalingCommand() string {
	entry, _ := catalog.Get(j.System, "Tcp1323Opts")
	return j.registryCommand(entry, "1", "")
}

// interfaceValues compares the values of single interfaces with the catalog, and their MTU with Ethernet's.
func (j *judge) interfaceValues() {
	for _, name := range slices.Sorted(maps.Keys(j.Values)) {
		rest, isInterface := strings.CutPrefix(name, perInterface)
		id, parameter, complete := strings.Cut(rest, "/")
		if !isInterface || !complete {
			continue
		}
		value := j.Values[name]
		if mtu, err := strconv.ParseInt(value, 0, 64); err == nil && strings.HasSuffix(parameter, "MTU") {
			j.interfaceMTU(parameter, value, mtu, id)
			continue
		}
		entry, known := catalog.Get(j.System, parameter)
		if !known {
			continue
		}
		if reason := entry.InertIn(j.Version); reason != "" {
			j.addInert(entry, value, id, reason)
		} else if harm := entry.HarmOf(value); harm != "" {
			j.add(Finding{Grade: Harmful, Code: HarmfulInterfaceSetting, Parameter: parameter, Value: value,
				Args: []any{harm, id}, Command: j.command(entry, j.safeValue(entry), id)})
		}
	}
}

// interfaceMTU judges an interface's own MTU. Ethernet's and 0xffffffff have no effect.
func (j *judge) interfaceMTU(parameter, value string, mtu int64, id string) {
	if mtu == ethernetMTU || mtu <= 0 || mtu >= math.MaxUint32 {
		return
	}
	if parameter == "MTU" {
		mtu = max(mtu, minWindowsMTU)
	}
	key := catalog.Parameter{Name: parameter,
		Where: `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`}
	f := Finding{Grade: Risk, Code: InterfaceMTUSmall, Parameter: parameter, Value: value,
		Args:    []any{mtu, headerPercent(int(mtu)), headerPercent(ethernetMTU), id},
		Command: j.registryCommand(key, "unset", id)}
	if mtu > ethernetMTU {
		f.Code = InterfaceMTULarge
		f.Args = []any{mtu, id}
	}
	j.add(f)
}

// windowsTarget returns the name by which plan knows a version.
func windowsTarget(version string) string {
	if version == "" {
		version = "10.0.22000"
	}
	for _, known := range []struct{ from, name string }{
		{"10.0.22000", "windows-11"}, {"10.0", "windows-10"}, {"6.3", "windows-8.1"}, {"6.2", "windows-8"},
		{"6.1", "windows-7"}, {"6.0", "windows-vista"},
		{"5.2", "server-2003"}, {"5.1", "windows-xp"}, {"5.0", "windows-2000"}, {"4.0", "windows-nt4"},
	} {
		if catalog.AtLeast(version, known.from) {
			return known.name
		}
	}
	return "windows-2000"
}
