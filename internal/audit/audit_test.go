package audit

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

var wan = Path{RateBps: 1e9, RTT: 100 * time.Millisecond}

func linux(version string, values map[string]string) *Snapshot {
	all := map[string]string{"net.ipv4.tcp_rmem": "4096 131072 67108864", "net.ipv4.tcp_wmem": "4096 16384 67108864",
		"net.ipv4.tcp_moderate_rcvbuf": "1",
		"net.ipv4.tcp_window_scaling":  "1", "net.ipv4.tcp_mem": "287898 383867 575796", "net.core.rmem_max": "67108864",
		"net.core.wmem_max": "67108864"}
	for name, value := range values {
		all[name] = value
	}
	return &Snapshot{Schema: SnapshotSchema, System: catalog.Linux, Version: version, Values: all, MemoryBytes: 24 << 30,
		PageBytes: 4096}
}

func windows(version string, values map[string]string) *Snapshot {
	return &Snapshot{System: catalog.Windows, Version: version, Values: values}
}

func TestJudge_Findings(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot *Snapshot
		path     Path
		grade    Grade
		param    string
		code     Code   // "" expects no finding at all
		args     string // part of the printed values
	}{
		"a tuned host": {linux("6.18.1", nil), wan, "", "", "", ""},
		"a send buffer that caps": {linux("6.18.1", map[string]string{"net.ipv4.tcp_wmem": "4096 16384 4194304"}), wan,
			Limits, "net.ipv4.tcp_wmem", SendMax, "237 Mbit/s"},
		"half of the buffer is window before 6.6": {linux("6.1.0-13-amd64",
			map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}), wan, Limits, "net.ipv4.tcp_rmem",
			ReceiveMax, "252 Mbit/s"},
		"no cap on a short path": {linux("6.1", map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}),
			Path{RateBps: 1e8, RTT: 10 * time.Millisecond}, "", "", "", ""},
		"no path, no cap": {linux("6.1", map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}), Path{},
			"", "", "", ""},
		"no scaling": {linux("6.1", map[string]string{"net.ipv4.tcp_window_scaling": "0"}), wan, Limits,
			"net.ipv4.tcp_window_scaling", NoWindowScaling, "5.14 Mbit/s"},
		"no scaling, no path": {linux("6.1", map[string]string{"net.ipv4.tcp_window_scaling": "0"}), Path{}, Harmful,
			"net.ipv4.tcp_window_scaling", HarmfulSetting, "65,535"},
		"no autotuning": {linux("6.18", map[string]string{"net.ipv4.tcp_moderate_rcvbuf": "0"}), wan, Limits,
			"net.ipv4.tcp_moderate_rcvbuf", ReceiveAutotuningOff, "128 KiB"},
		"no timestamps": {linux("6.18", map[string]string{"net.ipv4.tcp_timestamps": "0"}), Path{}, Harmful,
			"net.ipv4.tcp_timestamps", HarmfulSetting, "wrapped"},
		"tw_recycle, old kernel": {linux("4.4", map[string]string{"net.ipv4.tcp_tw_recycle": "1"}), Path{}, Harmful,
			"net.ipv4.tcp_tw_recycle", HarmfulSetting, "NAT"},
		"adv_win_scale, new kernel": {linux("6.6", map[string]string{"net.ipv4.tcp_adv_win_scale": "2"}), Path{}, Inert,
			"net.ipv4.tcp_adv_win_scale", InertSetting, ""},
		"low_latency": {linux("5.4", map[string]string{"net.ipv4.tcp_low_latency": "1"}), Path{}, Inert,
			"net.ipv4.tcp_low_latency", InertSetting, "prequeue"},
		"large defaults": {linux("6.1", map[string]string{"net.ipv4.tcp_rmem": "4096 16777216 67108864"}),
			Path{}, Harmful, "net.ipv4.tcp_rmem", LargeDefault, "16 MiB"},
		"tcp_mem in bytes": {linux("6.1", map[string]string{"net.ipv4.tcp_mem": "8388608 12582912 16777216"}),
			Path{}, Harmful, "net.ipv4.tcp_mem", MemoryInPages, ""},
		"too many connections": {linux("6.1", nil), Path{RateBps: 1e9, RTT: 100 * time.Millisecond, Connections: 100},
			Risk, "net.ipv4.tcp_mem", MemoryForConnections, "100"},
		"rmem_max": {linux("6.1", map[string]string{"net.core.rmem_max": "212992"}), wan, Risk,
			"net.core.rmem_max", ProgramWindowMax, "SO_RCVBUF"},
		"a group policy": {windows("10.0.17763", map[string]string{"AutoTuningLevelLocal": "Normal",
			"AutoTuningLevelGroupPolicy": "Restricted", "AutoTuningLevelEffective": "GroupPolicy"}), wan, Limits,
			"AutoTuningLevelLocal", AutotuningLevelByPolicy, "83.8 Mbit/s"},
		"a group policy that wins": {windows("10.0.17763", map[string]string{"AutoTuningLevelLocal": "Disabled",
			"AutoTuningLevelGroupPolicy": "Normal", "AutoTuningLevelEffective": "GroupPolicy"}), wan, Risk,
			"AutoTuningLevelEffective", GroupPolicy, "Normal"},
		"autotuning off": {windows("6.2.9200", map[string]string{"AutoTuningLevelLocal": "Disabled",
			"AutoTuningLevelEffective": "Local"}), wan, Limits, "AutoTuningLevelLocal", AutotuningLevel, "5.14 Mbit/s"},
		"a registry value of Windows XP": {windows("6.2.9200", map[string]string{"TcpWindowSize": "1001560"}), Path{}, Inert,
			"TcpWindowSize", InertSetting, "autotuning replaced it"},
		"an AFD value on Windows 11": {windows("10.0.22631", map[string]string{"DefaultSendWindow": "1048576"}), Path{},
			Harmful, "DefaultSendWindow", HarmfulSetting, "delete it"},
		"an unused template": {windows("6.2.9200",
			map[string]string{"InternetCustom/AutoTuningLevelLocal": "Normal", "AutoTuningLevelLocal": "Restricted",
				"filters": "0"}), Path{},
			Inert, "SettingName", UnusedTemplate, ""},
		"Server 2012's only template": {windows("6.2.9200",
			map[string]string{"Custom/AutoTuningLevelLocal": "Experimental", "AutoTuningLevelLocal": "Normal",
				"filters": "0"}), Path{}, Inert, "SettingName", UnusedTemplate, ""},
		"a text that lists no filters": {windows("6.3.9600", map[string]string{
			"DatacenterCustom/AutoTuningLevelLocal": "Disabled", "AutoTuningLevelLocal": "Normal"}), wan,
			Unknown, "SettingName", FiltersUnread, ""},
		"a template that a filter assigns": {windows("10.0.17763", map[string]string{
			"InternetCustom/AutoTuningLevelLocal": "HighlyRestricted", "AutoTuningLevelLocal": "Normal", "filters": "1",
			"filter/InternetCustom/10.9.0.0/16": "TCP"}), Path{RateBps: 3e8, RTT: 50 * time.Millisecond}, Risk,
			"AutoTuningLevelLocal", FilteredTemplate, "10.9.0.0/16"},
		"AutomaticUseCustom": {windows("6.3.9600", map[string]string{"Automatic/AutomaticUseCustom": "Enabled",
			"InternetCustom/AutoTuningLevelLocal": "Restricted", "AutoTuningLevelLocal": "Normal", "filters": "0"}), wan,
			Limits, "AutoTuningLevelLocal", AutotuningLevel, "83.8 Mbit/s"},
		"the datacenter's template": {windows("10.0.20348", map[string]string{"filters": "0",
			"Datacenter/AutoTuningLevelLocal": "Disabled", "AutoTuningLevelLocal": "Normal"}),
			Path{RateBps: 1e10, RTT: 4 * time.Millisecond}, Limits, "AutoTuningLevelLocal", AutotuningLevel, "65535"},
		"the internet's template above 10 ms": {windows("10.0.20348", map[string]string{"filters": "0",
			"Datacenter/AutoTuningLevelLocal": "Disabled", "AutoTuningLevelLocal": "Normal"}),
			Path{RateBps: 1e9, RTT: 11 * time.Millisecond}, "", "", "", ""},
		"ForceWS before 2012 R2": {windows("6.2.9200", map[string]string{"ForceWS": "Disabled"}), Path{}, Inert, "ForceWS",
			InertSetting, "version 6.3 and later read it"},
		"FreeBSD's ceiling": {&Snapshot{System: catalog.FreeBSD, Version: "14.1",
			Values: map[string]string{"net.inet.tcp.recvbuf_max": "2097152"}}, wan, Limits, "net.inet.tcp.recvbuf_max",
			AutomaticBufferMax, "2 MiB"},
		"macOS's ceiling": {&Snapshot{System: catalog.MacOS, Version: "14.1",
			Values: map[string]string{"net.inet.tcp.autosndbufmax": "4194304"}}, wan, Limits, "net.inet.tcp.autosndbufmax",
			AutomaticBufferMax, "4 MiB"},
		"an unknown system": {&Snapshot{System: "plan9"}, wan, Unknown, "system", UnknownSystem, ""},
		"a route that clamps": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Routes: []Route{{"default", map[string]string{"window": "65536"}}}}, wan, Limits, "window",
			RouteWindow, "default"},
		"a slow port": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Default: true, SpeedBps: 1e8}}}, wan, Limits, "eth0", LinkRate, "100 Mbit/s"},
		"half duplex": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Duplex: "half"}}}, Path{}, Harmful, "eth0", HalfDuplex, ""},
		"missed packets": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Ring: &Ring{RX: 256, RXMax: 4096},
				Counters: map[string]int64{"rx_missed_errors": 50, "rx_packets": 1000}}}}, Path{}, Risk, "eth0",
			PacketsMissedByRing, "{50 1000} 256"},
		"a setting of an older kernel": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Configured: []Configured{{"/etc/sysctl.conf", "net.ipv4.tcp_tw_recycle", "1"}}}, Path{}, Inert,
			"net.ipv4.tcp_tw_recycle", RemovedSetting, "4.12"},
		"a setting that harms after boot": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Configured: []Configured{{"/etc/sysctl.conf", "net/ipv4/tcp_sack", "0"}}}, Path{}, Risk, "net.ipv4.tcp_sack",
			HarmfulAtBoot, ""},
		"a number that the kernel refuses": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Values:     map[string]string{"net.core.rmem_max": "212992"},
			Configured: []Configured{{"/etc/sysctl.conf", "net.core.rmem_max", "4294967296"}}}, Path{}, Risk,
			"net.core.rmem_max", ImpossibleAtBoot, "2147483647"},
		"a level whose scale firewalls drop": {windows("10.0.20348",
			map[string]string{"AutoTuningLevelLocal": "Experimental"}), wan, Risk, "AutoTuningLevelLocal", ExperimentalLevel,
			"16776960"},
		"an unknown setting": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Configured: []Configured{{"/etc/sysctl.conf", "net.ipv4.tcp_turbo", "1"}}}, Path{}, Unknown, "net.ipv4.tcp_turbo",
			UnknownSetting, ""},
		"a buffer set by a program": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Sockets: []Socket{{Local: "0.0.0.0:80", Program: "httpd", RecvBytes: 131072, RecvFixed: true}}}, wan, Limits,
			"SO_RCVBUF", ProgramBufferCaps, "httpd"},
		"a connection that waits": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Sockets: []Socket{{Local: "a:1", Remote: "b:2", BusyS: 10, RwndS: 9}}}, Path{}, Risk, "receive window",
			WaitedForWindow, "90 10s"},
		"a container": {&Snapshot{System: catalog.Linux, Version: "6.1", LimitBytes: 32 << 20}, wan, Risk,
			"memory.max", CgroupForConnections, ""},
		"a namespace": {&Snapshot{System: catalog.Linux, Version: "6.1", Namespace: true}, Path{}, Unknown,
			"namespace", NamespaceSettings, ""},
		"memory pressure": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Counters: map[string]int64{"TCPMemoryPressures": 30, "PruneCalled": 2}}, Path{}, Risk, "TCPMemoryPressures",
			MemoryPressure, "30"},
		"handshakes by SYN cookies": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Counters: map[string]int64{"SyncookiesSent": 4000}}, Path{}, Risk, "SyncookiesSent", SYNCookies, "4000"},
		"SYN cookies always": {linux("6.1", map[string]string{"net.ipv4.tcp_syncookies": "2"}), Path{}, Harmful,
			"net.ipv4.tcp_syncookies", HarmfulSetting, "no window passes 65,535 bytes"},
		"a number of more than 64 bits": {linux("6.1", map[string]string{"net.core.rmem_max": "99999999999999999999"}),
			Path{}, Harmful, "net.core.rmem_max", ImpossibleValue, "2304 to 2147483647"},
		"an impossible value with a harmful part": {linux("6.1", map[string]string{
			"net.ipv4.tcp_rmem": "8388608 131072 16384"}), Path{}, Harmful, "net.ipv4.tcp_rmem", ImpossibleValue, ""},
		"a shaper that caps": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Default: true, Qdisc: "tbf", ShapeBps: 1e8}}}, wan, Limits, "eth0",
			ShaperRate, "100 Mbit/s"},
		"a shaper": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Default: true, Qdisc: "htb"}}}, Path{}, Risk, "eth0", ShaperConfigured, ""},
		"a queue that drops": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Counters: map[string]int64{"qdisc_packets": 1000, "qdisc_dropped": 20}}}},
			Path{}, Risk, "eth0", PacketsDroppedQueued, "{20 1000}"},
		"a container's own values": {func() *Snapshot {
			s := linux("6.1", nil)
			s.Namespaces = []Namespace{{PID: 7, Program: "nginx",
				Values: map[string]string{"net.ipv4.tcp_wmem": "4096 16384 4194304"}}}
			return s
		}(), wan, Risk, "net.ipv4.tcp_wmem", OtherNamespace, "nginx"},
		"an unread value": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Unread: []string{"sockets: permission denied"}}, Path{}, Unknown, "snapshot", Unread, "permission denied"},
	} {
		found := Judge(c.snapshot, c.path)
		if c.code == "" {
			if len(found) != 0 {
				t.Errorf("%s: %+v", name, found)
			}
			continue
		}
		ok := false
		for i, f := range found {
			if i > 0 && found[0].Code == ImpossibleValue && f.Grade == Harmful && f.Parameter == found[0].Parameter {
				t.Errorf("%s: two findings on %s: %+v", name, f.Parameter, found)
			}
			ok = ok || f.Grade == c.grade && f.Parameter == c.param && f.Code == c.code &&
				strings.Contains(fmt.Sprint(f.Args...), c.args)
			if (f.CostBps > 0) != (f.CapBps > 0) || f.CostBps < 0 || f.CostBps > c.path.RateBps {
				t.Errorf("%s: costs %v with a cap of %v", name, f.CostBps, f.CapBps)
			}
		}
		if !ok {
			t.Errorf("%s: no %s finding %s on %s with %q among %+v", name, c.grade, c.code, c.param, c.args, found)
		}
	}
}

