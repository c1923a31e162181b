// Package lab makes a path of package link real: two hosts with the TCP of this
// machine's kernel, each in a network namespace of its own, and the link between them,
// for any program.
//
// A lab is one re-executed child of this process, the engine, that owns the
// namespaces, the two TUN devices and the link; the programs at either end are its
// children. It is the first process of a PID namespace and ends when its control
// socket does, so whatever is killed, nothing is left: no process, no device, no name.
// Labs run side by side and inside one another.
//
// A program that uses this package calls Engine first thing in main (a test in
// TestMain).
package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// Addresses of the two hosts (RFC 2544's and RFC 5180's ranges for benchmarks). All
// labs use the same ones.
var (
	NearAddr  = netip.MustParseAddr("198.18.0.1")
	FarAddr   = netip.MustParseAddr("198.18.0.2")
	NearAddr6 = netip.MustParseAddr("2001:2::1")
	FarAddr6  = netip.MustParseAddr("2001:2::2")

	// what leads through a VPN
	nearInside  = address{netip.MustParseAddr("198.19.0.1"), netip.MustParseAddr("2001:2:0:1::1")}
	farInside   = address{netip.MustParseAddr("198.19.0.2"), netip.MustParseAddr("2001:2:0:1::2")}
	nearOutside = address{NearAddr, NearAddr6}
	farOutside  = address{FarAddr, FarAddr6}
)

type address struct{ v4, v6 netip.Addr }

// Host is one of the two hosts' addresses: Addr and Addr6 lead through the path's VPN
// when it has one, Outside and Outside6 past it. Without a VPN they are the same.
type Host struct{ Addr, Addr6, Outside, Outside6 netip.Addr }

// Hosts are the addresses on a path.
func Hosts(p link.Path) (near, far Host) {
	if p.VPN.Kind == "" {
		return Host{NearAddr, NearAddr6, NearAddr, NearAddr6}, Host{FarAddr, FarAddr6, FarAddr, FarAddr6}
	}
	return Host{nearInside.v4, nearInside.v6, NearAddr, NearAddr6}, Host{farInside.v4, farInside.v6, FarAddr, FarAddr6}
}

// Config says what lab to start.
type Config struct {
	Path link.Path
	// Tap, when not nil, gets a capture from the middle of the link: headers, in the
	// order and with the times of the link's own clock. It costs super-packets: each
	// segment is then carried by itself.
	Tap *os.File
	// Stderr is where the engine writes when it fails badly; nil is this process's.
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

// Start makes a lab. The context bounds the making only; Close ends the lab.
func Start(ctx context.Context, c Config) (*Lab, error) {
	e, err := startEngine(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	l := &Lab{engine: e}
	nearHost, farHost := Hosts(c.Path)
	l.Near, l.Far = &End{nearHost, near, l}, &End{farHost, far, l}
	return l, nil
}

// Close ends every program in the lab and the lab itself, and waits until they are
// gone.
func (l *Lab) Close() error { return l.engine.close() }

// Counters are what the link has done so far, up and down.
func (l *Lab) Counters() (up, down link.Counters, err error) {
	r, err := l.engine.ask(request{Op: opCounters})
	if err != nil {
		return up, down, err
	}
	return r.Counters[0], r.Counters[1], nil
}

// Command is a program to run at one end, as exec.Cmd. Args[0] is looked up in PATH.
// The program finds the lab's addresses in FULLPIPE_NEAR, FULLPIPE_FAR,
// FULLPIPE_NEAR6 and FULLPIPE_FAR6, those that lead past a VPN in FULLPIPE_NEAR_OUTSIDE
// and so on, and in FULLPIPE_SENDER_RULE the buffering rule that a fullpipe sending from
// this end has to obey.
type Command struct {
	Args   []string
	Env    []string // added to this process's environment
	Dir    string
	Stdin  *os.File // nil is /dev/null
	Stdout io.Writer
	Stderr io.Writer
	// OwnGroup keeps the program out of the terminal's foreground process group: Ctrl-C
	// does not reach it.
	OwnGroup bool
}

// NotRun says that a command could not be started; Status is what a shell would exit
// with: 127 not found, 126 found but not to be run.
type NotRun struct {
	Command string
	Status  int
	Err     error
}

func (e *NotRun) Error() string { return fmt.Sprintf("%s: %v", e.Command, e.Err) }

func (e *NotRun) Unwrap() error { return e.Err }

// Process is a running program in the lab.
type Process struct {
	PID    int // in the lab's PID namespace
	id     int
	engine *engine
	done   chan struct{} // closed by finish
	status int
	err    error
	copies []<-chan error
	copied sync.Once // by Wait
}

// Start runs a command at this end.
func (e *End) Start(c Command) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("lab: no command")
	}
	return e.lab.engine.start(e.name, c)
}

