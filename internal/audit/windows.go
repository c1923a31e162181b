package audit

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// windows judges the NetTCP cmdlets' answers and the registry.
func (j *judge) windows() {
	local, policy := j.Values["AutoTuningLevelLocal"], j.Values["AutoTuningLevelGroupPolicy"]
	level, byPolicy := local, strings.EqualFold(j.Values["AutoTuningLevelEffective"], "GroupPolicy")
	fix := "Set-NetTCPSetting -SettingName Internet -AutoTuningLevelLocal Normal"
	if byPolicy {
		level, fix = policy, "change the group policy: a local setting does nothing"
		j.add(Finding{Grade: Risk, Parameter: "AutoTuningLevelEffective", Value: "GroupPolicy", Confirmed: true, Source: "learn.microsoft.com: Get-NetTCPSetting",
			Text: fmt.Sprintf("a group policy sets receive autotuning to %s; AutoTuningLevelLocal (%s) does nothing", or(policy, "a level that was not read"), or(local, "not read"))})
	}
	if window := plan.AutotuningWindow(level); window > 0 {
		j.caps("AutoTuningLevelLocal", level, int64(window), "autotuning level "+level+" ends at "+units.Size(window).Exact()+", which", fix)
	}
	if byPolicy {
		j.moot = "AutoTuningLevelLocal"
	}
	if custom := j.Values["InternetCustom/AutoTuningLevelLocal"]; custom != "" && custom != local && !j.hasFilter("InternetCustom") {
		j.add(Finding{Grade: Inert, Parameter: "SettingName", Value: "InternetCustom", Text: "the template was changed, but no transport filter sends a connection to it",
			Fix: "New-NetTransportFilter -SettingName InternetCustom -DestinationPrefix …"})
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

// windowsTarget is the name by which plan knows a version.
func windowsTarget(version string) string {
	for _, known := range []struct{ least, name string }{
		{"10.0.22000", "windows-11"}, {"10.0", "windows-10"}, {"6.3", "windows-8.1"}, {"6.2", "windows-8"}, {"6.1", "windows-7"}, {"6.0", "windows-vista"},
	} {
		if catalog.AtLeast(version, known.least) {
			return known.name
		}
	}
	return "windows-xp"
}

// bsd judges macOS and FreeBSD: the ceilings of the automatic buffers.
func (j *judge) bsd() {
	receive, send := "net.inet.tcp.recvbuf_max", "net.inet.tcp.sendbuf_max"
	largest := 1.0
	if j.System == catalog.MacOS {
		receive, send = "net.inet.tcp.autorcvbufmax", "net.inet.tcp.autosndbufmax"
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
		j.caps("kern.ipc.maxsockbuf", j.Values["kern.ipc.maxsockbuf"], usable, fmt.Sprintf("kern.ipc.maxsockbuf %s, of which %s are usable,", units.Size(n), units.Size(usable)), fix)
	}
	for _, a := range []struct{ auto, start string }{
		{"net.inet.tcp.recvbuf_auto", "net.inet.tcp.recvspace"}, {"net.inet.tcp.sendbuf_auto", "net.inet.tcp.sendspace"},
		{"net.inet.tcp.doautorcvbuf", "net.inet.tcp.recvspace"}, {"net.inet.tcp.doautosndbuf", "net.inet.tcp.sendspace"},
	} {
		if n, ok := j.number(a.start); ok && j.Values[a.auto] == "0" {
			j.caps(a.auto, "0", n, fmt.Sprintf("automatic sizing is off: the buffer stays at %s, which", units.Size(n)), "sysctl "+a.auto+"=1")
		}
	}
	if j.Values["net.inet.tcp.rfc1323"] == "0" {
		j.caps("net.inet.tcp.rfc1323", "0", 65535, "no window scaling: 65,535 bytes, which", "sysctl net.inet.tcp.rfc1323=1")
	}
}
