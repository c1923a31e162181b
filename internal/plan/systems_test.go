package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Systems for which fullpipe only writes the text.
func TestOtherSystems(t *testing.T) {
	wan := Path{RateBps: 1000 * mbit, RTT: 100 * ms}
	for target, want := range map[string]map[string]string{
		"aix":     {"sb_max": "25001040", "tcp_sendspace": "12500520", "tcp_recvspace": "12500520", "rfc1323": "1"},
		"solaris": {"max_buf": "12503440", "_cwnd_max": "12500520", "send_buf": "12500520", "recv_buf": "12500520"},
		"illumos": {"max_buf": "12503440"},
		"netbsd":  {"kern.sbmax": "12500520", "net.inet.tcp.recvbuf_max": "12500520", "net.inet.tcp.sendbuf_max": "12500520"},
		"openbsd": {"SB_MAX": ""}, "windows-nt4": {"TcpWindowSize": "64240", "DefaultSendWindow": "64240", "Tcp1323Opts": ""},
	} {
		p := mustPlan(t, wan, target, Options{})
		for name, value := range want {
			if got := p.setting(name); got != value {
				t.Errorf("%s %s: %q, want %q", target, name, got, value)
			}
		}
	}
	if p := mustPlan(t, wan, "openbsd", Options{}); len(p.Warnings) == 0 || p.ExpectedBps > 0.2*p.CapacityBps {
		t.Errorf("OpenBSD's 2 MiB give %v of %v: %v", p.ExpectedBps, p.CapacityBps, p.Warnings)
	}
	aix := mustPlan(t, wan, "aix", Options{})
	text, err := aix.Text("shell", false, nil)
	if err != nil || !strings.Contains(string(text), "no -p -o tcp_recvspace=12500520\n") {
		t.Errorf("%v\n%s", err, text)
	}
}

// Facts of each system from its own documents: templates, registry keys, and whether fullpipe runs there.
func TestFactsOfSystems(t *testing.T) {
	wan := Path{RateBps: 300 * mbit, RTT: 60 * ms}
	for _, c := range []struct {
		target, has, lacks string // in the notes
	}{
		{"windows-8", "the template named Custom", "AutomaticUseCustom"},
		{"server-2012", string(GoUnsupported), "AutomaticUseCustom"},
		{"server-2012r2", "or AutomaticUseCustom", "named Custom"},
		{"windows-vista", string(GoUnsupported), ""},
		{"server-2016", "all templates can be set", string(GoUnsupported)},
		{"windows-nt4", `Services\{adapter}\Parameters\Tcpip`, "Interfaces"},
		{"windows-2000", `Interfaces\{id}`, "adapter"},
	} {
		notes := fmt.Sprint(mustPlan(t, wan, c.target, Options{}).Notes)
		if !strings.Contains(notes, c.has) || c.lacks != "" && strings.Contains(notes, c.lacks) {
			t.Errorf("%s: want %q and not %q in\n%s", c.target, c.has, c.lacks, notes)
		}
	}
	for target, want := range map[string]string{"windows-nt4": "", "windows-2000": "64240"} {
		p := mustPlan(t, Path{RateBps: 20 * mbit, RTT: 25 * ms}, target, Options{})
		if got := p.setting("GlobalMaxTcpWindowSize"); got != want || p.setting("TcpWindowSize") != "64240" {
			t.Errorf("%s: GlobalMaxTcpWindowSize %q, want %q; %+v", target, got, want, p.Settings)
		}
	}
}

// Every text that changes a registry says first how to save each key, and has steps to do it by hand.
func TestRegistriesAreSavedFirst(t *testing.T) {
	for target, keys := range map[string]int{"windows-95": 1, "windows-98": 2, "windows-me": 2, "windows-nt4": 2,
		"windows-2000": 2, "windows-xp": 2, "server-2003": 2} {
		p := mustPlan(t, Path{RateBps: 100 * mbit, RTT: 80 * ms}, target, Options{})
		reg, _ := p.Text("reg", false, nil)
		steps, err := p.Text("steps", false, nil)
		for _, text := range []string{decode(reg), string(steps), fmt.Sprint(p.Notes)} {
			if n := strings.Count(text, "regedit /e before") + strings.Count(text, "reg export "); err != nil || n != keys ||
				!strings.Contains(text, registryDanger) {
				t.Errorf("%s: %d keys are saved, want %d (%v):\n%s", target, n, keys, err, text)
			}
		}
		for _, s := range p.Settings {
			if !strings.Contains(string(steps), s.Name) || !strings.Contains(string(steps), s.Value) {
				t.Errorf("%s: no step for %s", target, s.Name)
			}
		}
	}
}

