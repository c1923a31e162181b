package catalog

import (
	"strconv"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		system, name, value string
		good                bool
	}{
		{Linux, "net.ipv4.tcp_rmem", "4096 131072 6291456", true},
		{Linux, "net.ipv4.tcp_rmem", "4096\t131072\t6291456", false},
		{Linux, "net.ipv4.tcp_rmem", "4096 131072", false},
		{Linux, "net.ipv4.tcp_rmem", "6291456 131072 4096", false},
		{Linux, "net.ipv4.tcp_rmem", "0 131072 6291456", false},
		{Linux, "net.ipv4.tcp_rmem", "4096 131072 2147483648", false},
		{Linux, "net.ipv4.tcp_rmem", "4096 131072 6291456\nkernel.core_pattern = |x", false},
		{Linux, "net.ipv4.tcp_mem", "1 2 3", true},
		{Linux, "net.ipv4.tcp_mem", "3 2 1", false},
		{Linux, "net.core.rmem_max", "2303", false},
		{Linux, "net.core.rmem_max", "2304", true},
		{Linux, "net.core.rmem_max", "2304 2304", false},
		{Linux, "net.ipv4.tcp_ecn", "2", true},
		{Linux, "net.ipv4.tcp_ecn", "5", true},
		{Linux, "net.ipv4.tcp_ecn", "6", false},
		{Linux, "net.ipv4.tcp_ecn_option", "3", true},
		{Linux, "net.ipv4.tcp_ecn_option", "4", false},
		{Linux, "net.ipv4.tcp_comp_sack_rtt_percent", "0", false},
		{Linux, "net.ipv4.tcp_sack", "2", false},
		{Linux, "net.ipv4.tcp_sack", "yes", false},
		{Linux, "net.ipv4.tcp_sack", "", false},
		{Linux, "net.ipv4.tcp_adv_win_scale", "-2", true},
		{Linux, "net.ipv4.tcp_adv_win_scale", "-32", false},
		{Linux, "net.ipv4.tcp_congestion_control", "bbr", true},
		{Linux, "net.ipv4.tcp_congestion_control", "bbr; reboot", false},
		{Linux, "initcwnd", "20", true},
		{Linux, "initcwnd", "-1", false},
		{Linux, "quickack", "2", false},
		{Linux, "congctl", "../x", false},
		{Windows, "AutoTuningLevelLocal", "experimental", true},
		{Windows, "AutoTuningLevelLocal", "Wide", false},
		{Windows, "CongestionProvider", "BBR2", true},
		{Windows, "winsock autotuning", "on", true},
		{Windows, "Tcp1323Opts", "4", false},
		{Windows2000, "Tcp1323Opts", "3", true},
		{Windows2000, "TcpWindowSize", "0x3fffffff", true},
		{Windows2000, "TcpWindowSize", "1073741824", false},
		{Windows2000, "MTU", "1400", true},
		{Windows2000, "MTU", "87", false},
	} {
		p, ok := Get(c.system, c.name)
		if !ok {
			t.Fatalf("no %s of %s", c.name, c.system)
		}
		if err := p.Check(c.value); (err == nil) != c.good {
			t.Errorf("%s %q: %v", c.name, c.value, err)
		}
	}
}

// TestRangesAreRead demands that a tunable's range says something that Check understands,
// and that every default which is a value passes it.
func TestRangesAreRead(t *testing.T) {
	for _, p := range All() {
		if !p.Tunable() || p.System == MacOS || p.System == FreeBSD {
			continue
		}
		if p.Type == "boolean" || p.Type == "integer" || p.Type == "dword" || p.fields() > 1 {
			if p.Range != "" && len(p.spans()) == 0 {
				t.Errorf("%s %s: range %q is not read", p.System, p.Name, p.Range)
			}
		}
		for _, d := range p.Defaults {
			if p.System != Linux || d.Value == "" || strings.ContainsAny(d.Value, "abcdefghijklmnopqrstuvwxyz/") {
				continue // words of a person
			}
			if err := p.Check(d.Value); err != nil {
				t.Errorf("%s's own default: %v", p.System, err)
			}
		}
	}
	for _, c := range []struct{ system, name string }{{Linux, "SO_RCVBUF"}, {Linux, "txqueuelen"},
		{Windows, "AutoTuningLevelEffective"}} {
		if p, ok := Get(c.system, c.name); !ok || p.Tunable() {
			t.Errorf("%s is tunable", c.name)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("net.ipv4.tcp_rmem", "1 2 3")
	f.Add("net.ipv4.tcp_ecn", "3")
	f.Fuzz(func(t *testing.T, name, value string) {
		for _, family := range Families() {
			p, ok := Get(family, name)
			if ok && p.Check(value) == nil && strings.ContainsAny(value, "\n\r\x00\x1b") {
				t.Errorf("%s takes %q", name, value)
			}
		}
	})
}

// TestDefaultsAreWithinTheirRanges checks that no default number counts as an impossible value.
func TestDefaultsAreWithinTheirRanges(t *testing.T) {
	for _, p := range All() {
		for _, d := range p.Defaults {
			if _, err := strconv.ParseInt(d.Value, 0, 64); err == nil && p.Tunable() && p.Check(d.Value) != nil {
				t.Errorf("%s: %v", p.System, p.Check(d.Value))
			}
		}
	}
}