// TestJudge_WindowsBeforeVista checks windows of a fixed size from the registry.
func TestJudge_WindowsBeforeVista(t *testing.T) {
	long := Path{RateBps: 1e8, RTT: 80 * time.Millisecond}
	old := func(system, version string, values map[string]string) *Snapshot {
		return &Snapshot{System: system, Version: version, Values: values}
	}
	tuned := map[string]string{"TcpWindowSize": "1001560", "GlobalMaxTcpWindowSize": "1001560", "Tcp1323Opts": "1",
		"DefaultSendWindow": "1001560"}
	with := func(name, value string) map[string]string {
		all := maps.Clone(tuned)
		if all[name] = value; value == "" {
			delete(all, name)
		}
		return all
	}
	for name, c := range map[string]struct {
		snapshot *Snapshot
		grade    Grade
		param    string
		code     Code   // "" expects no finding at all
		args     string // part of the printed values
	}{
		"XP without settings: window": {old("windows", "5.1.2600", nil), Limits, "TcpWindowSize",
			DisputedReceiveWindow, "6.4 Mbit/s"},
		"XP without settings: AFD": {old("windows", "5.1.2600", nil), Limits, "DefaultSendWindow",
			AFDSendWindow, "8192"},
		"2000 without settings": {old("windows-2000", "5.0.2195", nil), Limits, "TcpWindowSize",
			FixedReceiveWindow, "1.75 Mbit/s"},
		"2000, tuned": {old("windows", "5.0.2195", tuned), "", "", "", ""},
		"2003, tuned": {old("windows-2000", "5.2.3790", tuned), "", "", "", ""},
		"a window without scaling": {old("windows", "5.2.3790", with("Tcp1323Opts", "")), Risk, "Tcp1323Opts",
			UnscaledWindow, "1001560"},
		"Windows 2000 with scaling unset": {old("windows", "5.0.2195", with("Tcp1323Opts", "")), Risk, "Tcp1323Opts",
			DisputedScaling, ""},
		"a file that may be of Windows 2000": {old("windows-2000", "", with("Tcp1323Opts", "")), Risk, "Tcp1323Opts",
			DisputedScaling, "1001560"},
		"NT 4 with a scaled window": {old("windows-2000", "4.0.1381", with("TcpWindowSize", "262800")), Risk, "Tcp1323Opts",
			UnscaledWindowNT4, "262800"},
		"NT 4 with a key of 2000": {old("windows-2000", "4.0.1381", map[string]string{"GlobalMaxTcpWindowSize": "262800"}),
			Inert, "GlobalMaxTcpWindowSize", InertSetting, "version 5.0 and later read it"},
		"timestamps without scaling": {old("windows", "5.1.2600", with("Tcp1323Opts", "2")), Limits, "TcpWindowSize",
			FixedReceiveWindow, "65535"},
		"a maximum below the window": {old("windows", "5.1.2600", with("GlobalMaxTcpWindowSize", "131400")), Limits,
			"GlobalMaxTcpWindowSize", MaxWindowSetting, "131400"},
		"an interface's own window": {old("windows", "5.1.2600", with("Interfaces/{4D36}/TcpWindowSize", "17520")), Limits,
			"TcpWindowSize", InterfaceReceiveWindow, "17520"},
		"a window that 2000 uses in one direction": {old("windows", "5.0.2195",
			with("Interfaces/{4D36}/TcpWindowSize", "1001560")), Risk,
			"TcpWindowSize", IgnoredInterfaceWindow, ""},
		"an interface's small packet": {old("windows", "5.1.2600", with("Interfaces/{4D36}/MTU", "576")), Risk, "MTU",
			InterfaceMTUSmall, "576"},
		"no path MTU discovery": {old("windows", "5.0.2195", with("EnablePMTUDiscovery", "0")), Harmful,
			"EnablePMTUDiscovery", HarmfulSetting, "576-byte packets"},
		"an interface's window on Windows 10": {old("windows", "10.0.17763",
			map[string]string{"Interfaces/{4D36}/TcpWindowSize": "65535"}), Inert, "TcpWindowSize",
			InertInterfaceSetting, "{4D36}"},
	} {
		found := Judge(c.snapshot, long)
		if c.code == "" {
			if len(found) != 0 {
				t.Errorf("%s: %+v", name, found)
			}
			continue
		}
		if !slices.ContainsFunc(found, func(f Finding) bool {
			return f.Grade == c.grade && f.Parameter == c.param && f.Code == c.code &&
				strings.Contains(fmt.Sprint(f.Args...), c.args)
		}) {
			t.Errorf("%s: no %s finding %s on %s with %q among %+v", name, c.grade, c.code, c.param, c.args, found)
		}
	}
	here := old("windows", "5.1.2600", nil)
	here.Here = true
	if fix := Judge(here, long)[0].Command; !strings.HasPrefix(fix, "fullpipe plan --rate 100Mbit/s --rtt 80ms") ||
		strings.Contains(fix, "--target") {
		t.Errorf("the cure of the host that asks: %q", fix)
	}
	found := Judge(old("windows", "5.1.2600", nil), long)
	if fix := found[0].Command; !strings.HasPrefix(fix, "fullpipe plan --rate 100Mbit/s --rtt 80ms --target windows-xp") {
		t.Errorf("the cure of XP: %q", fix)
	}
	for _, version := range []string{"6.0.6002", "6.1.7601", "6.2.9200", "6.3.9600", "10.0.19045"} {
		found := Judge(windows(version, map[string]string{"AutoTuningLevelLocal": "Disabled"}), long)
		if len(found) == 0 || strings.Contains(found[0].Command, "Set-NetTCPSetting") {
			t.Errorf("%s: a cmdlet that refuses is no cure: %+v", version, found)
		}
	}
}

