package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/tui"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

type watchFlags struct {
	every, length            time.Duration
	hosts, ports             []string
	program, unit, container string
	minRate                  units.Rate
	local                    bool
	scrapes                  scrapeFlags
	rows                     int
	lines                    bool
}

func newWatch() *cobra.Command {
	f := &watchFlags{}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "what limits this host's connections, all the time",
		Long: `watch reads every TCP connection of this network namespace once a period, takes the kernel's
last account of those that end, and samples the 64 that move most. It shows for each that moves
payload: who, where to, how fast, the round trip against its least, and what limits it; on a
terminal as a table that keys sort, group, filter and open (? tells them), else as lines. With
--for it says at the end what limited most bytes. It changes nothing and needs no privilege;
what this user may not see is named.`,
		Example: `  fullpipe watch
  fullpipe watch --for 30s --json
  fullpipe watch --port 443 --min-rate 1mbit
  fullpipe watch --unit backup.service`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.DurationVar(&f.every, "every", 2*time.Second, "a period")
	flags.DurationVar(&f.length, "for", 0, "watch so long, then report")
	flags.StringSliceVar(&f.hosts, "host", nil, "far ends: an address or a prefix (several)")
	flags.StringSliceVar(&f.ports, "port", nil, "at either end (several)")
	flags.StringVar(&f.program, "program", "", "of this program")
	flags.StringVar(&f.unit, "unit", "", "of this unit of systemd")
	flags.StringVar(&f.container, "container", "", "of this container, by its id")
	flags.Var(&f.minRate, "min-rate", "that move so much, both directions together")
	flags.BoolVar(&f.local, "local", false, "connections within this host as well")
	f.scrapes.register(flags)
	flags.IntVar(&f.rows, "rows", 20, "connections that lines show in a period")
	flags.BoolVar(&f.lines, "lines", false, "lines on a terminal too")
	return cmd
}

func (f *watchFlags) match() (m watch.Match, err error) {
	m = watch.Match{Program: f.program, Unit: f.unit, Container: f.container, MinBps: float64(f.minRate), Local: f.local}
	for _, host := range f.hosts {
		p, err := netip.ParsePrefix(host)
		if err != nil {
			a, bad := netip.ParseAddr(host)
			if bad != nil {
				return m, &usageError{"--host", fmt.Sprintf("%q is no address and no prefix", host), "--host 192.0.2.0/24"}
			}
			p = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		}
		m.Hosts = append(m.Hosts, p.Masked())
	}
	for _, port := range f.ports {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return m, &usageError{"--port", fmt.Sprintf("%q is not a port", port), "--port 443"}
		}
		m.Ports = append(m.Ports, uint16(n))
	}
	return m, nil
}

func (f *watchFlags) run(cmd *cobra.Command) error {
	m, err := f.match()
	if err != nil {
		return err
	}
	switch {
	case f.every < 100*time.Millisecond || f.every > time.Hour:
		return &usageError{"--every", fmt.Sprintf("%v is not between 100ms and 1h", f.every), "--every 2s"}
	case f.length < 0 || f.length > 0 && f.length < f.every:
		return &usageError{"--for", fmt.Sprintf("%v is less than a period", f.length), "--for 30s"}
	case f.length > 0 && f.scrapes.address != "":
		return &usageError{"--listen", "with --for there would be nothing to scrape", "one of the two"}
	case f.rows < 1:
		return &usageError{"--rows", "none would be shown", "--rows 20"}
	}
	cfg := watch.Config{Match: m, Every: f.every, Sample: 100 * time.Millisecond, Cumulative: f.length > 0}
	if f.scrapes.address != "" {
		return f.export(cmd, cfg)
	}
	if f.length > 0 {
		return watchFor(cmd, "", cfg, f.length)
	}
	if !f.lines && !wantsJSON(cmd) && isTerminal(cmd.OutOrStdout()) && isTerminal(cmd.InOrStdin()) {
		return tui.Run(cmd.Context(), cmd.InOrStdin(), raw(cmd.OutOrStdout()),
			func(ctx context.Context, each func(*record.Watch)) error {
				return watch.Run(ctx, cfg, func(v *watch.View) error {
					each(report.Watch(newHeader(cmd), "", v))
					return nil
				})
			})
	}
	err = watch.Run(cmd.Context(), cfg, func(v *watch.View) error {
		doc := report.Watch(newHeader(cmd), "", v)
		if wantsJSON(cmd) {
			text.AddSentences(doc)
			line, err := json.Marshal(doc)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", line)
			return err
		}
		return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
			text.WatchLines(w, render.Document(doc), f.rows)
			return nil
		})
	})
	switch {
	case gone(err):
		return nil
	case cmd.Context().Err() != nil: // how a watch without an end ends: all that was seen is printed
		return exitStatus(statusInterrupted)
	}
	return err
}

// watchFor watches so long and prints one document about all of it.
func watchFor(cmd *cobra.Command, target string, cfg watch.Config, length time.Duration) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), length)
	defer cancel()
	var doc *record.Watch
	err := watch.Run(ctx, cfg, func(v *watch.View) error {
		doc = report.Watch(newHeader(cmd), target, v)
		return nil
	})
	interrupted := cmd.Context().Err()
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && interrupted == nil {
		return err
	}
	if doc == nil {
		return err
	}
	doc.Interrupted = interrupted != nil
	if target != "" && doc.Matching == 0 && interrupted == nil {
		return &noConnection{target, cfg.Match, os.Geteuid() != 0}
	}
	if err := show(cmd, doc); err != nil {
		return err
	}
	if interrupted != nil {
		return exitStatus(statusInterrupted)
	}
	return nil
}

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
	return "ss -tn lists what stands; TARGET is a PID, :PORT, HOST[:PORT], a program, a unit or a container"
}

func newWhy() *cobra.Command {
	length := 5 * time.Second
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
				return &usageError{"--for", fmt.Sprintf("%v is not between 1s and 1h", length), "--for 5s"}
			}
			lookup := func(host string) (all []netip.Addr, err error) {
				return net.DefaultResolver.LookupNetIP(cmd.Context(), "ip", host)
			}
			m, err := watch.ParseTarget(args[0], lookup)
			if err != nil {
				return &usageError{"TARGET", plain(err), "a PID, :PORT, HOST[:PORT], a program, a unit or a container"}
			}
			cfg := watch.Config{Match: m, Every: min(time.Second, length/4), Window: length, Cumulative: true}
			if len(m.PIDs) == 1 {
				cfg.Namespace, err = otherNamespace(m.PIDs[0])
				if err != nil {
					return &usageError{"TARGET", plain(err), "the PID of a program that runs, or root's rights for another's"}
				}
			}
			return watchFor(cmd, args[0], cfg, length)
		},
	}
	cmd.Flags().DurationVar(&length, "for", length, "how long to look")
	return cmd
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
