package link

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/spell"
)

// Sysctl is one setting below net., with dots: "ipv4.tcp_rmem".
type Sysctl struct{ Name, Value string }

// Stack says how a host's TCP behaves, whatever the machine underneath is set to.
type Stack struct {
	Name, About string
	Sysctls     []Sysctl
	// Window is the receive window, in bytes, of a socket whose program asks for no
	// receive buffer; 0 leaves it to tcp_rmem. Such a host takes packets one by one, as
	// devices did then.
	Window int
	// SenderRule is a buffering rule of the sender's own that no kernel setting can
	// make ("afd:8192"): a fullpipe that sends from this host obeys it.
	SenderRule string
	// Clamped says that a socket whose program asks for no receive buffer has Window as
	// its bound from the handshake on, so that up to 65,535 bytes it offers a window scale
	// factor of 0, as where a policy fixed the buffer. Linux picks the factor from what a
	// buffer may grow to, so it is fullpipe's receivers on this host that obey it.
	Clamped bool
	// DelayedAck is how long the host waits for a second full segment before it
	// acknowledges (RFC 1122 section 4.2.3.2); 0 is Linux's own way.
	DelayedAck time.Duration
}

// ReceiverRule is what Clamped has fullpipe's receivers obey ("clamp:64512"), or "".
func (s *Stack) ReceiverRule() string {
	if !s.Clamped || s.Window <= 0 {
		return ""
	}
	return fmt.Sprintf("clamp:%d", s.Window)
}

const defaultStack = "linux-6.18"

// Stacks lists the stacks that are known by name.
func Stacks() []Stack {
	return []Stack{
		{Name: "linux-6.1", About: "Linux 6.1's defaults", Sysctls: modern("4096 131072 6291456", "4096 16384 4194304")},
		{Name: "linux-6.18", About: "Linux 6.18's defaults (receive buffers up to 32 MiB)",
			Sysctls: modern("4096 131072 33554432", "4096 16384 4194304")},
		{Name: "windows-95", About: "window of 8192 bytes, rounded up to six segments (8760); no scaling, timestamps or SACK",
			Sysctls: old(Sysctl{"ipv4.tcp_sack", "0"}, Sysctl{"ipv4.tcp_window_scaling", "0"}), Window: 8760},
		{Name: "windows-2000", About: "window of 17520 bytes, more when a program asks; SACK; sends by AFD's rule with 8 KB",
			Sysctls: old(), Window: 17520, SenderRule: "afd:8192"},
		{Name: "windows-xp", About: "window of 65535 bytes, more when a program asks; SACK; sends by AFD's rule with 8 KB",
			Sysctls: old(), Window: 65535, SenderRule: "afd:8192"},
		{Name: "server-2012", About: "window stuck at 64512 bytes with scale factor 0, more when a program asks; SACK; " +
			"sends with 64 KB in flight",
			Sysctls: old(), Window: 64512, Clamped: true, SenderRule: "afd:65536"},
	}
}

// FindStack looks a stack up by its name.
func FindStack(name string) (Stack, error) {
	var names []string
	for _, s := range Stacks() {
		if s.Name == strings.ToLower(name) {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Stack{}, fmt.Errorf("no stack is called %q%s (there are %s)", name, near(name, names),
		strings.Join(names, ", "))
}

// state changes a setting that every stack states.
func (s *Stack) state(name, value string) {
	i := slices.IndexFunc(s.Sysctls, func(c Sysctl) bool { return c.Name == name })
	s.Sysctls[i].Value = value
}

func near(name string, names []string) string {
	if c := spell.Nearest(strings.ToLower(name), names); c != "" {
		return ", did you mean " + c + "?"
	}
	return ""
}

// modern is Linux of today; every value that a host may have changed is stated.
func modern(rmem, wmem string) []Sysctl {
	return []Sysctl{
		{"ipv4.tcp_rmem", rmem}, {"ipv4.tcp_wmem", wmem},
		{"ipv4.tcp_moderate_rcvbuf", "1"}, {"ipv4.tcp_window_scaling", "1"},
		{"ipv4.tcp_timestamps", "1"}, {"ipv4.tcp_sack", "1"}, {"ipv4.tcp_dsack", "1"},
		{"ipv4.tcp_congestion_control", "cubic"}, {"ipv4.tcp_ecn", "2"},
		{"ipv4.tcp_no_metrics_save", "0"}, {"ipv4.tcp_slow_start_after_idle", "1"},
		{"ipv4.tcp_mtu_probing", "0"}, {"ipv4.tcp_shrink_window", "0"},
		{"ipv4.tcp_notsent_lowat", "4294967295"}, {"ipv4.tcp_adv_win_scale", "1"},
	}
}

// old is what the Windows of then have in common: buffers of one size, no timestamps,
// Reno.
func old(changes ...Sysctl) []Sysctl {
	s := Stack{Sysctls: modern("4096 131072 4194304", "4096 16384 4194304")}
	changes = append(changes, Sysctl{"ipv4.tcp_moderate_rcvbuf", "0"}, Sysctl{"ipv4.tcp_timestamps", "0"},
		Sysctl{"ipv4.tcp_congestion_control", "reno"}, Sysctl{"ipv4.tcp_ecn", "0"}, Sysctl{"ipv4.tcp_dsack", "0"})
	for _, c := range changes {
		s.state(c.Name, c.Value)
	}
	return s.Sysctls
}
