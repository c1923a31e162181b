package audit

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

// TestJudge_Commands checks that a finding's command can be pasted and does not set the harmful value again.
func TestJudge_Commands(t *testing.T) {
	old := func(version string, values map[string]string) *Snapshot {
		return &Snapshot{System: catalog.Windows2000, Version: version, Values: values}
	}
	const tcpip = `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`
	const afd = `HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\AFD\Parameters`
	for name, c := range map[string]struct {
		snapshot       *Snapshot
		path           Path
		param, command string
		bad            bool
	}{
		"an overflowed receive buffer": {linux("6.1.90", map[string]string{"net.ipv4.tcp_rmem": "4096 131072 -1073741824"}),
			wan, "net.ipv4.tcp_rmem", "sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'", true},
		"an overflowed maximum of macOS": {&Snapshot{System: catalog.MacOS, Version: "14.1",
			Values: map[string]string{"net.inet.tcp.autorcvbufmax": "-2147483648"}}, wan, "net.inet.tcp.autorcvbufmax",
			"sysctl net.inet.tcp.autorcvbufmax=4194304", true},
		"autotuning at its usual level on a longer path": {windows("10.0.17763",
			map[string]string{"AutoTuningLevelLocal": "Normal"}), Path{RateBps: 10e9, RTT: 60 * time.Millisecond},
			"AutoTuningLevelLocal", "fullpipe plan --rate 10Gbit/s --rtt 60ms --target windows-10", true},
		"an interface's window of Windows XP": {old("5.1.2600", map[string]string{"Interfaces/{7A}/TcpWindowSize": "8760"}),
			wan, "TcpWindowSize", `reg delete "` + tcpip + `\Interfaces\{7A}" /v TcpWindowSize /f; then fullpipe plan ` +
				"--rate 1Gbit/s --rtt 100ms --target windows-xp", true},
		"a card of NT 4": {old("4.0.1381", map[string]string{"Interfaces/E100B1/MTU": "576"}), Path{}, "MTU",
			`regedit: delete MTU below HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\E100B1\Parameters\Tcpip`,
			false},
		"memory limits of the wrong order": {&Snapshot{System: catalog.Linux, Version: "6.8.0", MemoryBytes: 8 << 30,
			Values: map[string]string{"net.ipv4.tcp_mem": "300 200 100"}}, Path{}, "net.ipv4.tcp_mem",
			"sysctl -w net.ipv4.tcp_mem='98304 131072 196608'", true},
		"memory limits in bytes": {&Snapshot{System: catalog.Linux, Version: "6.1.0", MemoryBytes: 47 << 29,
			Values: map[string]string{"net.ipv4.tcp_mem": "16777216 25165824 50331648"}}, Path{}, "net.ipv4.tcp_mem",
			"sysctl -w net.ipv4.tcp_mem='288768 385024 577536'", true},
		"memory limits in bytes on a host with pages of 64 KiB": {&Snapshot{System: catalog.Linux, Version: "6.12",
			MemoryBytes: 64 << 30, PageBytes: 64 << 10,
			Values: map[string]string{"net.ipv4.tcp_mem": "8388608 12582912 16777216"}}, wan, "net.ipv4.tcp_mem",
			"sysctl -w net.ipv4.tcp_mem='49152 65536 98304'", true},
		"negative memory limits on a host of unknown memory": {&Snapshot{System: catalog.Linux,
			Version: "6.8.0", Values: map[string]string{"net.ipv4.tcp_mem": "-1 -1 -1"}}, wan, "net.ipv4.tcp_mem", "", true},
		"a link's MTU of 576": {&Snapshot{System: catalog.Windows, Version: "10.0.19045",
			Interfaces: []Interface{{Name: "Ethernet", MTUBytes: 576}}}, Path{}, "Ethernet",
			`netsh interface ipv4 set subinterface "Ethernet" mtu=1500 store=persistent`, false},
		"a link's MTU of 296": {&Snapshot{System: catalog.FreeBSD, Version: "14.1",
			Interfaces: []Interface{{Name: "em0", MTUBytes: 296}}}, Path{}, "em0", "ifconfig em0 mtu 1500", false},
		"Chimney where it is gone": {windows("10.0.19045", map[string]string{"Chimney": "automatic"}), wan, "Chimney",
			"netsh int tcp set global chimney=disabled", false},
		"a switch with the value 7": {linux("6.18", map[string]string{"net.ipv4.tcp_sack": "7"}), Path{},
			"net.ipv4.tcp_sack", "sysctl -w net.ipv4.tcp_sack='1'", true},
		"heuristics on Vista, where they are the default": {windows("6.0.6002",
			map[string]string{"ScalingHeuristics": "Enabled"}), wan, "ScalingHeuristics",
			"netsh int tcp set heuristics disabled", true},
		"send autotuning off": {windows("6.3.9600", map[string]string{"winsock autotuning": "off"}), wan,
			"winsock autotuning", "netsh winsock set autotuning on", true},
		"Chimney": {windows("6.1.7601", map[string]string{"Chimney": "enabled"}), wan, "Chimney",
			"netsh int tcp set global chimney=automatic", true},
		"AFD on Server 2022": {windows("10.0.20348", map[string]string{"DefaultSendWindow": "32768"}), wan,
			"DefaultSendWindow",
			`reg delete "` + afd + `" /v DefaultSendWindow /f`, true},
		"a registry value of Windows XP": {windows("6.3.9600", map[string]string{"GlobalMaxTcpWindowSize": "300000"}), wan,
			"GlobalMaxTcpWindowSize", `reg delete "` + tcpip + `" /v GlobalMaxTcpWindowSize /f`, false},
		"a window of XP without scaling": {old("5.1.2600", map[string]string{"TcpWindowSize": "262800", "Tcp1323Opts": "0"}),
			Path{}, "Tcp1323Opts", `reg add "` + tcpip + `" /v Tcp1323Opts /t REG_DWORD /d 1 /f`, false},
		"no path MTU discovery on XP": {old("5.1.2600", map[string]string{"EnablePMTUDiscovery": "0"}), Path{},
			"EnablePMTUDiscovery", `reg add "` + tcpip + `" /v EnablePMTUDiscovery /t REG_DWORD /d 1 /f`, true},
		"no path MTU discovery on 2000, which has no reg": {old("5.0.2195",
			map[string]string{"EnablePMTUDiscovery": "0"}), Path{},
			"EnablePMTUDiscovery", "regedit: give EnablePMTUDiscovery below " + tcpip + " the value 1", true},
		"an interface's acknowledgements": {windows("10.0.22631", map[string]string{"Interfaces/{7A}/TcpAckFrequency": "1"}),
			Path{}, "TcpAckFrequency", `reg add "` + tcpip + `\Interfaces\{7A}" /v TcpAckFrequency /t REG_DWORD /d 2 /f`, true},
		"an interface of 1,352 bytes": {windows("10.0.17763", map[string]string{"Interfaces/{7A}/MTU": "1352"}), Path{},
			"MTU", `reg delete "` + tcpip + `\Interfaces\{7A}" /v MTU /f`, false},
		"an interface of 9,000 bytes": {old("5.2.3790", map[string]string{"Interfaces/{7A}/MTU": "0x2328"}), Path{},
			"MTU", `reg delete "` + tcpip + `\Interfaces\{7A}" /v MTU /f`, false},
		"an interface whose name is a command": {windows("10.0.17763",
			map[string]string{`Interfaces/{"&calc&"}/MTU`: "1352"}), Path{},
			"MTU", `reg delete "` + tcpip + `\Interfaces\{ID}" /v MTU /f`, false},
		"a route whose prefix is a command": {&Snapshot{System: catalog.Linux, Version: "6.1",
			Routes: []Route{{"$(calc)", map[string]string{"window": "10000"}}}}, wan,
			"window", "ip route show PREFIX | sed -E 's/ window( lock)? [0-9]+//' | while read -r r; do ip route change $r; " +
				"done", true},
		"a .reg file, which names no version": {old("", map[string]string{"TcpWindowSize": "17520"}),
			Path{RateBps: 1e8, RTT: 80 * time.Millisecond}, "TcpWindowSize",
			"fullpipe plan --rate 100Mbit/s --rtt 80ms --target windows-2000", true},
	} {
		found := Judge(c.snapshot, c.path)
		i := slices.IndexFunc(found, func(f Finding) bool { return f.Parameter == c.param && f.Command == c.command })
		if i < 0 || found[i].Bad() != c.bad {
			t.Errorf("%s: no %q, bad %v, among %+v", name, c.command, c.bad, found)
		}
	}
}

