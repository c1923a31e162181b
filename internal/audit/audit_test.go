package audit

import (
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

func TestFindings(t *testing.T) {
	for name, c := range map[string]struct {
		snapshot *Snapshot
		path     Path
		grade    Grade
		param    string
		text     string // "" demands that there is no finding at all
	}{
		"a tuned host": {linux("6.18.1", nil), wan, "", "", ""},
		"a send buffer that caps": {linux("6.18.1", map[string]string{"net.ipv4.tcp_wmem": "4096 16384 4194304"}), wan,
			Limits, "net.ipv4.tcp_wmem", "tcp_wmem max 4 MiB caps 1 Gbit/s x 100 ms at 237 Mbit/s"},
		"half is window before 6.6": {linux("6.1.0-13-amd64",
			map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}), wan, Limits, "net.ipv4.tcp_rmem",
			"a window of 3 MiB, caps 1 Gbit/s x 100 ms at 252 Mbit/s"},
		"no cap on a short path": {linux("6.1", map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}),
			Path{RateBps: 1e8, RTT: 10 * time.Millisecond}, "", "", ""},
		"no path, no cap": {linux("6.1", map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}), Path{},
			"", "", ""},
		"no scaling": {linux("6.1", map[string]string{"net.ipv4.tcp_window_scaling": "0"}), wan, Limits,
			"net.ipv4.tcp_window_scaling", "at 5.24 Mbit/s"},
		"no scaling, no path": {linux("6.1", map[string]string{"net.ipv4.tcp_window_scaling": "0"}), Path{}, Harmful,
			"net.ipv4.tcp_window_scaling", "65,535"},
		"no autotuning": {linux("6.18", map[string]string{"net.ipv4.tcp_moderate_rcvbuf": "0"}), wan, Limits,
			"net.ipv4.tcp_moderate_rcvbuf", "stays at 128 KiB"},
		"no timestamps": {linux("6.18", map[string]string{"net.ipv4.tcp_timestamps": "0"}), Path{}, Harmful,
			"net.ipv4.tcp_timestamps", "wrapped"},
		"tw_recycle, old kernel": {linux("4.4", map[string]string{"net.ipv4.tcp_tw_recycle": "1"}), Path{}, Harmful,
			"net.ipv4.tcp_tw_recycle", "NAT"},
		"adv_win_scale, new kernel": {linux("6.6", map[string]string{"net.ipv4.tcp_adv_win_scale": "2"}), Path{}, Inert,
			"net.ipv4.tcp_adv_win_scale", "does nothing here"},
		"low_latency": {linux("5.4", map[string]string{"net.ipv4.tcp_low_latency": "1"}), Path{}, Inert,
			"net.ipv4.tcp_low_latency", "prequeue"},
		"large defaults": {linux("6.1", map[string]string{"net.ipv4.tcp_rmem": "4096 16777216 67108864"}),
			Path{}, Harmful, "net.ipv4.tcp_rmem", "a default of 16 MiB belongs to every socket"},
		"tcp_mem in bytes": {linux("6.1", map[string]string{"net.ipv4.tcp_mem": "8388608 12582912 16777216"}),
			Path{}, Harmful, "net.ipv4.tcp_mem", "its unit is pages"},
		"too many connections": {linux("6.1", nil), Path{RateBps: 1e9, RTT: 100 * time.Millisecond, Connections: 100},
			Risk, "net.ipv4.tcp_mem", "100 connections"},
		"rmem_max": {linux("6.1", map[string]string{"net.core.rmem_max": "212992"}), wan, Risk,
			"net.core.rmem_max", "SO_RCVBUF"},
		"a policy": {windows("10.0.17763", map[string]string{"AutoTuningLevelLocal": "Normal",
			"AutoTuningLevelGroupPolicy": "Restricted", "AutoTuningLevelEffective": "GroupPolicy"}), wan, Limits,
			"AutoTuningLevelLocal", "level Restricted ends at 1,048,560 bytes, which caps 1 Gbit/s x 100 ms at 83.9 Mbit/s"},
		"a policy that outweighs": {windows("10.0.17763", map[string]string{"AutoTuningLevelLocal": "Disabled",
			"AutoTuningLevelGroupPolicy": "Normal", "AutoTuningLevelEffective": "GroupPolicy"}), wan, Risk,
			"AutoTuningLevelEffective", "a group policy sets receive autotuning to Normal"},
		"autotuning off": {windows("6.2.9200", map[string]string{"AutoTuningLevelLocal": "Disabled",
			"AutoTuningLevelEffective": "Local"}), wan, Limits, "AutoTuningLevelLocal", "5.24 Mbit/s"},
		"the registry of old": {windows("6.2.9200", map[string]string{"TcpWindowSize": "1001560"}), Path{}, Inert,
			"TcpWindowSize", "autotuning replaced it"},
		"AFD today": {windows("10.0.22631", map[string]string{"DefaultSendWindow": "1048576"}), Path{},
			Harmful, "DefaultSendWindow", "delete it"},
		"a template nobody uses": {windows("6.2.9200",
			map[string]string{"InternetCustom/AutoTuningLevelLocal": "Normal", "AutoTuningLevelLocal": "Restricted"}), Path{},
			Inert, "SettingName", "no transport filter"},
		"Server 2012's one template": {windows("6.2.9200",
			map[string]string{"Custom/AutoTuningLevelLocal": "Experimental", "AutoTuningLevelLocal": "Normal"}), Path{},
			Inert, "SettingName", "no transport filter"},
		"ForceWS before 2012 R2": {windows("6.2.9200", map[string]string{"ForceWS": "Disabled"}), Path{}, Inert, "ForceWS",
			"version 6.3 and later read it"},
		"FreeBSD's ceiling": {&Snapshot{System: catalog.FreeBSD, Version: "14.1",
			Values: map[string]string{"net.inet.tcp.recvbuf_max": "2097152"}}, wan, Limits, "net.inet.tcp.recvbuf_max",
			"2 MiB caps"},
		"macOS's ceiling": {&Snapshot{System: catalog.MacOS, Version: "14.1",
			Values: map[string]string{"net.inet.tcp.autosndbufmax": "4194304"}}, wan, Limits, "net.inet.tcp.autosndbufmax",
			"4 MiB caps"},
		"a system that nobody knows": {&Snapshot{System: "plan9"}, wan, Unknown, "system", "knows nothing"},
		"a route that clamps": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Routes: []Route{{"default", map[string]string{"window": "65536"}}}}, wan, Limits, "window",
			"the route to default clamps"},
		"a slow port": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Default: true, SpeedBps: 1e8}}}, wan, Limits, "eth0", "100 Mbit/s"},
		"half duplex": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Duplex: "half"}}}, Path{}, Harmful, "eth0", "collide"},
		"missed packets": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Ring: &Ring{RX: 256, RXMax: 4096},
				Counters: map[string]int64{"rx_missed_errors": 50, "rx_packets": 1000}}}}, Path{}, Risk, "eth0", "5 % of 1000"},
		"a line for a kernel long ago": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Configured: []Configured{{"/etc/sysctl.conf", "net.ipv4.tcp_tw_recycle", "1"}}}, Path{}, Inert,
			"net.ipv4.tcp_tw_recycle", "gone from the kernel since 4.12"},
		"a line that will hurt": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Configured: []Configured{{"/etc/sysctl.conf", "net/ipv4/tcp_sack", "0"}}}, Path{}, Risk, "net.ipv4.tcp_sack",
			"next start"},
		"a line that nobody knows": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Configured: []Configured{{"/etc/sysctl.conf", "net.ipv4.tcp_turbo", "1"}}}, Path{}, Unknown, "net.ipv4.tcp_turbo",
			"does not know"},
		"a program's own buffer": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Sockets: []Socket{{Local: "0.0.0.0:80", Program: "httpd", RecvBytes: 131072, RecvFixed: true}}}, wan, Limits,
			"SO_RCVBUF", "httpd"},
		"a connection that waits": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Sockets: []Socket{{Local: "a:1", Remote: "b:2", BusyS: 10, RwndS: 9}}}, Path{}, Risk, "receive window", "90 %"},
		"a container": {&Snapshot{System: catalog.Linux, Version: "6.1", LimitBytes: 32 << 20}, wan, Risk,
			"memory.max", "counts socket buffers"},
		"a namespace": {&Snapshot{System: catalog.Linux, Version: "6.1", Namespace: true}, Path{}, Unknown,
			"namespace", "are the host's"},
		"memory pressure": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Counters: map[string]int64{"TCPMemoryPressures": 30, "PruneCalled": 2}}, Path{}, Risk, "TCPMemoryPressures",
			"30 times"},
		"a shaper that caps": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Default: true, Qdisc: "tbf", ShapeBps: 1e8}}}, wan, Limits, "eth0",
			"own shaper lets out 100 Mbit/s"},
		"a shaper": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Default: true, Qdisc: "htb"}}}, Path{}, Risk, "eth0", "shapes what it sends"},
		"a queue that drops": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Interfaces: []Interface{{Name: "eth0", Counters: map[string]int64{"qdisc_packets": 1000, "qdisc_dropped": 20}}}},
			Path{}, Risk, "eth0", "own queue, 2 % of 1000"},
		"a container's own values": {func() *Snapshot {
			s := linux("6.1", nil)
			s.Namespaces = []Namespace{{PID: 7, Program: "nginx",
				Values: map[string]string{"net.ipv4.tcp_wmem": "4096 16384 4194304"}}}
			return s
		}(), wan, Risk, "net.ipv4.tcp_wmem", "in the network namespace of nginx (pid 7)"},
		"what could not be read": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Unread: []string{"sockets: permission denied"}}, Path{}, Unknown, "snapshot", "permission denied"},
	} {
		found := Judge(c.snapshot, c.path)
		if c.text == "" {
			if len(found) != 0 {
				t.Errorf("%s: %+v", name, found)
			}
			continue
		}
		ok := false
		for _, f := range found {
			ok = ok || f.Grade == c.grade && f.Parameter == c.param && strings.Contains(f.Text, c.text)
			if (f.CostBps > 0) != (f.CapBps > 0) || f.CostBps < 0 || f.CostBps > c.path.RateBps {
				t.Errorf("%s: costs %v with a cap of %v", name, f.CostBps, f.CapBps)
			}
		}
		if !ok {
			t.Errorf("%s: no %s finding on %s with %q among %+v", name, c.grade, c.param, c.text, found)
		}
	}
}

