// Package steer gives unmodified programs the windows that a path needs.
//
// The program runs in a cgroup of its own to which three small eBPF programs are
// attached. A sock_ops program sets the buffers before the SYN leaves and before
// listen(), which is when the window scale is settled, on connections that the program
// and its children open as well as on those they accept. Two sockopt programs take the
// program's own SO_SNDBUF and SO_RCVBUF calls out of the way where that is asked for.
// All of it ends with the program: nothing is pinned, no setting of the host changes. A
// supervisor frees the program where this process is killed: it then runs on, unsteered, in
// the cgroup that it came from.
//
// Needs Linux 5.8 with cgroup v2 (a hybrid mount will do), CAP_BPF and CAP_NET_ADMIN or
// root. Sockets that CMD inherits were made in
// another cgroup and keep what they have.
package steer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Rule gives the connections with one destination their windows.
type Rule struct {
	// To is the far end's address range; the zero Prefix is every destination. A
	// connection follows the longest prefix that holds its far end.
	To netip.Prefix
	// Socket is what the connections get; what is zero in it is left to the program and
	// the system. Buffers above net.core.wmem_max and rmem_max are left automatic until
	// the connection stands and then forced, within a few milliseconds. A listener is given the
	// buffers of the rule for every destination, because its SYN-ACK settles the window
	// scale.
	Socket transfer.Socket
}

// Config says how a program is to be steered. Its zero value changes nothing and only
// watches.
type Config struct {
	Rules []Rule
	// IgnoreProgramBuffers keeps the program's own SO_SNDBUF and SO_RCVBUF calls on TCP
	// sockets from the kernel, so that automatic sizing or the rules stay in force. The
	// program is told that it has what it asked for.
	IgnoreProgramBuffers bool
	// Every is the time between two readings of the connections; 0 is 50 ms.
	Every time.Duration
}

// Connection is one TCP connection of the program or of its children.
type Connection struct {
	Opened bool // connect(); false: accepted
	Rule   int  // index in Config.Rules, -1 when none holds the far end
	// Lasted is from the connection's first reading to its end, to the grain of
	// Config.Every where the kernel did not tell the end; 0 is not known.
	Lasted time.Duration
	// Stream holds what the connection got; Requested in its buffers is what the rule
	// asked for, or else the program. What was carried and when is Result's to tell.
	Stream transfer.Stream
	// AskedSend and AskedReceive are what the program itself asked for before the
	// connection stood (with Config.IgnoreProgramBuffers in vain); 0: it did not ask.
	AskedSend, AskedReceive int
	// Final says that the counters are the kernel's account at the socket's end, not the
	// last reading before it.
	Final bool

	readings []reading
	heard    time.Duration // when the peer was last heard of
}

// Report is what became of a steered program's connections.
type Report struct {
	Connections []Connection // in the order in which they were made
	// Left counts processes that the program left running. They went back to the cgroup
	// that fullpipe runs in; their connections keep what they have.
	Left int
	// Missed says that more connections were made than could be followed.
	Missed bool
	// Warnings say what of this account is missing and why.
	Warnings []string
	Took     time.Duration
}

// NotSupported says which feature this host lacks.
type NotSupported struct {
	Feature string
	Err     error
}

func (e *NotSupported) Error() string {
	text := "steering programs needs " + e.Feature + ", which this host does not have"
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *NotSupported) Unwrap() error { return e.Err }

// Try names what to do instead.
func (e *NotSupported) Try() string {
	return "let the program size its own buffers: fullpipe plan prints the sizes; Go programs can use autobuf"
}

// NotPermitted says which privilege is missing.
type NotPermitted struct {
	What string
	Err  error
}

func (e *NotPermitted) Error() string {
	return fmt.Sprintf("may not %s: %v (needs root, or CAP_BPF, CAP_NET_ADMIN and a writable cgroup)", e.What, e.Err)
}

