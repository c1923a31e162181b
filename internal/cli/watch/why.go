package watch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// targetForms lists what TARGET can be.
const targetForms = "a PID, :PORT, HOST[:PORT], a program, a script, a unit or a container"

// noConnection reports that no connection matches the target.
type noConnection struct {
	target       string
	match        watch.Match
	unprivileged bool
}

// Error returns the message.
func (e *noConnection) Error() string {
	return e.target + ": it has no TCP connection, or none that moved payload"
}

// Try returns what may help.
func (e *noConnection) Try() string {
	if e.unprivileged && (len(e.match.PIDs) > 0 || e.match.Name != "") {
		return "run it as root: other users' programs cannot be seen; or ask by address or :PORT"
	}
	list := "netstat -n"
	if runtime.GOOS == "linux" {
		list = "ss -tn"
	}
	return list + " lists the connections; TARGET is " + targetForms
}

// nameWait is how long a name may take to appear among the processes: a program may start only now.
const nameWait = time.Second

// resolveTimeout bounds a query of the name servers.
const resolveTimeout = 3 * time.Second

// targets finds out what a TARGET means.
type targets struct {
	ctx      context.Context
	programs []string // that run here
}

// parse parses a TARGET.
func (t *targets) parse(target string) (watch.Match, error) {
	runs := t.runs
	if runtime.GOOS != "linux" {
		runs = nil
	}
	m, err := watch.ParseTarget(target, runs, t.resolve)
	if err == nil {
		return m, nil
	}
	try := targetForms
	var unknown *watch.UnknownTargetError
	if near := didyoumean.Nearest(target, t.programs); near != "" && runs != nil {
		try = "fullpipe why " + near + "; TARGET is " + targetForms
	}
	if errors.As(err, &unknown) {
		return m, exit.Usage("TARGET", fmt.Sprintf("%q: %v", unknown.Name, err), try+"; a host's complete name ends in a dot")
	}
	return m, exit.Usage("TARGET", exit.Plain(err), try)
}

// runs reports whether a process here has the name. Where the name can be no host it waits for one a little.
func (t *targets) runs(name string) bool {
	for end := time.Now().Add(nameWait); ; {
		var found bool
		found, t.programs = watch.Running(name)
		if found || watch.CanBeHost(name) || time.Now().After(end) || t.ctx.Err() != nil {
			return found
		}
		time.Sleep(nameWait / 5)
	}
}

// resolve returns the addresses of a host.
func (t *targets) resolve(host string) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeoutCause(t.ctx, resolveTimeout,
		fmt.Errorf("no program of the name %q runs here, and no name server answered within %v", host, resolveTimeout))
	defer cancel()
	all, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return all, err
}

// NewWhy returns the command why.
func NewWhy() *cobra.Command {
	length := 5 * time.Second
	everywhere := false
	count := false
	var refused criteria
	cmd := &cobra.Command{
		Use:   "why TARGET",
		Short: "find the limiter of a running program's connections",
		Long: `why watches the connections of TARGET for some seconds, then reports the
limiter of the heaviest one and the remedy. Of a proxy or tunnel it finds the connections that
move the same data. If one of them only waits for another, why reports the limiter of that
one. Of requests it reports the times and the causes of waits (docs/requests.md). It changes
and restarts nothing. TARGET is a PID, :PORT (at either end), HOST[:PORT], or the name of a
program, a script, a unit of systemd or a container. The connections of child processes count
as their parent's: for example, an ssh that rsync started counts as rsync. On macOS and Windows
it names fewer limiters than on Linux, and on FreeBSD none: see fullpipe watch --help.`,
		Example: `  fullpipe why rsync
  fullpipe why backup.py
  fullpipe why :443
  fullpipe why backup.example.org
  fullpipe why backup.service --for 20s
  fullpipe why rsync --fail-on waits:disk`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if length < time.Second || length > time.Hour {
				return exit.Usage("--for", fmt.Sprintf("%v is not between 1s and 1h", length), "--for 5s")
			}
			if err := refused.check(); err != nil {
				return err
			}
			t := &targets{ctx: cmd.Context()}
			m, err := t.parse(args[0])
			if err != nil {
				return err
			}
			cfg := watch.Config{Match: m, Every: min(time.Second, length/4), Window: length, Cumulative: true,
				Namespaces: everywhere, Count: count, Programs: 4}
			if len(m.PIDs) == 1 {
				cfg.Namespaces = false
				cfg.Namespace, err = otherNamespace(m.PIDs[0])
				if err != nil {
					return exit.Usage("TARGET", exit.Plain(err), "the PID of a program that runs, or root's rights for another's")
				}
			}
			cfg.Segments = openSegments()
			defer cfg.Segments.Close()
			return watchFor(cmd, args[0], cfg, length, watch.Run, refused)
		},
	}
	cmd.Flags().Var((*cmdflag.Period)(&length), "for", "how long to look")
	registerEverywhere(&everywhere, cmd.Flags())
	registerCount(&count, cmd.Flags())
	refused.add(cmd.Flags())
	return cmd
}

// registerCount adds the flag without which Windows reports nothing.
func registerCount(to *bool, flags *pflag.FlagSet) {
	if runtime.GOOS == "windows" {
		flags.BoolVar(to, "count", false, "let Windows count what each connection does, as an Administrator: without it "+
			"nothing is known. It is taken back at the end, for other readers of these counters too")
	}
}

// registerEverywhere adds the flag that looks into other network namespaces.
func registerEverywhere(to *bool, flags *pflag.FlagSet) {
	flags.BoolVar(to, "all-namespaces", watch.SeesNamespaces(),
		"look into other network namespaces as well, such as containers' (default for root in the host's own)")
}

// otherNamespace is the network namespace of a process, where it is not this one's; "" is
// this one's.
func otherNamespace(pid int) (string, error) {
	path := fmt.Sprintf("/proc/%d/ns/net", pid)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err != nil {
		if _, err := os.Stat("/proc/self"); err != nil {
			return "", nil // no such file system here
		}
		return "", fmt.Errorf("no process has the number %d", pid)
	}
	own, err := os.Readlink("/proc/self/ns/net")
	its, failed := os.Readlink(path)
	if err != nil || failed != nil || strings.TrimSpace(own) == its {
		return "", nil
	}
	return path, nil
}
