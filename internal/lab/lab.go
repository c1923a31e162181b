// Package lab builds a path of package link with the kernel's TCP: two hosts, each in a network namespace of its
// own, and the link between them, for any program.
//
// A lab is one re-executed child of this process, the engine. It owns the namespaces, the two TUN devices and the
// link; the programs at either end are its children. It is the first process of a PID namespace and ends when its
// control socket closes. Whichever process is killed, no process, device or name is left. Labs run concurrently and
// inside one another.
//
// A program that uses this package calls Engine first in main (a test in TestMain).
package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// Addresses of the two hosts, from the benchmark ranges of RFC 2544 and RFC 5180. All labs use the same ones.
var (
	NearAddr  = netip.MustParseAddr("198.18.0.1")
	FarAddr   = netip.MustParseAddr("198.18.0.2")
	NearAddr6 = netip.MustParseAddr("2001:2::1")
	FarAddr6  = netip.MustParseAddr("2001:2::2")

	// addresses inside a VPN
	nearInside  = address{netip.MustParseAddr("198.19.0.1"), netip.MustParseAddr("2001:2:0:1::1")}
	farInside   = address{netip.MustParseAddr("198.19.0.2"), netip.MustParseAddr("2001:2:0:1::2")}
	nearOutside = address{NearAddr, NearAddr6}
	farOutside  = address{FarAddr, FarAddr6}
)

type address struct{ v4, v6 netip.Addr }

// Host contains a host's addresses: Addr and Addr6 lead through the path's VPN, if any, Outside and Outside6 past
// it. Without a VPN they are equal.
type Host struct{ Addr, Addr6, Outside, Outside6 netip.Addr }

// Hosts returns the addresses on a path.
func Hosts(p link.Path) (near, far Host) {
	if p.VPN.Kind == "" {
		return Host{NearAddr, NearAddr6, NearAddr, NearAddr6}, Host{FarAddr, FarAddr6, FarAddr, FarAddr6}
	}
	return Host{nearInside.v4, nearInside.v6, NearAddr, NearAddr6}, Host{farInside.v4, farInside.v6, FarAddr, FarAddr6}
}

// Config describes a lab.
type Config struct {
	Path link.Path
	// Tap, when not nil, receives a capture of packet headers at the middle of the link, with times of the link's
	// clock. With a tap the link carries each segment by itself, which costs CPU time.
	Tap *os.File
	// Stderr receives the engine's fatal errors; nil is this process's.
	Stderr *os.File
}

// Lab is a running lab. Its methods may be used from several goroutines.
type Lab struct {
	Near, Far *End
	engine    *engine
}

// End is one of the two hosts.
type End struct {
	Host
	name string
	lab  *Lab
}

// Start starts a lab. The context limits only the start; Close ends the lab.
func Start(ctx context.Context, c Config) (*Lab, error) {
	e, err := startEngine(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	l := &Lab{engine: e}
	nearHost, farHost := Hosts(c.Path)
	l.Near = &End{nearHost, near, l}
	l.Far = &End{farHost, far, l}
	return l, nil
}

// Close ends the lab and all its programs and waits until they are gone.
func (l *Lab) Close() error { return l.engine.close() }

// Counters returns the link's counters, up and down.
func (l *Lab) Counters() (up, down link.Counters, err error) {
	up, down, _, err = l.Counted()
	return up, down, err
}

// Lateness returns how late the link has been.
func (l *Lab) Lateness() (Lateness, error) {
	_, _, a, err := l.Counted()
	return a, err
}

// Counted returns both, read at one time.
func (l *Lab) Counted() (up, down link.Counters, a Lateness, err error) {
	r, err := l.engine.ask(request{Op: opCounters})
	if err != nil {
		return up, down, a, err
	}
	return r.Counters[0], r.Counters[1], *r.Lateness, nil
}

// The control protocol: one JSON object a packet over a SOCK_SEQPACKET socket pair, with files attached. A reply
// repeats its request's Tag; replies with Tag 0 report the end of a process.
type request struct {
	Tag      int
	Op       string
	Path     *link.Path `json:",omitempty"`
	ID       int        `json:",omitempty"` // of the process
	End      string     `json:",omitempty"`
	Args     []string   `json:",omitempty"`
	Env      []string   `json:",omitempty"`
	Dir      string     `json:",omitempty"`
	OwnGroup bool       `json:",omitempty"`
	Signal   int        `json:",omitempty"`
	Seen     int        `json:",omitempty"` // how often the sender received that signal
	// Delay of a link to measure, then the results.
	Delay time.Duration `json:",omitempty"`
	Floor time.Duration `json:",omitempty"`
	Early int64         `json:",omitempty"`
}

type reply struct {
	Tag       int
	ID        int             `json:",omitempty"`
	PID       int             `json:",omitempty"`
	Listening bool            `json:",omitempty"`
	Status    int             `json:",omitempty"` // exit status, or that of a NotRun
	Error     string          `json:",omitempty"`
	Hint      string          `json:",omitempty"`
	Counters  []link.Counters `json:",omitempty"`
	Lateness  *Lateness       `json:",omitempty"`
}

const (
	opBuild     = "build"
	opStart     = "start"
	opSignal    = "signal"
	opForward   = "forward"
	opCounters  = "counters"
	opListening = "listening"
	opFinish    = "finish"
	opProbe     = "probe"
	opCarry     = "carry"
)

const (
	near = "near"
	far  = "far"
)

// engineName is argv[0] of an engine child.
const engineName = "fullpipe-lab-engine"

// linkName is argv[0] of the process that carries a lab's packets: the engine's child, in a session of its own. It
// does nothing else, so neither a program of the lab nor the engine's WireGuard delays its timers. With autogroup
// scheduling, its share of the CPU is separate from that of the lab's programs.
const linkName = "fullpipe-lab-link"

// Engine must be called first in main. In an engine child it runs the engine and never returns; in any other
// process it does nothing.
func Engine() {
	if len(os.Args) != 1 {
		return
	}
	switch os.Args[0] {
	case engineName:
		engineMain()
	case linkName:
		linkMain()
	}
}

// Failed is an error of the lab, with advice.
type Failed struct{ Message, Hint string }

func (e *Failed) Error() string { return e.Message }

// Try returns the advice.
func (e *Failed) Try() string { return e.Hint }

// environment returns the environment of a program at one end.
func environment(inherited []string, p link.Path, end string, stack link.Stack, added []string) []string {
	own := []string{"FULLPIPE_END=" + end, "FULLPIPE_SENDER_RULE=" + stack.SenderRule,
		"FULLPIPE_RECEIVER_RULE=" + stack.ReceiverRule(), accountVariable + "=" + accountAddress}
	nearHost, farHost := Hosts(p)
	for name, h := range map[string]Host{"FULLPIPE_NEAR": nearHost, "FULLPIPE_FAR": farHost} {
		own = append(own, name+"="+h.Addr.String(), name+"6="+h.Addr6.String(),
			name+"_OUTSIDE="+h.Outside.String(), name+"_OUTSIDE6="+h.Outside6.String())
	}
	return lastOfEach(slices.Concat(secret.Without(inherited, secret.Key, secret.Store), own, added))
}

// lastOfEach removes variables that are set again later: programs use the first of two.
func lastOfEach(variables []string) (kept []string) {
	seen := map[string]bool{}
	for _, v := range slices.Backward(variables) {
		name, _, _ := strings.Cut(v, "=")
		if !seen[name] {
			kept = append(kept, v)
		}
		seen[name] = true
	}
	slices.Reverse(kept)
	return kept
}