func (e *NotPermitted) Unwrap() error { return e.Err }

// Try names what to do.
func (e *NotPermitted) Try() string {
	if os.Geteuid() == 0 {
		return "outside of the container, or a container that has CAP_BPF and CAP_NET_ADMIN, a writable cgroup and a " +
			"seccomp filter that allows bpf"
	}
	return "sudo fullpipe exec … -- sudo -u \"$USER\" CMD …"
}

// supervisorName is argv[0] of a supervisor child.
const supervisorName = "fullpipe-exec-supervisor"

// Supervisor must be called first in main: in the child that frees a program whose steering
// process was killed it does that work and never returns; elsewhere it does nothing.
func Supervisor() {
	if len(os.Args) == 3 && os.Args[0] == supervisorName {
		runSupervisor()
		os.Exit(0)
	}
}

// Run starts cmd in a cgroup of its own, waits for it and reports what each of its
// connections got. An error that is not nil means that cmd was not started, and is
// exec.Cmd's where cmd itself could not be; cmd's own end is in cmd.ProcessState.
// SIGTERM, SIGHUP, SIGQUIT and SIGINT to this process go on to cmd, which decides; when ctx ends, cmd
// is sent SIGTERM. Run does not return before cmd has ended.
func Run(ctx context.Context, cmd *exec.Cmd, cfg Config) (*Report, error) {
	if cfg.Every == 0 {
		cfg.Every = 50 * time.Millisecond
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return run(ctx, cmd, cfg)
}

func (cfg Config) check() error {
	if cfg.Every < time.Millisecond {
		return fmt.Errorf("reading the connections every %v: less than 1ms", cfg.Every)
	}
	return Check(cfg.Rules)
}

// RuleError is a rule that cannot be set.
type RuleError struct {
	To      netip.Prefix // of the rule; the zero value: every destination
	Setting string       // send-buffer, receive-buffer, window, mss, congestion, pacing; "": the destination
	Message string
}

func (e *RuleError) Error() string {
	return "rule for " + destination(e.To) + ": " + strings.TrimSpace(e.Setting+" "+e.Message)
}

func destination(to netip.Prefix) string {
	if !to.IsValid() {
		return "every destination"
	}
	return to.String()
}

// Check returns a *RuleError for the first rule that cannot be set.
func Check(rules []Rule) error {
	var seen []netip.Prefix
	for _, r := range rules {
		to := r.prefix()
		if slices.Contains(seen, to) {
			return &RuleError{r.To, "", "another rule has the same destination"}
		}
		seen = append(seen, to)
		s := r.Socket
		for _, v := range []struct {
			setting string
			bytes   int
		}{{"send-buffer", s.SendBuffer}, {"receive-buffer", s.ReceiveBuffer}, {"window", s.Clamp}, {"mss", s.MSS}} {
			if v.bytes < 0 || v.bytes > 1<<30 {
				return &RuleError{r.To, v.setting, fmt.Sprintf("%d bytes is not between 0 and 1 GiB", v.bytes)}
			}
		}
		if len(s.Congestion) >= 16 {
			return &RuleError{r.To, "congestion", fmt.Sprintf("%.40q is longer than 15 letters", s.Congestion)}
		}
		if s.PacingBps < 0 || s.PacingBps > 8*(1<<32-2) {
			return &RuleError{r.To, "pacing", "is not between 0 and 34.3 Gbit/s"}
		}
	}
	return nil
}

// prefix is the rule's destination as the kernel is given it: IPv4 mapped into IPv6.
func (r Rule) prefix() netip.Prefix {
	switch {
	case !r.To.IsValid():
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	case r.To.Addr().Is4():
		return netip.PrefixFrom(netip.AddrFrom16(r.To.Addr().As16()), r.To.Bits()+96).Masked()
	}
	return r.To.Masked()
}

var errNoCgroup = errors.New("no cgroup2 file system is mounted")