// Run runs a command at this end and waits for its exit status.
func (e *End) Run(c Command) (int, error) {
	p, err := e.Start(c)
	if err != nil {
		return 0, err
	}
	return p.Wait()
}

// Output runs a command at this end and returns what it printed on standard output. A
// status other than 0 is an error with the end of what it printed on standard error.
func (e *End) Output(args ...string) ([]byte, error) {
	var out, problems tail
	status, err := e.Run(Command{Args: args, Stdout: &out, Stderr: &problems})
	if err == nil && status != 0 {
		err = fmt.Errorf("%s: exit status %d: %s", args[0], status, problems.last(400))
	}
	return out.bytes, err
}

// Listening says whether any program listens on a TCP port at this end.
func (e *End) Listening() (bool, error) {
	r, err := e.lab.engine.ask(request{Op: opListening, End: e.name})
	return r.Listening, err
}

// AwaitListener gives a server that was started at this end the time it needs, so that
// the other end finds it: until something listens here, the program has ended or a
// second is over.
func (e *End) AwaitListener(ctx context.Context, p *Process) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if listening, err := e.Listening(); listening || err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

type tail struct{ bytes []byte }

func (t *tail) Write(p []byte) (int, error) { t.bytes = append(t.bytes, p...); return len(p), nil }

func (t *tail) last(n int) []byte { return t.bytes[max(0, len(t.bytes)-n):] }

// Wait waits for the program to end and for its output to be copied. The status of one
// killed by a signal is 128 and the signal's number. An error means that the lab ended
// first.
func (p *Process) Wait() (int, error) {
	<-p.done
	p.copied.Do(func() {
		for _, c := range p.copies {
			if err := <-c; err != nil && p.err == nil {
				p.err = fmt.Errorf("copying the output: %w", err)
			}
		}
	})
	return p.status, p.err
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the program. One that has ended already is no error.
func (p *Process) Signal(s os.Signal) error {
	number, err := signalNumber(s)
	if err != nil {
		return err
	}
	_, err = p.engine.ask(request{Op: opSignal, ID: p.id, Signal: number})
	return err
}

// The control protocol: one JSON object a packet over a SOCK_SEQPACKET socket pair,
// files beside it. Requests carry a Tag that the reply repeats; replies with Tag 0 tell
// of a process's end.
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
	Seen     int        `json:",omitempty"` // how often the sender has had that signal itself
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
}

const (
	opBuild     = "build"
	opStart     = "start"
	opSignal    = "signal"
	opForward   = "forward"
	opCounters  = "counters"
	opListening = "listening"
	opFinish    = "finish"
)

const (
	near = "near"
	far  = "far"
)

// engineName is argv[0] of an engine child.
const engineName = "fullpipe-lab-engine"

// Engine must be called first in main: in an engine child it does the engine's work
// and never returns; in any other process it does nothing.
func Engine() {
	if len(os.Args) == 1 && os.Args[0] == engineName {
		engineMain()
		os.Exit(0)
	}
}

// Failed is an error of the lab's own, with what to try.
type Failed struct{ Message, Hint string }

func (e *Failed) Error() string { return e.Message }

// Try tells what may help.
func (e *Failed) Try() string { return e.Hint }

// environment is what a program at one end finds set.
func environment(inherited []string, p link.Path, end string, stack link.Stack, added []string) []string {
	own := []string{"FULLPIPE_END=" + end, "FULLPIPE_SENDER_RULE=" + stack.SenderRule}
	nearHost, farHost := Hosts(p)
	for name, h := range map[string]Host{"FULLPIPE_NEAR": nearHost, "FULLPIPE_FAR": farHost} {
		own = append(own, name+"="+h.Addr.String(), name+"6="+h.Addr6.String(),
			name+"_OUTSIDE="+h.Outside.String(), name+"_OUTSIDE6="+h.Outside6.String())
	}
	return lastOfEach(slices.Concat(inherited, own, added))
}

// lastOfEach leaves out variables that are set again further on: programs take the
// first of two.
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
