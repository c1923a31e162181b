// Package sockops gives unmodified programs the windows that a path needs.
//
// The program runs in a cgroup of its own with three small eBPF programs. A sock_ops program sets the buffers of
// connections that the program and its children open or accept, before the SYN and before listen(): the window scale is
// fixed then. Two sockopt programs suppress the program's own SO_SNDBUF and SO_RCVBUF calls on request. Nothing is
// pinned and no setting of the host changes, so everything ends with the program. If this process is killed, a
// supervisor moves the program back to its original cgroup, where it continues without these settings.
//
// It needs Linux 5.8 with cgroup v2 (a hybrid mount is enough), and CAP_BPF and CAP_NET_ADMIN or root. Inherited
// sockets belong to another cgroup and keep their options.
package sockops

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
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// Rule sets the socket options of connections to one destination.
type Rule struct {
	// To is the far end's address range; the zero Prefix matches all. The longest matching prefix wins.
	To netip.Prefix
	// Socket sets the options; zero fields are unchanged. Buffers above net.core.wmem_max and rmem_max are forced a
	// few milliseconds after the connection is established. A listener uses the rule for all destinations, because its
	// SYN-ACK fixes the window scale.
	Socket transfer.Socket
}

// Config sets the steering. Its zero value only watches.
type Config struct {
	Rules []Rule
	// IgnoreProgramBuffers suppresses the program's SO_SNDBUF and SO_RCVBUF calls on TCP sockets, so that autotuning
	// or the rules stay in force. getsockopt() returns the requested size.
	IgnoreProgramBuffers bool
	// Every is the sample interval; 0 is 50 ms.
	Every time.Duration
}

// Connection is one TCP connection of the program or its children.
type Connection struct {
	Opened bool // connect(); false: accepted
	Rule   int  // index in Config.Rules, or -1
	// Lasted is the time from first sample to end, at a resolution of Config.Every if the kernel reported no end; 0 is
	// unknown.
	Lasted time.Duration
	// Stream contains the effective options. The requested buffers are the rule's, otherwise the program's. Result
	// returns payload and times.
	Stream transfer.Stream
	// AskedSend and AskedReceive are the program's own requests before the connection was established, ignored or not;
	// 0 is none.
	AskedSend, AskedReceive int
	// Final reports that the counters are the kernel's at the socket's end, not of the last sample.
	Final bool

	samples []queueSample
	heard   time.Duration // time of the peer's last packet
}

// Report describes a steered program's connections.
type Report struct {
	Connections []Connection // in order of establishment
	// Left counts surviving processes. They returned to fullpipe's cgroup; their connections keep their options.
	Left int
	// Missed reports that some connections were not followed.
	Missed bool
	// Refused is the error of buffers above the ceilings that the kernel did not set; nil: none.
	Refused error
	// Failures ended the watching or the cleaning up early: data is missing.
	Failures []error
	Took     time.Duration
	// Waits has what the program waited for, the longest first.
	Waits []waits.Wait
}

// NotSupported names the feature that this host lacks.
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

// Try returns the alternative.
func (e *NotSupported) Try() string {
	return "let the program size its own buffers: fullpipe plan prints the sizes; Go programs can use autobuf"
}

// NotPermitted names the missing privilege.
type NotPermitted struct {
	Action string // in the infinitive: "make a cgroup"
	Err    error
}

func (e *NotPermitted) Error() string {
	return fmt.Sprintf("may not %s: %v (needs root, or CAP_BPF, CAP_NET_ADMIN and a writable cgroup)", e.Action, e.Err)
}

func (e *NotPermitted) Unwrap() error { return e.Err }

// Try returns the remedy.
func (e *NotPermitted) Try() string {
	if os.Geteuid() == 0 {
		return "outside of the container, or a container that has CAP_BPF and CAP_NET_ADMIN, a writable cgroup and a " +
			"seccomp filter that allows bpf"
	}
	return "sudo fullpipe exec … -- sudo -u \"$USER\" CMD …"
}

// supervisorName is argv[0] of a supervisor child.
const supervisorName = "fullpipe-exec-supervisor"

// Supervisor must be the first call in main. In a supervisor child it never returns; elsewhere it does nothing.
func Supervisor() {
	if len(os.Args) == 3 && os.Args[0] == supervisorName {
		runSupervisor()
		os.Exit(0)
	}
}

// Run starts cmd in a new cgroup, waits for it and reports its connections. An error means that cmd was not
// started; exec.Cmd's errors are returned unchanged. cmd.ProcessState has the exit status. Run forwards SIGTERM,
// SIGHUP, SIGQUIT and SIGINT to cmd, and sends SIGTERM when ctx ends. It returns after cmd has ended.
func Run(ctx context.Context, cmd *exec.Cmd, cfg Config) (*Report, error) {
	if cfg.Every == 0 {
		cfg.Every = 50 * time.Millisecond
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	return run(ctx, cmd, cfg)
}

// check returns an error if the interval or a rule is invalid.
func (cfg Config) check() error {
	if cfg.Every < time.Millisecond {
		return fmt.Errorf("a sample interval of %v: less than 1 ms", cfg.Every)
	}
	return Check(cfg.Rules)
}

// RuleError is an invalid rule.
type RuleError struct {
	To      netip.Prefix // of the rule; zero is all destinations
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

// prefix returns the rule's destination with IPv4 mapped into IPv6.
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