// The systems of the founding documents: windows of one size from the registry.
func TestWindowsBeforeVista(t *testing.T) {
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
		snapshot    *Snapshot
		grade       Grade
		param, text string // no text: nothing is found
	}{
		"XP as it comes: the window": {old("windows", "5.1.2600", nil), Limits, "TcpWindowSize",
			"65,535 bytes caps 100 Mbit/s x 80 ms at 6.55 Mbit/s"},
		"XP as it comes: AFD": {old("windows", "5.1.2600", nil), Limits, "DefaultSendWindow",
			"8,192 bytes and one write more under way"},
		"2000 as it comes": {old("windows-2000", "5.0.2195", nil), Limits, "TcpWindowSize",
			"17,520 bytes caps 100 Mbit/s x 80 ms at 1.75 Mbit/s"},
		"the note's remedy": {old("windows", "5.0.2195", tuned), "", "", ""},
		"the same on 2003":  {old("windows-2000", "5.2.3790", tuned), "", "", ""},
		"a window without scaling": {old("windows", "5.2.3790", with("Tcp1323Opts", "")), Risk, "Tcp1323Opts",
			"without Tcp1323Opts bit 0 no window passes 65,535 bytes"},
		"Windows 2000 with scaling unset": {old("windows", "5.0.2195", with("Tcp1323Opts", "")), Risk, "Tcp1323Opts",
			"sources disagree whether Windows 2000 scales"},
		"NT 4 asked to scale": {old("windows-2000", "4.0.1381", with("TcpWindowSize", "262800")), Risk, "Tcp1323Opts",
			"NT 4 has no window scaling"},
		"NT 4 with a key of 2000": {old("windows-2000", "4.0.1381", map[string]string{"GlobalMaxTcpWindowSize": "262800"}),
			Inert, "GlobalMaxTcpWindowSize", "version 5.0 and later read it"},
		"timestamps alone": {old("windows", "5.1.2600", with("Tcp1323Opts", "2")), Limits, "TcpWindowSize",
			"65,535 bytes"},
		"a ceiling below the window": {old("windows", "5.1.2600", with("GlobalMaxTcpWindowSize", "131400")), Limits,
			"GlobalMaxTcpWindowSize", "ends every window at 131,400"},
		"an interface's own window": {old("windows", "5.1.2600", with("Interfaces/{4D36}/TcpWindowSize", "17520")), Limits,
			"TcpWindowSize", "of interface {4D36} of 17,520 bytes"},
		"one that 2000 half ignores": {old("windows", "5.0.2195", with("Interfaces/{4D36}/TcpWindowSize", "1001560")), Risk,
			"TcpWindowSize", "for those that it accepts"},
		"an interface's small packet": {old("windows", "5.1.2600", with("Interfaces/{4D36}/MTU", "576")), Risk, "MTU",
			"packets of 576 bytes"},
		"no path MTU discovery": {old("windows", "5.0.2195", with("EnablePMTUDiscovery", "0")), Harmful,
			"EnablePMTUDiscovery", "576-byte packets"},
		"an interface's window today": {old("windows", "10.0.17763",
			map[string]string{"Interfaces/{4D36}/TcpWindowSize": "65535"}), Inert, "TcpWindowSize", "does nothing here"},
	} {
		found := Judge(c.snapshot, long)
		if c.text == "" {
			if len(found) != 0 {
				t.Errorf("%s: %+v", name, found)
			}
			continue
		}
		if !slices.ContainsFunc(found, func(f Finding) bool {
			return f.Grade == c.grade && f.Parameter == c.param && strings.Contains(f.Text, c.text)
		}) {
			t.Errorf("%s: no %s finding on %s with %q among %+v", name, c.grade, c.param, c.text, found)
		}
	}
	here := old("windows", "5.1.2600", nil)
	here.Here = true
	if fix := Judge(here, long)[0].Fix; !strings.HasPrefix(fix, "fullpipe plan --rate 100Mbit/s --rtt 80ms") ||
		strings.Contains(fix, "--target") {
		t.Errorf("the cure of the host that asks: %q", fix)
	}
	found := Judge(old("windows", "5.1.2600", nil), long)
	if fix := found[0].Fix; !strings.HasPrefix(fix, "fullpipe plan --rate 100Mbit/s --rtt 80ms --target windows-xp") {
		t.Errorf("the cure of XP: %q", fix)
	}
	for _, version := range []string{"6.0.6002", "6.1.7601", "6.2.9200", "6.3.9600", "10.0.19045"} {
		found := Judge(windows(version, map[string]string{"AutoTuningLevelLocal": "Disabled"}), long)
		if len(found) == 0 || strings.Contains(found[0].Fix, "Set-NetTCPSetting") {
			t.Errorf("%s: a cmdlet that refuses is no cure: %+v", version, found)
		}
	}
}

