package audit

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// windows judges the NetTCP cmdlets' answers and the registry.
func (j *judge) windows() {
	local := j.Values["AutoTuningLevelLocal"]
	policy := j.Values["AutoTuningLevelGroupPolicy"]
	level := local
	byPolicy := strings.EqualFold(j.Values["AutoTuningLevelEffective"], "GroupPolicy")
	fix := "netsh int tcp set global autotuninglevel=normal" // all versions take it, also those whose cmdlets refuse
	if strings.EqualFold(level, "Normal") {
		fix = j.planFix()
	}
	if byPolicy {
		level = policy
		fix = "change the group policy: a local setting does nothing"
		j.add(Finding{Grade: Risk, Parameter: "AutoTuningLevelEffective", Value: "GroupPolicy", Confirmed: true,
			Source: "learn.microsoft.com: Get-NetTCPSetting",
			Text: fmt.Sprintf("a group policy sets receive autotuning to %s; AutoTuningLevelLocal (%s) does nothing",
				or(policy, "a level that was not read"), or(local, "not read"))})
	}
	if window := plan.AutotuningWindow(level); window > 0 {
		j.caps("AutoTuningLevelLocal", level, int64(window), "autotuning level "+level+" ends at "+units.Size(window).Exact()+
			", which", fix)
	}
	if byPolicy {
		j.moot = "AutoTuningLevelLocal"
	}
	if strings.EqualFold(j.Values["winsock autotuning"], "off") {
		j.caps("winsock autotuning", "off", fixedSend, "dynamic send buffering is off: programs that set no SO_SNDBUF keep "+
			"at most 64 KiB in flight, which", "netsh winsock set autotuning on")
	}
	for _, template := range []string{"InternetCustom", "Custom"} {
		custom := j.Values[template+"/AutoTuningLevelLocal"]
		if custom != "" && custom != local && !j.hasFilter(template) {
			j.add(Finding{Grade: Inert, Parameter: "SettingName", Value: template,
				Text: "the template was changed, but no transport filter sends a connection to it",
				Fix:  "New-NetTransportFilter -SettingName " + template + " -DestinationPrefix …"})
		}
	}
}