// TestJudge_ImpossibleValues checks that an impossible value has one finding, without a rate, and that text in place of
// numbers is unknown.
func TestJudge_ImpossibleValues(t *testing.T) {
	for name, c := range map[string]struct {
		parameter, value string
		grade            Grade
	}{
		"a negative maximum of programs": {"net.core.rmem_max", "-1", Harmful},
		"a maximum of programs of 0":     {"net.core.wmem_max", "0", Harmful},
		"a unit":                         {"net.ipv4.tcp_rmem", "4096 131072 6M", Unknown},
		"no value":                       {"net.ipv4.tcp_wmem", "", Unknown},
		"tabs":                           {"net.ipv4.tcp_wmem", `4096\t16384\t-1`, Harmful},
	} {
		s, err := ParseSnapshot([]byte(`{"schema": "fullpipe/snapshot/v1", "system": "linux", "version": "6.8.0", ` +
			`"values": {"` + c.parameter + `": "` + c.value + `"}}`))
		if err != nil {
			t.Fatal(err)
		}
		if all := Judge(s, wan); len(all) != 1 || all[0].Grade != c.grade {
			t.Errorf("%s: %+v", name, all)
		}
	}
	s, err := ParseSnapshot([]byte(`{"schema": "fullpipe/snapshot/v1", "system": "linux", "version": "6.8.0", ` +
		`"values": {"net.ipv4.tcp_rmem": "4096\t131072\t67108864"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if all := Judge(s, wan); len(all) != 0 {
		t.Errorf("three numbers with tabs between: %+v", all)
	}
}

// TestFinding_Bad checks that counters, unknown settings and risks are not bad, so that `audit` exits 0,
// and that an impossible value is bad and comes first.
func TestFinding_Bad(t *testing.T) {
	s := linux("6.18.2", map[string]string{"net.core.rmem_max": "16384"})
	s.Counters = map[string]int64{"ListenOverflows": 4711, "RcvPruned": 99}
	s.Configured = []Configured{{"/etc/sysctl.d/9.conf", "net.ipv4.tcp_turbo", "1"}}
	s.Unread = []string{"qdiscs: no permission"}
	found := Judge(s, wan)
	if len(found) < 4 || slices.ContainsFunc(found, Finding.Bad) {
		t.Errorf("%+v", found)
	}
	s.Values["net.ipv4.tcp_rmem"] = "4096 131072 -5"
	found = Judge(s, wan)
	if found[0].Parameter != "net.ipv4.tcp_rmem" || !found[0].Bad() {
		t.Errorf("an impossible value comes first: %+v", found)
	}
}
