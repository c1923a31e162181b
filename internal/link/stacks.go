package link

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
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
	// acknowledges (RFC 1122 section 4.2.3.2); 0 is Linux's own way, about 40 ms.
	DelayedAck time.Duration
	// InitialWindow is how many segments the host sends before the first acknowledgement;
	// 0 is Linux's own 10.
	InitialWindow int
	// LargestWindow is 65,535 bytes times a power of two that no window of this host's
	// passes, whatever a program asks for: the host offers the scale factor that fits it.
	// 0 leaves the factor to Linux, which takes it from what a buffer may grow to.
	LargestWindow int
	// Source is where the stack's values can be looked up; "" for Linux's own.
	Source string
}

// Foreign says that the stack is another system's, of which Linux plays the part: what it
// states is that system's, loss recovery and pacing are Linux's.
func (s *Stack) Foreign() bool { return s.Source != "" }

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
	stacks := []Stack{
		{Name: "linux-6.1", About: "Linux 6.1's defaults", Sysctls: modern("4096 131072 6291456", "4096 16384 4194304")},
		{Name: "linux-6.18", About: "Linux 6.18's defaults (receive buffers up to 32 MiB)",
			Sysctls: modern("4096 131072 33554432", "4096 16384 4194304")},
	}
	return append(append(stacks, oldWindows()...), today()...)
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

// bound has the stack offer the scale factor of a largest window; 0 leaves it to Linux,
// which takes it from the larger of a buffer's ceiling and this.
func (s *Stack) bound(largest int) {
	s.LargestWindow = largest
	i := slices.IndexFunc(s.Sysctls, func(c Sysctl) bool { return c.Name == "ipv4.tcp_rmem" })
	var least, first, most int
	if _, err := fmt.Sscan(s.Sysctls[i].Value, &least, &first, &most); err == nil && most < largest {
		s.Sysctls[i].Value = fmt.Sprintf("%d %d %d", least, first, largest)
	}
}

// fix gives the host the buffers that a program sets on every socket. A Windows that is asked for a receive buffer
// below 64 KiB offers a scale factor of 0; Linux takes the factor from tcp_rmem all the same.
func (s *Stack) fix(p catalog.Program) {
	if p.ReceiveBuffer > 0 {
		s.Window = p.ReceiveBuffer
		s.Clamped = s.Foreign() && p.ReceiveBuffer <= math.MaxUint16
		s.state("ipv4.tcp_moderate_rcvbuf", "0")
	}
	if p.SendBuffer > 0 {
		s.SenderRule = fmt.Sprintf("afd:%d", p.SendBuffer)
	}
}

// fixedBuffers lists the programs that set buffers on every socket.
func fixedBuffers() (names []string) {
	for _, p := range catalog.Programs() {
		if p.FixesBuffers() {
			names = append(names, p.Name)
		}
	}
	return names
}

func near(name string, names []string) string {
	if c := spell.Nearest(strings.ToLower(name), names); c != "" {
		return ", did you mean " + c + "?"
	}
	return ""
}