func (j *judge) hasFilter(template string) bool {
	for name := range j.Values {
		if strings.HasPrefix(name, "filter/"+template+"/") {
			return true
		}
	}
	return false
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// fixedSend is the send buffer in bytes of Windows 7 and later without dynamic send buffering.
const fixedSend = 64 << 10

// windows9x judges Windows 95, 98 and Me, which have one receive window for all interfaces. A program sets its own
// send buffer.
func (j *judge) windows9x() {
	if j.keys != nil && !j.keys[`vxd\mstcp`] {
		return
	}
	entry, _ := catalog.Get(catalog.Windows9x, "DefaultRcvWindow")
	window, set := j.number("DefaultRcvWindow")
	value := j.Values["DefaultRcvWindow"]
	if !set {
		usual, _ := entry.DefaultFor(j.Version)
		window, _ = strconv.ParseInt(usual.Value, 10, 64)
		value = "unset"
	}
	options, _ := j.number("Tcp1323Opts")
	if window > model.MaxUnscaled && options&1 == 0 {
		j.add(Finding{Grade: Risk, Parameter: "Tcp1323Opts", Value: or(j.Values["Tcp1323Opts"], "unset"),
			Text: "DefaultRcvWindow is " + value + ", and without Tcp1323Opts bit 0 no window passes 65,535 bytes",
			Fix:  j.planFix()})
		window = model.MaxUnscaled
	}
	for _, name := range []string{"GlobalMaxTcpWindoSize", "GlobalMaxTcpWindowSize"} { // 98 reads the first
		if most, bounded := j.number(name); bounded && most > 0 && most < window {
			j.caps(name, j.Values[name], most, name+" ends every window at "+units.Size(most).Exact()+", which", j.planFix())
			return
		}
	}
	j.caps("DefaultRcvWindow", value, window, "the receive window of "+units.Size(window).Exact(), j.planFix())
}

// afdDefault is DefaultSendWindow where nothing sets it.
const afdDefault = 8192

// windows2000 judges 2000, XP and Server 2003, whose windows are of one size.
func (j *judge) windows2000() {
	canScale := j.Version == "" || catalog.AtLeast(j.Version, "5.0")
	options, _ := j.number("Tcp1323Opts")
	scales := canScale && options&1 != 0
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
	most, bounded := j.number("GlobalMaxTcpWindowSize")
	bounded = bounded && canScale // NT 4 does not read it
	for _, name := range names {
		j.window2000(name, scales, most, bounded, len(names) > 1)
	}
	if j.keys != nil && !j.keys[`afd\parameters`] {
		return
	}
	send, set := j.number("DefaultSendWindow")
	value := j.Values["DefaultSendWindow"]
	if !set || send <= 0 {
		send = afdDefault
		value = "unset"
	}
	j.caps("DefaultSendWindow", value, send, "programs that set no SO_SNDBUF have "+units.Size(send).Exact()+
		" and one write more under way (AFD), which", j.planFix())
}

// window2000 judges a host's window, or that of one interface, which wins over it.
func (j *judge) window2000(name string, scales bool, most int64, bounded, others bool) {
	entry, _ := catalog.Get(catalog.Windows2000, "TcpWindowSize")
	window, set := j.number(name)
	value := j.Values[name]
	what := ""
	fix := j.planFix()
	if id, of := strings.CutPrefix(name, perInterface); of {
		id = strings.TrimSuffix(id, "/TcpWindowSize")
		what = " of interface " + id
		fix = j.registryFix(entry, "unset", id) + "; then " + fix
	}
	if !set {
		if others { // each interface that has one of its own was judged
			return
		}
		usual, _ := entry.DefaultFor(j.Version)
		window, _ = strconv.ParseInt(usual.Value, 10, 64)
		value = "unset"
		if usual.Unconfirmed {
			what = " (or less: the default is disputed)"
		}
	}
	if set && window > model.MaxUnscaled && !scales {
		window = j.unscaled2000(window, what, j.Values[name])
	}
	ofOne := strings.HasPrefix(name, perInterface)
	if set && ofOne && window >= ignoredFrom && j.Version != "" && !catalog.AtLeast(j.Version, "5.1") {
		j.add(Finding{Grade: Risk, Parameter: "TcpWindowSize", Value: value,
			Source: "Microsoft knowledge base 263088", Confirmed: true,
			Text: "Windows 2000 takes an interface's value of 64,240 or more for connections that it opens, " +
				"and 17,520 bytes for those that it accepts",
			Fix: "set TcpWindowSize for the host, not for the interface"})
	}
	if bounded && most > 0 && most < window {
		j.caps("GlobalMaxTcpWindowSize", j.Values["GlobalMaxTcpWindowSize"], most,
			"GlobalMaxTcpWindowSize ends every window at "+units.Size(most).Exact()+", which", fix)
		return
	}
	j.caps("TcpWindowSize", value, window, "the receive window"+what+" of "+units.Size(window).Exact(), fix)
}

// unscaled2000 enters the finding that a TcpWindowSize above 65,535 bytes lacks window scaling, and returns the
// window that is left.
func (j *judge) unscaled2000(window int64, what, value string) int64 {
	f := Finding{Grade: Risk, Parameter: "Tcp1323Opts", Value: or(j.Values["Tcp1323Opts"], "unset"),
		Fix: "Tcp1323Opts 1 (3 with timestamps) at both ends, then a restart"}
	is := fmt.Sprintf("TcpWindowSize%s is %s, and ", what, value)
	switch {
	case j.Version != "" && !catalog.AtLeast(j.Version, "5.0"):
		f.Text = is + "NT 4 has no window scaling: no window passes 65,535 bytes"
		f.Fix = "TcpWindowSize 64240, or a later system"
		f.Source = "Microsoft knowledge base 199947"
		f.Confirmed = true
	case f.Value == "unset" && j.Version != "" && !catalog.AtLeast(j.Version, "5.1"):
		f.Text = is + "sources disagree whether Windows 2000 scales with Tcp1323Opts unset: " +
			"cc957546 says it does, knowledge base 224829 that no window passes 65,535 bytes"
		f.Source = "Windows 2000 Resource Kit: TcpWindowSize (cc957546); Microsoft knowledge base 224829"
		j.add(f)
		return window
	default:
		f.Text = is + "without Tcp1323Opts bit 0 no window passes 65,535 bytes"
	}
	j.add(f)
	return model.MaxUnscaled
}

// ignoredFrom is the per-interface TcpWindowSize that Windows 2000 does not use for
// connections that it accepts (knowledge base 263088).
const ignoredFrom = 64240

// perInterface begins the names of values of one interface: Interfaces/{id}/MTU.
const perInterface = "Interfaces/"

// faces holds the values of single interfaces against the catalog, and their MTU against
// what a path of Ethernet carries.
func (j *judge) faces() {
	for _, name := range slices.Sorted(maps.Keys(j.Values)) {
		rest, of := strings.CutPrefix(name, perInterface)
		id, parameter, whole := strings.Cut(rest, "/")
		if !of || !whole {
			continue
		}
		value := j.Values[name]
		where := " (interface " + id + ")"
		if mtu, err := strconv.ParseInt(value, 0, 64); err == nil && strings.HasSuffix(parameter, "MTU") {
			j.mtuOfInterface(parameter, value, mtu, id)
			continue
		}
		entry, known := catalog.Get(j.System, parameter)
		if !known {
			continue
		}
		if why := entry.InertIn(j.Version); why != "" {
			j.add(Finding{Grade: Inert, Parameter: parameter, Value: value, Text: "does nothing here: " + why + where,
				Fix: j.inertFix(entry, id)})
		} else if why := entry.HarmOf(value); why != "" {
			j.add(Finding{Grade: Harmful, Parameter: parameter, Value: value, Text: why + where,
				Fix: j.fix(entry, j.cure(entry), id)})
		}
	}
}

// ethernetMTU is what an interface has without a value of its own.
const ethernetMTU = 1500

// mtuOfInterface judges an interface's own MTU, whatever its size; that of Ethernet and 0xffffffff change nothing.
func (j *judge) mtuOfInterface(parameter, value string, mtu int64, id string) {
	if mtu == ethernetMTU || mtu <= 0 || mtu == math.MaxUint32 {
		return
	}
	text := fmt.Sprintf("packets of %d bytes: %.3g %% headers, %.3g %% with 1500 (interface %s)", mtu, 4000/float64(mtu),
		4000.0/ethernetMTU, id)
	if mtu > ethernetMTU {
		text = fmt.Sprintf("packets of %d bytes: more than Ethernet's 1500 pass only where every link of the way takes them "+
			"(interface %s)", mtu, id)
	}
	key := catalog.Parameter{Name: parameter, Where: `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`}
	j.add(Finding{Grade: Risk, Parameter: parameter, Value: value, Text: text,
		Fix: j.registryFix(key, "unset", id) + ", unless a tunnel needs it"})
}

// windowsTarget is the name by which plan knows a version.
func windowsTarget(version string) string {
	if version == "" {
		version = "10.0.22000"
	}
	for _, known := range []struct{ least, name string }{
		{"10.0.22000", "windows-11"}, {"10.0", "windows-10"}, {"6.3", "windows-8.1"}, {"6.2", "windows-8"},
		{"6.1", "windows-7"}, {"6.0", "windows-vista"},
		{"5.2", "server-2003"}, {"5.1", "windows-xp"}, {"5.0", "windows-2000"}, {"4.0", "windows-nt4"},
	} {
		if catalog.AtLeast(version, known.least) {
			return known.name
		}
	}
	return "windows-2000"
}

// bsd judges macOS and FreeBSD: the ceilings of the automatic buffers.
func (j *judge) bsd() {
	receive := "net.inet.tcp.recvbuf_max"
	send := "net.inet.tcp.sendbuf_max"
	largest := 1.0
	if j.System == catalog.MacOS {
		receive = "net.inet.tcp.autorcvbufmax"
		send = "net.inet.tcp.autosndbufmax"
	} else {
		largest = 2048.0 / 2304
	}
	fix := ""
	if j.path.stated() {
		fix = j.planFix()
	}
	for _, name := range []string{receive, send} {
		if n, ok := j.number(name); ok {
			j.caps(name, j.Values[name], n, fmt.Sprintf("%s %s", name, units.Size(n)), fix)
		}
	}
	if n, ok := j.number("kern.ipc.maxsockbuf"); ok {
		usable := int64(float64(n) * largest)
		j.caps("kern.ipc.maxsockbuf", j.Values["kern.ipc.maxsockbuf"], usable,
			fmt.Sprintf("kern.ipc.maxsockbuf %s, of which %s are usable,", units.Size(n), units.Size(usable)), fix)
	}
	for _, a := range []struct{ auto, start string }{
		{"net.inet.tcp.recvbuf_auto", "net.inet.tcp.recvspace"}, {"net.inet.tcp.sendbuf_auto", "net.inet.tcp.sendspace"},
		{"net.inet.tcp.doautorcvbuf", "net.inet.tcp.recvspace"}, {"net.inet.tcp.doautosndbuf", "net.inet.tcp.sendspace"},
	} {
		if n, ok := j.number(a.start); ok && j.Values[a.auto] == "0" {
			j.caps(a.auto, "0", n, fmt.Sprintf("automatic sizing is off: the buffer stays at %s, which", units.Size(n)),
				"sysctl "+a.auto+"=1")
		}
	}
	if j.Values["net.inet.tcp.rfc1323"] == "0" {
		j.caps("net.inet.tcp.rfc1323", "0", 65535, "no window scaling: 65,535 bytes, which", "sysctl net.inet.tcp.rfc1323=1")
	}
}
