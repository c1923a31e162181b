package catalog

import (
	"slices"
	"strings"
	"testing"
)

func TestEntries_AreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		id := p.System + "/" + p.Name
		if seen[id] {
			t.Errorf("%s is there twice", id)
		}
		seen[id] = true
		if !slices.Contains(Families(), p.System) {
			t.Errorf("%s: unknown family", id)
		}
		for field, value := range map[string]string{"where": p.Where, "kind": p.Kind, "type": p.Type, "scope": p.Scope,
			"acts": p.Acts, "effect": p.Effect, "source": p.Source} {
			if strings.TrimSpace(value) == "" {
				t.Errorf("%s has no %s", id, field)
			}
		}
		if len(p.Defaults) == 0 {
			t.Errorf("%s has no default", id)
		}
		for i := 1; i < len(p.Defaults); i++ {
			if !AtLeast(p.Defaults[i].Since, p.Defaults[i-1].Since) {
				t.Errorf("%s: defaults are not oldest first", id)
			}
		}
		for _, h := range p.Harmful {
			ways := 0
			for _, said := range []bool{h.Value != "", h.Above != 0, h.Below != 0, h.Set} {
				if said {
					ways++
				}
			}
			if ways != 1 || h.Why == "" {
				t.Errorf("%s: a harm says %d conditions, why %q", id, ways, h.Why)
			}
		}
		if d, ok := p.DefaultFor(""); ok && p.HarmOf(d.Value) != "" {
			t.Errorf("%s: the newest default %q is called harmful", id, d.Value)
		}
	}
	if len(seen) < 80 {
		t.Errorf("only %d parameters", len(seen))
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		system, name string
		want         int
	}{
		{"", "tcp_rmem", 1}, {"", "net.ipv4.TCP_RMEM", 1}, {"", "/proc/sys/net/ipv4/tcp_rmem", 1}, {"", "net/ipv4/tcp_rmem",
			1},
		{"", "net.inet.tcp.sendspace", 2}, {FreeBSD, "sendspace", 1}, {"", "tcp1323opts", 3}, {Linux, "TcpWindowSize", 0},
		{"", "", 0},
	} {
		if got := Find(c.system, c.name); len(got) != c.want {
			t.Errorf("Find(%q, %q): %d, want %d", c.system, c.name, len(got), c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{"tcp_rmen": "net.ipv4.tcp_rmem", "TcpWindowsSize": "TcpWindowSize",
		"autotuninglevel": "AutoTuningLevelLocal", "tcp-sack": "net.ipv4.tcp_sack"} {
		if got := Nearest(name); len(got) == 0 || got[0] != want {
			t.Errorf("Nearest(%q) = %q, want %q first", name, got, want)
		}
	}
	if got := Nearest("something else altogether"); len(got) != 0 {
		t.Errorf("nothing is near, yet %q", got)
	}
}

func TestVersions(t *testing.T) {
	for _, c := range []struct {
		version, least string
		want           bool
	}{
		{"6.18.44-fc-v669", "6.6", true}, {"6.6", "6.6", true}, {"6.1.0-13-amd64", "6.6", false}, {"10.0.17763", "10.0.16299",
			true},
		{"10.0.14393", "10.0.16299", false}, {"6.1", "", true}, {"", "6.6", false}, {"7", "6.18", true},
		{"6.16-rc1", "6.16", true},
	} {
		if got := AtLeast(c.version, c.least); got != c.want {
			t.Errorf("AtLeast(%q, %q) = %v", c.version, c.least, got)
		}
	}
}

func TestDefaultsHarmAndInertness(t *testing.T) {
	rmem, _ := Get(Linux, "net.ipv4.tcp_rmem")
	for version, want := range map[string]string{"6.1": "4096 131072 6291456", "6.18": "4096 131072 33554432",
		"": "4096 131072 33554432"} {
		if d, ok := rmem.DefaultFor(version); !ok || d.Value != want {
			t.Errorf("tcp_rmem of %q: %q", version, d.Value)
		}
	}
	scale, _ := Get(Linux, "net.ipv4.tcp_adv_win_scale")
	if scale.InertIn("6.1") != "" || scale.InertIn("6.6.0") == "" {
		t.Error("tcp_adv_win_scale is inert from 6.6 on, not before")
	}
	for _, c := range []struct{ name, version, want string }{ // "": the version does not have it
		{"net.ipv4.tcp_ecn_option", "6.17.9", ""}, {"net.ipv4.tcp_ecn_option", "6.18.3", "2"},
		{"net.ipv4.tcp_rcvbuf_low_rtt", "6.18.44", ""}, {"net.ipv4.tcp_rcvbuf_low_rtt", "7.1", "1000"},
		{"net.ipv4.tcp_comp_sack_rtt_percent", "6.12", ""}, {"net.ipv4.tcp_comp_sack_rtt_percent", "6.19-rc4", "33"},
		{"net.ipv4.tcp_comp_sack_slack_ns", "6.1", "100000"}, {"net.ipv4.tcp_comp_sack_slack_ns", "7.0", "10000"},
		{"net.ipv4.tcp_backlog_ack_defer", "6.11", ""}, {"net.ipv4.tcp_backlog_ack_defer", "6.12.1", "1"},
		{"net.ipv4.tcp_ecn_option_beacon", "", "3"}, {"net.ipv4.tcp_tw_recycle", "4.12", ""},
	} {
		p, ok := Get(Linux, c.name)
		d, _ := p.DefaultFor(c.version)
		if !ok || p.In(c.version) != (c.want != "") || p.In(c.version) && d.Value != c.want {
			t.Errorf("%s of %q: in it %v, default %q, want %q", c.name, c.version, p.In(c.version), d.Value, c.want)
		}
	}
	for _, c := range []struct {
		system, name, value string
		harmful             bool
	}{
		{Linux, "net.ipv4.tcp_sack", "0", true}, {Linux, "net.ipv4.tcp_sack", "1", false},
		{Linux, "net.ipv4.tcp_notsent_lowat", "4096", true}, {Linux, "net.ipv4.tcp_notsent_lowat", "131072", false},
		{Windows, "AutoTuningLevelLocal", "restricted", true}, {Windows, "AutoTuningLevelLocal", "Normal", false},
		{Windows, "DefaultSendWindow", "65536", true}, {Windows, "DefaultSendWindow", "", false},
		{Linux, "net.core.rmem_default", "0x4000000", true},
	} {
		p, ok := Get(c.system, c.name)
		if !ok || (p.HarmOf(c.value) != "") != c.harmful {
			t.Errorf("%s=%q: found %v, harm %q", c.name, c.value, ok, p.HarmOf(c.value))
		}
	}
}

func FuzzNearest(f *testing.F) {
	for _, p := range All() {
		f.Add(p.Name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(Nearest(name)) > 3 {
			t.Error("more than three")
		}
		Find("", name)
		AtLeast(name, name)
	})
}

// TestFactsByVersion checks defaults that changed between versions, and the settings for requests.
func TestFactsByVersion(t *testing.T) {
	for _, c := range []struct {
		system, name, version, value string
		confirmed                    bool
	}{
		{Windows, "InitialRto", "10.0.14393", "3000", true}, {Windows, "InitialRto", "10.0.17763", "3000", true},
		{Windows, "InitialRto", "10.0.22631", "1000", false}, {Windows, "MaxSynRetransmissions", "10.0.17763", "2", true},
		{Windows, "MaxSynRetransmissions", "10.0.26100", "4", false}, {Windows, "Chimney", "6.1.7601", "automatic", true},
		{Windows, "EnablePMTUBHDetect", "6.3", "0", true},
		{Linux, "net.core.rmem_max", "6.17.9", "212992", true}, {Linux, "net.core.wmem_max", "6.18.1", "4194304", true},
		{Linux, "net.ipv4.tcp_rto_min_us", "6.12", "200000", true},
		{Linux, "net.ipv4.tcp_rto_max_ms", "6.18", "120000", true},
		{Linux, "net.ipv4.tcp_syn_linear_timeouts", "6.6", "4", true},
		{Linux, "net.ipv4.tcp_pingpong_thresh", "6.8", "1", true},
		{Linux, "net.ipv4.tcp_autocorking", "5.15", "1", true},
		{Linux, "net.ipv4.tcp_thin_linear_timeouts", "5.4", "0", true},
		{Linux, "net.ipv4.tcp_plb_enabled", "6.6", "0", true},
	} {
		p, ok := Get(c.system, c.name)
		d, known := p.DefaultFor(c.version)
		if !ok || !known || d.Value != c.value || d.Unconfirmed == c.confirmed || !p.In(c.version) || p.Source == "" {
			t.Errorf("%s in %s: %+v, want %s, confirmed %v", c.name, c.version, d, c.value, c.confirmed)
		}
	}
}