func TestTheDearestComesFirst(t *testing.T) {
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

func TestJudgeLeavesTheSnapshotAlone(t *testing.T) {
	s := windows("10.0.17763", map[string]string{"AutoTuningLevelLocal": "Disabled",
		"AutoTuningLevelEffective": "GroupPolicy"})
	Judge(s, wan)
	if len(s.Values) != 2 {
		t.Errorf("the snapshot is now %v", s.Values)
	}
}

func TestShellCollectorOnThisHost(t *testing.T) {
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

func TestSnapshotsOfOtherMakersAreRefused(t *testing.T) {
	for _, text := range []string{"", "{}", `{"schema":"fullpipe/plan/v1"}`, "hello",
		"fullpipe-snapshot 1\nmemory many\nsystem linux", "fullpipe-snapshot 1\n",
		"----\nStart Port : 49152\nNumber of Ports : 16384\n", "----\nIfLuid : ethernet_32768\nIfIndex : 12\n",
		netTCPSetting + strings.Repeat("a:b\n", maxWindowsText/4), "SettingName:" + strings.Repeat("x", maxWindowsLine)} {
		if s, err := ParseSnapshot([]byte(text)); err == nil {
			t.Errorf("%.100q was taken: %+v", text, s)
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
			if found.Text == "" || found.Parameter == "" {
				t.Errorf("an empty finding: %+v", found)
			}
		}
	})
}

func TestCrowds(t *testing.T) {
	s := linux("6.1", nil) // tcp_mem's pressure mark is 383867 pages: 1.46 GiB
	for bytes, crowds := range map[int64]bool{500 << 20: false, 700 << 20: false, 800 << 20: true} {
		if got := s.Crowds(bytes); (got != "") != crowds {
			t.Errorf("%d MiB: %q", bytes>>20, got)
		}
	}
	s.LimitBytes = 1 << 30
	if got := s.Crowds(700 << 20); !strings.Contains(got, "cgroup") {
		t.Errorf("a cgroup of 1 GiB: %q", got)
	}
	if got := (&Snapshot{}).Crowds(1 << 40); got != "" {
		t.Errorf("nothing is known, yet %q", got)
	}
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