func TestJudge_OrderByCost(t *testing.T) {
	s := linux("6.1", map[string]string{"net.ipv4.tcp_wmem": "4096 16384 4194304", "net.ipv4.tcp_window_scaling": "0",
		"net.ipv4.tcp_sack": "0", "net.ipv4.tcp_low_latency": "1"})
	var order []string
	for _, f := range Judge(s, wan) {
		order = append(order, f.Parameter)
	}
	want := "net.ipv4.tcp_window_scaling net.ipv4.tcp_wmem net.ipv4.tcp_sack net.ipv4.tcp_low_latency"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("order %s, want %s", got, want)
	}
}

func TestJudge_KeepsSnapshot(t *testing.T) {
	s := windows("10.0.17763", map[string]string{"AutoTuningLevelLocal": "Disabled",
		"AutoTuningLevelEffective": "GroupPolicy"})
	Judge(s, wan)
	if len(s.Values) != 2 {
		t.Errorf("the snapshot is now %v", s.Values)
	}
}

func TestCollectShell(t *testing.T) {
	testenv.Need(t, testenv.Unix)
	cmd := exec.Command("sh")
	cmd.Stdin = strings.NewReader(CollectShell)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("collect.sh: %v", err)
	}
	s, err := ParseSnapshot(out)
	if err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if s.MemoryBytes < 1<<20 || s.Version == "" || len(s.Values) < 3 {
		t.Errorf("memory %d, version %q, %d values", s.MemoryBytes, s.Version, len(s.Values))
	}
	if runtime.GOOS == "linux" {
		want, err := os.ReadFile("/proc/sys/net/ipv4/tcp_rmem")
		if err != nil || s.Values["net.ipv4.tcp_rmem"] != strings.Join(strings.Fields(string(want)), " ") {
			t.Errorf("tcp_rmem %q, the kernel says %q", s.Values["net.ipv4.tcp_rmem"], want)
		}
	}
	Judge(s, wan)
}

