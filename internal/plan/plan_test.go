package plan

import (
	"bytes"
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	mbit = 1e6
	ms   = time.Millisecond
)

func mustTarget(t *testing.T, name string) Target {
	t.Helper()
	target := must.Get(ParseTarget(name))(t)
	return target
}

func mustPlan(t *testing.T, path Path, target string, opt Options) *Plan {
	t.Helper()
	p := must.Get(New(path, mustTarget(t, target), opt))(t)
	return p
}

func (p *Plan) setting(name string) string {
	for _, s := range p.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

func TestSizesOfTheFoundingDocuments(t *testing.T) {
	for _, c := range []struct {
		path             Path
		bdp              float64
		window, segments int
		large            bool
	}{
		{Path{RateBps: 100 * mbit, RTT: 2500 * time.Microsecond}, 31250, 32120, 22, false},
		{Path{RateBps: 100 * mbit, RTT: 12 * ms}, 150000, 151840, 104, true},
		{Path{RateBps: 100 * mbit, RTT: 40 * ms}, 500000, 502240, 344, true},
		{Path{RateBps: 45 * mbit, RTT: 30 * ms}, 168750, 169360, 116, true},
		{Path{RateBps: 10 * mbit, RTT: 85 * ms, Jitter: 20 * ms}, 106250, 131400, 90, true},
	} {
		for _, name := range Targets() {
			p := must.Get(New(c.path, mustTarget(t, name), Options{}))(t)
			if math.Round(p.BDPBytes) != c.bdp {
				t.Errorf("%+v: BDP %v, want %v", c.path, p.BDPBytes, c.bdp)
			}
			if (strings.HasPrefix(name, "windows-95") || name == "windows-nt4") && c.large { // cannot scale
				if p.LargeWindows || len(p.Warnings) == 0 {
					t.Errorf("%s: %d bytes without a word", name, p.WindowBytes)
				}
				continue
			}
			if p.WindowBytes != c.window || p.Segments != c.segments || p.LargeWindows != c.large ||
				p.SendBytes < p.WindowBytes {
				t.Errorf("%s %+v: window %d = %d segments, large %v, send %d", name, c.path, p.WindowBytes, p.Segments,
					p.LargeWindows, p.SendBytes)
			}
		}
	}
}

func TestSmallPathsChangeOnlyTheSender(t *testing.T) {
	small := Path{RateBps: 100 * mbit, RTT: 2500 * time.Microsecond}
	xp := mustPlan(t, small, "windows-xp", Options{})
	if len(xp.Settings) != 1 || xp.Settings[0].Role != Sender || xp.setting("DefaultSendWindow") != "32120" {
		t.Errorf("XP's receivers have 65535 bytes, yet: %+v", xp.Settings)
	}
	if p := mustPlan(t, small, "windows-2000", Options{}); p.setting("TcpWindowSize") != "32120" ||
		p.setting("Tcp1323Opts") != "" {
		t.Errorf("2000's receivers have 17520 bytes: %+v", p.Settings)
	}
}

func TestSettings(t *testing.T) {
	wan := Path{RateBps: 1000 * mbit, RTT: 100 * ms}
	for _, c := range []struct {
		target string
		path   Path
		opt    Options
		want   map[string]string // "" means: not there
	}{
		{"linux-6.1", wan, Options{}, map[string]string{"net.ipv4.tcp_rmem": "4096 131072 25034752",
			"net.ipv4.tcp_wmem": "4096 16384 25034752"}},
		{"linux-6.18", wan, Options{}, map[string]string{"net.ipv4.tcp_rmem": "",
			"net.ipv4.tcp_wmem": "4096 16384 25034752"}},
		{"linux-6.18", wan, Options{Role: Receiver}, map[string]string{"net.ipv4.tcp_rmem": "", "net.ipv4.tcp_wmem": ""}},
		{"linux", wan, Options{Values: map[string]string{"net.ipv4.tcp_rmem": "1 2 3", "net.ipv4.tcp_sack": "0",
			"net.ipv4.tcp_wmem": "4096 16384 99999999"}},
			map[string]string{"net.ipv4.tcp_rmem": "1 2 25034752", "net.ipv4.tcp_wmem": "", "net.ipv4.tcp_sack": "1"}},
		{"windows-2000", wan, Options{Timestamps: true}, map[string]string{"Tcp1323Opts": "3", "TcpWindowSize": "12502032",
			"GlobalMaxTcpWindowSize": "12502032"}},
		{"windows-2000", wan, Options{Role: Sender}, map[string]string{"Tcp1323Opts": "1", "TcpWindowSize": "",
			"DefaultSendWindow": "12500520"}},
		{"windows-98", wan, Options{}, map[string]string{"GlobalMaxTcpWindowSize": "12500520",
			"GlobalMaxTcpWindoSize": "12500520"}},
		{"server-2012", wan, Options{}, map[string]string{"AutoTuningLevelLocal": "Normal", "ScalingHeuristics": "",
			"winsock autotuning": "on"}},
		{"server-2022", wan, Options{}, map[string]string{"AutoTuningLevelLocal": "Normal", "ScalingHeuristics": ""}},
		{"windows-7", wan, Options{}, map[string]string{"ScalingHeuristics": "Disabled"}},
		{"windows-vista", wan, Options{}, map[string]string{"AutoTuningLevelLocal": "Normal", "winsock autotuning": ""}},
		{"windows-11", Path{RateBps: 10e9, RTT: 100 * ms}, Options{},
			map[string]string{"AutoTuningLevelLocal": "Normal"}},
		{"windows-11", wan, Options{Values: map[string]string{"AutoTuningLevelLocal": "Normal"}},
			map[string]string{"AutoTuningLevelLocal": ""}},
		{"macos", wan, Options{}, map[string]string{"kern.ipc.maxsockbuf": "12500520",
			"net.inet.tcp.autorcvbufmax": "12500520"}},
		{"freebsd-14", wan, Options{}, map[string]string{"kern.ipc.maxsockbuf": "14063085",
			"net.inet.tcp.recvbuf_max": "12500520"}},
		{"linux", wan, Options{Route: Route{Prefix: "10.0.0.0/8", InitCwnd: 20, Clamp: true}},
			map[string]string{"initcwnd": "20", "window": "12500520"}},
	} {
		p := mustPlan(t, c.path, c.target, c.opt)
		for name, want := range c.want {
			if got := p.setting(name); got != want {
				t.Errorf("%s %s: %q, want %q", c.target, name, got, want)
			}
		}
		for _, s := range p.Settings {
			if s.Source == "" || s.Where == "" || s.Role == "" {
				t.Errorf("%s: a setting without its particulars: %+v", c.target, s)
			}
		}
	}
}

func TestImpossiblePathsAreRefused(t *testing.T) {
	good := Path{RateBps: 1e6, RTT: ms}
	for _, c := range []struct {
		argument string
		path     Path
		opt      Options
	}{
		{"--rate", Path{RTT: ms}, Options{}}, {"--rate", Path{RateBps: math.NaN(), RTT: ms}, Options{}},
		{"--rate", Path{RateBps: math.Inf(1), RTT: ms}, Options{}}, {"--rtt", Path{RateBps: 1}, Options{}},
		{"--rtt", Path{RateBps: 1, RTT: 2 * time.Hour}, Options{}}, {"--jitter", Path{RateBps: 1, RTT: ms, Jitter: -1},
			Options{}},
		{"--mss", Path{RateBps: 1, RTT: ms, MSS: 1 << 20}, Options{}},
		{"--connections", Path{RateBps: 1, RTT: ms, Connections: -1}, Options{}},
		{"--route", good, Options{Route: Route{Prefix: "10.0.0.0/99"}}},
		{"--route", good, Options{Route: Route{Dev: "eth0"}}},
		{"--route", good, Options{Route: Route{Prefix: "default"}}},
		{"--via", good, Options{Route: Route{Prefix: "default", Via: "x; reboot", Clamp: true}}},
		{"--dev", good, Options{Route: Route{Prefix: "default", Dev: "eth0\nreboot", Clamp: true}}},
		{"--initcwnd", good, Options{Route: Route{Prefix: "default", InitCwnd: -1}}},
	} {
		_, err := New(c.path, mustTarget(t, "linux"), c.opt)
		wrong, ok := err.(*ArgumentError)
		if !ok || wrong.Argument != c.argument || wrong.Try() == "" {
			t.Errorf("%+v %+v: %v, want a word on %s", c.path, c.opt, err, c.argument)
		}
	}
	if _, err := ParseTarget("windows-3.1"); err == nil {
		t.Error("Windows 3.1 was taken")
	}
	if p := mustPlan(t, Path{RateBps: 400e9, RTT: time.Second}, "linux", Options{}); len(p.Warnings) == 0 ||
		p.WindowBytes > 1<<30 {
		t.Errorf("no window covers 50 GB, yet %d, %v", p.WindowBytes, p.Warnings)
	}
}

// TestTexts compares every format of every kind of target, the change and its undo, with its golden file.
func TestTexts(t *testing.T) {
	warnings := map[string][]string{
		"windows-95": {"this system has no window scaling: 64,240 bytes instead of 12,500,520 bytes, which allows " +
			"5.14 Mbit/s"},
		"windows-98": {"Windows 98 scales only with a corrected vtcp.386 (knowledge base 239705, 236926): without it " +
			"windows above 65,535 bytes fail"},
		"macos": {"kern.ipc.maxsockbuf has a limit by memory, 6 to 32 MB; beyond it sysctl returns ERANGE: read the " +
			"value back"},
	}
	path := Path{RateBps: 1000 * mbit, RTT: 100 * ms}
	route := Options{Route: Route{Prefix: "10.2.0.0/16", Via: "192.0.2.1", Dev: "eth0", InitCwnd: 20, Clamp: true,
		Congestion: "bbr"}}
	for _, c := range []struct {
		target, format string
		opt            Options
	}{
		{"windows-95", "reg", Options{}}, {"windows-98", "reg", Options{}}, {"windows-2000", "reg", Options{}},
		{"windows-xp", "reg", Options{Values: map[string]string{"TcpWindowSize": "65535"}}},
		{"windows-7", "netsh", Options{}}, {"server-2012", "powershell", Options{}}, {"server-2019", "powershell", Options{}},
		{"server-2012", "powershell", Options{Route: Route{Prefix: "10.3.0.0/16"}}},
		{"server-2012r2", "powershell", Options{Route: Route{Prefix: "10.2.0.0/16"}}}, {"windows-11", "netsh", Options{}},
		{"windows-11", "powershell", Options{}},
		{"server-2022", "powershell", Options{Route: Route{Prefix: "2001:db8:7::/48", InitCwnd: 24, Congestion: "ctcp"}}},
		{"linux-6.1", "sysctl", Options{Values: map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456"}}},
		{"linux", "ip-route", route}, {"linux", "networkd", route}, {"linux", "netplan", route}, {"linux", "networkmanager",
			route},
		{"macos", "launchdaemon", Options{}}, {"freebsd", "sysctl", Options{}},
	} {
		p := mustPlan(t, path, c.target, c.opt)
		if len(p.Warnings) != len(warnings[c.target]) {
			t.Errorf("%s: warnings %v", c.target, p.Warnings)
		}
		for _, undo := range []bool{false, true} {
			name := c.target + "." + c.format
			if undo {
				name += ".undo"
			}
			if c.opt.Route.Prefix != "" && c.format == "powershell" {
				name += ".route"
			}
			text, err := p.Text(c.format, undo, warnings[c.target])
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			file := filepath.Join("testdata", name)
			if *update {
				must.Do(t, os.WriteFile(file, text, 0o644))
			}
			want, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(text, want) {
				t.Errorf("%s differs from its golden file (%v); it is now:\n%s", name, err, decode(text))
			}
		}
	}
}

func decode(text []byte) string {
	if !bytes.HasPrefix(text, []byte{0xff, 0xfe}) {
		return string(text)
	}
	var units []uint16
	for i := 2; i+1 < len(text); i += 2 {
		units = append(units, binary.LittleEndian.Uint16(text[i:]))
	}
	return string(utf16.Decode(units))
}

func TestText_RegistryFileFormat(t *testing.T) {
	path := Path{RateBps: 100 * mbit, RTT: 40 * ms}
	v5, _ := mustPlan(t, path, "windows-2000", Options{}).Text("reg", false, nil)
	text := decode(v5)
	if !bytes.HasPrefix(v5, []byte{0xff, 0xfe}) || !strings.HasPrefix(text,
		"Windows Registry Editor Version 5.00\r\n\r\n") {
		t.Errorf("version 5 begins %q", text[:40])
	}
	for _, line := range []string{`"TcpWindowSize"=dword:0007a9e0`, `"Tcp1323Opts"=dword:00000001`} {
		if !strings.Contains(text, line+"\r\n") {
			t.Errorf("no line %s in\n%s", line, text)
		}
	}
	v4, _ := mustPlan(t, path, "windows-98", Options{}).Text("reg", true, nil)
	if !bytes.HasPrefix(v4, []byte("REGEDIT4\r\n\r\n")) || !bytes.Contains(v4, []byte("\"DefaultRcvWindow\"=-\r\n")) {
		t.Errorf("version 4's undo:\n%s", v4)
	}
	for _, b := range v4 {
		if b > 126 {
			t.Fatal("version 4 is not plain ANSI")
		}
	}
	if strings.Count(text, "\n") != strings.Count(text, "\r\n") {
		t.Error("a line does not end in CRLF")
	}
}

func TestFormatsThatATargetIgnoresAreRefusedWithTheReason(t *testing.T) {
	path := Path{RateBps: 1000 * mbit, RTT: 100 * ms}
	for _, c := range []struct{ target, format, reason string }{
		{"windows-10", "reg", "since Vista"}, {"windows-7", "powershell", "Windows 8"}, {"windows-2000", "netsh",
			"registry only"},
		{"linux", "reg", "does not read"}, {"linux", "ip-route", "concerns the host"}, {"macos", "sysctl", "not confirmed"},
		{"linux", "yaml", "not a format"},
	} {
		_, err := mustPlan(t, path, c.target, Options{}).Text(c.format, false, nil)
		if err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s as %s: %v, want %q", c.target, c.format, err, c.reason)
		}
	}
	for _, name := range Targets() {
		p := mustPlan(t, path, name, Options{})
		fit, _ := p.formats(mustTarget(t, name))
		for _, format := range Formats() {
			text, err := p.Text(format, false, nil)
			if slices.Contains(fit, format) != (err == nil) {
				t.Errorf("%s as %s: %v", name, format, err)
			}
			if plain := decode(text); err == nil {
				for _, s := range p.Settings {
					value := s.Value
					if n, bad := strconv.Atoi(value); bad == nil && format == "reg" && s.Type == "dword" {
						value = strconv.FormatInt(int64(n), 16)
					}
					if !strings.Contains(strings.ToLower(plain), strings.ToLower(value)) {
						t.Errorf("%s as %s leaves %s=%s out", name, format, s.Name, s.Value)
					}
				}
			}
		}
	}
}

func FuzzNew(f *testing.F) {
	f.Add(1e8, int64(40*ms), int64(0), 1460, 1, int64(0), uint8(0), "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, rate float64, rtt, jitter int64, mss, connections int, memory int64, target uint8,
		prefix string) {
		to := targets[int(target)%len(targets)]
		path := Path{RateBps: rate, RTT: time.Duration(rtt), Jitter: time.Duration(jitter), MSS: mss,
			Connections: connections, MemoryBytes: memory}
		p, err := New(path, to, Options{Route: Route{Prefix: prefix, Clamp: prefix != ""}})
		if err != nil {
			return
		}
		if p.WindowBytes <= 0 || p.SendBytes <= 0 || p.WindowScale > 14 {
			t.Errorf("window %d, send %d, scale %d", p.WindowBytes, p.SendBytes, p.WindowScale)
		}
		fit, _ := p.formats(to)
		for _, format := range fit {
			if _, err := p.Text(format, rtt%2 == 0, nil); err != nil {
				t.Error(err)
			}
		}
		if to.Family == catalog.Windows9x && to.Version < "4.10" && p.LargeWindows {
			t.Error("Windows 95 cannot scale")
		}
	})
}