// TestWindowsRoutes checks that a plan for one destination of Windows does what was asked or refuses it.
func TestWindowsRoutes(t *testing.T) {
	path := Path{RateBps: 300 * mbit, RTT: 25 * ms}
	const prefix = "10.40.0.0/14"
	for name, c := range map[string]struct {
		target string
		route  Route
		refuse string // the argument; "" is done
		want   string // in the script
	}{
		"initial window":         {"server-2016", Route{Prefix: prefix, InitCwnd: 32}, "", "-InitialCongestionWindowMss 32"},
		"congestion control":     {"server-2025", Route{Prefix: prefix, Congestion: "dctcp"}, "", "Provider DCTCP"},
		"one template":           {"windows-8", Route{Prefix: prefix, InitCwnd: 8}, "", "-SettingName Custom"},
		"odd initial window":     {"server-2019", Route{Prefix: prefix, InitCwnd: 15}, "--initcwnd", ""},
		"larger than 64":         {"server-2019", Route{Prefix: prefix, InitCwnd: 66}, "--initcwnd", ""},
		"Linux's bbr":            {"windows-11", Route{Prefix: prefix, Congestion: "bbr"}, "--congestion", ""},
		"initial receive window": {"windows-10", Route{Prefix: prefix, InitRwnd: 20}, "--initrwnd", ""},
		"interface":              {"windows-10", Route{Prefix: prefix, Dev: "Ethernet"}, "--dev", ""},
		"next hop":               {"server-2022", Route{Prefix: prefix, Via: "10.0.0.1"}, "--via", ""},
		"bound window":           {"server-2022", Route{Prefix: prefix, Clamp: true}, "--clamp", ""},
		"default route":          {"server-2022", Route{Prefix: "default"}, "--route", ""},
		"without templates":      {"windows-7", Route{Prefix: prefix, InitCwnd: 8}, "--route", ""},
	} {
		p, err := New(path, mustTarget(t, c.target), Options{Route: c.route})
		if wrong, ok := err.(*ArgumentError); c.refuse != "" {
			if !ok || wrong.Argument != c.refuse {
				t.Errorf("%s: %v, want %s refused", name, err, c.refuse)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text, err := p.Text("powershell", false, nil)
		if err != nil || !strings.Contains(string(text), c.want) ||
			!strings.Contains(string(text), "DestinationPrefix "+prefix) {
			t.Errorf("%s: no %q in %s (%v)", name, c.want, text, err)
		}
		if _, err := p.Text("netsh", false, nil); err == nil {
			t.Errorf("%s: netsh sets the whole host", name)
		}
	}
}

// TestDefaultsSuffice checks that a plan whose settings are the system's defaults is said to have nothing to set.
func TestDefaultsSuffice(t *testing.T) {
	path := Path{RateBps: 250 * mbit, RTT: 70 * ms}
	for target, suffice := range map[string]bool{"server-2019": true, "windows-8.1": true, "windows-7": false} {
		p := mustPlan(t, path, target, Options{})
		noted := slices.ContainsFunc(p.Notes, func(s Statement) bool { return s.Code == DefaultsSuffice })
		if noted != suffice {
			t.Errorf("%s: noted %v, want %v", target, noted, suffice)
		}
	}
	p := mustPlan(t, path, "server-2019", Options{Values: map[string]string{"AutoTuningLevelLocal": "Disabled"}})
	if slices.ContainsFunc(p.Notes, func(s Statement) bool { return s.Code == DefaultsSuffice }) {
		t.Errorf("a host with autotuning off has something to set: %v", p.Notes)
	}
}

// TestParseTarget_Suggests checks that a name in other words leads to the system.
func TestParseTarget_Suggests(t *testing.T) {
	for name, want := range map[string]string{"win11": "windows-11", "win7": "windows-7", "win2022": "server-2022",
		"Server 2012 R2": "server-2012r2", "ws2008": "server-2008", "opnbsd": "openbsd", "linus": "linux", "plan9": ""} {
		_, err := ParseTarget(name)
		wrong, ok := err.(*ArgumentError)
		if !ok || strings.HasPrefix(wrong.Right, want+"; all: ") != (want != "") {
			t.Errorf("%s: %v, want %q first", name, err, want)
		}
	}
}