func TestParseSnapshot_Rejects(t *testing.T) {
	for _, text := range []string{"", "{}", `{"schema":"fullpipe/plan/v1"}`, "hello",
		"fullpipe-snapshot 1\nmemory many\nsystem linux", "fullpipe-snapshot 1\n",
		"Windows Registry Editor Version 5.00\r\n\r\n; nothing to change\r\n", "REGEDIT4\r\n",
		"----\nStart Port : 49152\nNumber of Ports : 16384\n", "----\nIfLuid : ethernet_32768\nIfIndex : 12\n",
		netTCPSetting + strings.Repeat("a:b\n", maxWindowsText/4), "SettingName:" + strings.Repeat("x", maxWindowsLine)} {
		if s, err := ParseSnapshot([]byte(text)); err == nil {
			t.Errorf("%.100q was accepted: %+v", text, s)
		}
	}
}

func FuzzParseSnapshot(f *testing.F) {
	f.Add([]byte("fullpipe-snapshot 1\nsystem linux\nversion 6.1\nvalue net.ipv4.tcp_rmem 1 2 3\ninterface eth0 mtu " +
		"1500 speed_mbit -1 rx_errors -\nroute default window lock 1 cwnd\n"))
	f.Add([]byte(`{"schema":"fullpipe/snapshot/v1","system":"windows","version":"6.2","values":{"AutoTuningLevelLocal":"Disabled"}}`))
	for _, text := range []string{savedTcpip, germanNetsh, netTCPSetting, batch, batch2000, saved98, savedNT4,
		frenchHeuristics} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseSnapshot(text)
		if err != nil {
			return
		}
		for _, found := range Judge(s, wan) {
			if found.Code == "" || found.Parameter == "" {
				t.Errorf("an empty finding: %+v", found)
			}
		}
	})
}

func TestMaxBuffers(t *testing.T) {
	s := linux("6.1", nil)
	check := func(wantBytes int64, wantParameter string) {
		t.Helper()
		if bytes, parameter := s.MaxBuffers(); bytes != wantBytes || parameter != wantParameter {
			t.Errorf("%d bytes by %q, want %d by %q", bytes, parameter, wantBytes, wantParameter)
		}
	}
	check(383867*4096/2, "net.ipv4.tcp_mem") // half of the pressure mark
	s.LimitBytes = 1 << 30
	check(1<<29, "memory.max")
	s = &Snapshot{MemoryBytes: 1 << 35}
	check(1<<30, "")
	s = &Snapshot{}
	check(0, "")
}

func TestOverridden(t *testing.T) {
	s := &Snapshot{Configured: []Configured{{"/a", "x", "1"}, {"/b", "x", "2"}, {"/b", "y", "3"}}}
	for _, c := range []struct{ file, name, want string }{{"/a", "x", "/b"}, {"/b", "x", ""}, {"/c", "y", "/b"},
		{"/c", "z", ""}} {
		if got := s.Overridden(c.file, c.name); got != c.want {
			t.Errorf("%s in %s is overridden by %q, want %q", c.name, c.file, got, c.want)
		}
	}
}
