package link

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
)

// Sysctl is one setting below net., with dots: "ipv4.tcp_rmem".
type Sysctl struct{ Name, Value string }

// Stack describes a host's TCP, independent of the settings of the machine that runs the lab.
type Stack struct {
	Name, About string
	Sysctls     []Sysctl
	// Window is the receive window in bytes when the program sets no receive buffer; 0 leaves it to tcp_rmem. Such a
	// host has no GRO.
	Window int
	// SenderRule is a send-buffer rule that no kernel setting can express ("afd:8192"). A fullpipe that sends from
	// this host follows it.
	SenderRule string
	// Clamped limits the socket to Window from the handshake on if the program sets no receive buffer. Up to 65,535
	// bytes the window scale is then 0. fullpipe's receivers follow it; Linux itself derives the scale from tcp_rmem.
	Clamped bool
	// DelayedAck is the longest wait for a second full segment before an acknowledgement (RFC 1122 section 4.2.3.2); 0
	// is Linux's default, about 40 ms.
	DelayedAck time.Duration
	// InitialWindow is the initial congestion window in segments; 0 is Linux's 10.
	InitialWindow int
	// LargestWindow limits every receive window and sets the window scale: 65,535 bytes times a power of two. 0 leaves
	// the scale to Linux.
	LargestWindow int
	// Source documents the values; "" for Linux itself.
	Source string
}

// Foreign reports whether Linux imitates another system. Loss recovery and pacing are then still Linux's.
func (s *Stack) Foreign() bool { return s.Source != "" }

// ReceiverRule returns the rule that Clamped sets for fullpipe's receivers ("clamp:64512"), or "".
func (s *Stack) ReceiverRule() string {
	if !s.Clamped || s.Window <= 0 {
		return ""
	}
	return fmt.Sprintf("clamp:%d", s.Window)
}

const defaultStack = "linux-6.18"

// Stacks returns all named stacks.
func Stacks() []Stack {
	stacks := []Stack{
		{Name: "linux-6.1", About: "Linux 6.1's defaults", Sysctls: modern("4096 131072 6291456", "4096 16384 4194304")},
		{Name: "linux-6.18", About: "Linux 6.18's defaults (receive buffers up to 32 MiB)",
			Sysctls: modern("4096 131072 33554432", "4096 16384 4194304")},
	}
	return append(append(stacks, oldWindows()...), today()...)
}

// FindStack returns the stack with a name, or that of a system that plan knows.
func FindStack(name string) (Stack, error) {
	var names []string
	for _, s := range Stacks() {
		if s.Name == strings.ToLower(name) {
			return s, nil
		}
		names = append(names, s.Name)
	}
	if s, ok := ofPlan(name); ok {
		return s, nil
	}
	names = append(names, Systems()...)
	return Stack{}, fmt.Errorf("no stack is called %q%s (there are %s)", name, near(name, names),
		strings.Join(names, ", "))
}

// state changes a setting that every stack has.
func (s *Stack) state(name, value string) {
	i := slices.IndexFunc(s.Sysctls, func(c Sysctl) bool { return c.Name == name })
	s.Sysctls[i].Value = value
}

// bound sets the window scale by a largest window. 0 leaves it to Linux, which uses the larger of the buffer limit
// and this.
func (s *Stack) bound(largest int) {
	s.LargestWindow = largest
	i := slices.IndexFunc(s.Sysctls, func(c Sysctl) bool { return c.Name == "ipv4.tcp_rmem" })
	var least, first, most int
	if _, err := fmt.Sscan(s.Sysctls[i].Value, &least, &first, &most); err == nil && most < largest {
		s.Sysctls[i].Value = fmt.Sprintf("%d %d %d", least, first, largest)
	}
}

// fix sets the buffers of a program that sets them on every socket. Windows offers scale 0 for a receive buffer
// below 64 KiB; Linux derives the scale from tcp_rmem.
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

// fixedBuffers returns the programs that set buffers on every socket.
func fixedBuffers() (names []string) {
	for _, p := range catalog.Programs() {
		if p.FixesBuffers() {
			names = append(names, p.Name)
		}
	}
	return names
}

func near(name string, names []string) string {
	if c := didyoumean.Nearest(strings.ToLower(name), names); c != "" {
		return ", did you mean " + c + "?"
	}
	return ""
}
