package plan

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestContainers checks that texts for containers set only a namespace's own values. The host's values appear in
// comments only, and values that Kubernetes refuses are named.
func TestContainers(t *testing.T) {
	target := must.Get(ParseTarget("linux-6.1"))(t)
	values := map[string]string{"net.ipv4.tcp_rmem": "4096 131072 6291456", "net.ipv4.tcp_wmem": "4096 16384 4194304",
		"net.ipv4.tcp_window_scaling": "0", "net.core.rmem_max": "212992", "net.core.wmem_max": "8000000"}
	p := must.Get(New(Path{RateBps: 3e9, RTT: 55 * time.Millisecond}, target,
		Options{Values: values, ReceiveDatagrams: 7 << 20, SendDatagrams: 7 << 20}))(t)
	for format, want := range map[string][]string{
		"kubernetes": {"      - name: net.ipv4.tcp_rmem\n        value: \"4096 131072 41287680\"\n",
			"safe since Kubernetes 1.32", "--allowed-unsafe-sysctls=net.ipv4.tcp_window_scaling\n"},
		"compose": {"      net.ipv4.tcp_wmem: \"4096 16384 41287680\"\n", "network_mode: host"},
		"docker":  {" --sysctl 'net.ipv4.tcp_window_scaling=1' \\\n", "  IMAGE\n"},
		"systemd": {"NetworkNamespacePath=/run/netns/NAME\n" +
			"ExecStartPre=+sysctl -w \"net.ipv4.tcp_rmem=4096 131072 41287680\"\n"},
	} {
		for _, undo := range []bool{false, true} {
			text := must.Get(p.Text(format, undo, nil))(t)
			node := "on the node, no container has it: sysctl -w net.core.rmem_max=7340032\n"
			if undo {
				want, node = []string{"takes the plan"}, "sysctl -w net.core.rmem_max=212992\n"
			}
			for _, part := range append(want, "# "+node[strings.Index(node, "sysctl"):]) {
				part = strings.TrimPrefix(part, "# ")
				if !strings.Contains(string(text), part) {
					t.Errorf("%s, undo %v: no %q in\n%s", format, undo, part, text)
				}
			}
			for line := range strings.Lines(string(text)) {
				if strings.Contains(line, "net.core") && !strings.HasPrefix(line, "#") {
					t.Errorf("%s sets what is the host's: %s", format, line)
				}
			}
			if strings.Contains(string(text), "wmem_max") {
				t.Errorf("%s lowers net.core.wmem_max", format)
			}
		}
	}
	if !strings.Contains(overlays(1500), "vxlan 1450, geneve 1450, ipip 1480, wireguard 1440") {
		t.Error(overlays(1500))
	}
}

// TestDatagrams_LargestBuffer plans for a program that asks for the largest UDP buffer: one window, and no setting
// where the host allows it already.
func TestDatagrams_LargestBuffer(t *testing.T) {
	target, _ := ParseTarget("linux")
	path := Path{RateBps: 1e9, RTT: 80 * time.Millisecond}
	for has, want := range map[string]string{"212992": "10027008", "16777216": ""} {
		p := must.Get(New(path, target, Options{ReceiveDatagrams: math.MaxInt32,
			Values: map[string]string{"net.core.rmem_max": has}}))(t)
		got := ""
		for _, s := range p.Settings {
			if s.Name == "net.core.rmem_max" {
				got = s.Value
			}
		}
		if got != want {
			t.Errorf("with %s: %q, want %q", has, got, want)
		}
	}
}
