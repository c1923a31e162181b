package watch

import (
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
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// noConnection says that nothing fits the target.
type noConnection struct {
	target string
	match  watch.Match
	nobody bool
}

func (e *noConnection) Error() string {
	return e.target + ": no TCP connection of it stands, or none that moved anything"
}

// Try says what may help.
func (e *noConnection) Try() string {
	if e.nobody && (len(e.match.PIDs) > 0 || e.match.Name != "") {
		return "run it as root: other users' programs cannot be seen; or ask by address or :PORT"
	}
	list := "netstat -n"
	if runtime.GOOS == "linux" {
		list = "ss -tn"
	}
	return list + " lists what stands; TARGET is a PID, :PORT, HOST[:PORT], a program, a unit or a container"
}

// NewWhy returns the command why.
func NewWhy() *cobra.Command {
	length := 5 * time.Second
	everywhere := false
	count := false
	cmd := &cobra.Command{
		Use:   "why TARGET",
		Short: "what limits this one now",
		Long: `why looks for some seconds at the connections of TARGET that are running now and says what
limits the heaviest of them and what to do. Nothing has to be restarted, nothing is changed.
TARGET is a PID, :PORT (at either end), HOST[:PORT], or the name of a program, a unit of
systemd or a container.`,
		Example: `  fullpipe why rsync
  fullpipe why :443
  fullpipe why backup.example.org
  fullpipe why backup.service --for 20s`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if length < time.Second || length > time.Hour {
				return exit.Usage("--for", fmt.Sprintf("%v is not between 1s and 1h", length), "--for 5s")
			}
			lookup := func(host string) (all []netip.Addr, err error) {
				return net.DefaultResolver.LookupNetIP(cmd.Context(), "ip", host)
			}
			m, err := watch.ParseTarget(args[0], lookup)
			if err != nil {
				return exit.Usage("TARGET", exit.Plain(err), "a PID, :PORT, HOST[:PORT], a program, a unit or a container")
			}
			cfg := watch.Config{Match: m, Every: min(time.Second, length/4), Window: length, Cumulative: true,
				Namespaces: everywhere, Count: count}
			if len(m.PIDs) == 1 {
				cfg.Namespaces = false
				cfg.Namespace, err = otherNamespace(m.PIDs[0])
				if err != nil {
					return exit.Usage("TARGET", exit.Plain(err), "the PID of a program that runs, or root's rights for another's")
				}
			}
			return watchFor(cmd, args[0], cfg, length, watch.Run)
		},
	}
	cmd.Flags().Var((*cmdflag.Period)(&length), "for", "how long to look")
	registerEverywhere(&everywhere, cmd.Flags())
	registerCount(&count, cmd.Flags())
	return cmd
}

// registerCount adds the flag without which Windows tells nothing.
func registerCount(to *bool, flags *pflag.FlagSet) {
	if runtime.GOOS == "windows" {
		flags.BoolVar(to, "count", false, "let Windows count what each connection does, as an Administrator: without it "+
			"nothing is known. It is taken back at the end, for other readers of these counters too")
	}
}

// registerEverywhere adds the flag of whether other network namespaces are looked into: as root of the
// host they are.
func registerEverywhere(to *bool, flags *pflag.FlagSet) {
	own, err := os.Readlink("/proc/self/ns/net")
	hosts, failed := os.Readlink("/proc/1/ns/net") // which only root may read
	if failed != nil {
		hosts, failed = os.Readlink("/proc/2/ns/net") // the first process is guarded on some hosts; kthreadd is not
	}
	flags.BoolVar(to, "all-namespaces", err == nil && failed == nil && own == hosts && os.Geteuid() == 0,
		"look into other network namespaces as well, such as containers'")
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
