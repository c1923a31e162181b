// Package watch follows this host's connections: watch all of them, and why one of them.
package watch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/tui"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// following is watch.Run, or it with more done with each view.
type following func(context.Context, watch.Config, func(*watch.View) error) error

type flags struct {
	every, length            time.Duration
	hosts, ports             []string
	program, unit, container string
	minRate                  units.Rate
	local                    bool
	scrapes                  listener.ListenFlags
	rows, sampled            int
	lines, anonymize         bool
	everywhere, count        bool
	onChange                 string
	onChangeShell            bool
}

// New returns the command watch.
func New() *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "follow this host's connections and their limiters",
		Long: `watch needs Linux for all limiters. macOS and Windows have fewer statistics:
bytes, RTTs and windows; there watch lists the connections four times a second and finds the
sender's limiter from that, on Windows also from its count of rwnd-limited time. FreeBSD has
too few: use fullpipe diagnose on a capture.

Once per period (--every) watch reads every TCP connection of this network namespace. It
reads the 64 busiest more often, and for a connection that ends the kernel's final counters.
For each connection that moves payload it shows the program, the far end, the goodput, the
RTT with its minimum, and the limiter, or its requests/s, their p99 and stalls. On a terminal
this is a table that you sort, group and filter by keys (press ? for help); otherwise it prints
lines. With --for it stops after that time and prints, for each limiter, how many bytes it
limited. It changes nothing and needs no privilege. If this user may not see something, watch
says what. As root in the host's own network namespace it also
follows containers: it finds a container within 5 s, and stops following it when its last
process has ended. --record stores one result per hour in the history. It has, for each
minute, the payload and the limiters of each group of connections (same program or unit, far
network and service port).

The path to each network (minimum RTT of new connections, delivery rate, loss, reordering,
MTU, ECN) is compared with its past every five minutes. A lasting change is reported once,
also to the program of --on-change. If all networks change at the same time, that is one
report. With --record or --on-change the baseline is stored, and the next watch continues
with it.`,
		Example: `  fullpipe watch
  fullpipe watch --for 30s --json
  fullpipe watch --port 443 --min-rate 1mbit
  fullpipe watch --unit backup.service`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.register(cmd.Flags())
	return cmd
}

// register adds the flags.
func (f *flags) register(flags *pflag.FlagSet) {
	f.every = 2 * time.Second
	flags.Var((*cmdflag.Period)(&f.every), "every", "a period")
	flags.Var((*cmdflag.Period)(&f.length), "for", "watch for this time, then report")
	flags.StringSliceVar(&f.hosts, "host", nil, "far ends: `addresses` or prefixes, separated by commas")
	flags.StringSliceVar(&f.ports, "port", nil, "`ports` at either end, separated by commas")
	flags.StringVar(&f.program, "program", "", "of this program")
	flags.StringVar(&f.unit, "unit", "", "of this unit of systemd")
	flags.StringVar(&f.container, "container", "", "only connections of this container: its "+
		"id, or the beginning of the id")
	flags.Var(&f.minRate, "min-rate", "only connections with at least this goodput, both "+
		"directions together")
	flags.BoolVar(&f.local, "local", false, "also connections within this host")
	registerEverywhere(&f.everywhere, flags)
	registerCount(&f.count, flags)
	listener.AddScrapeFlags(&f.scrapes, flags)
	flags.IntVar(&f.rows, "rows", 20, "maximum number of connections printed per period")
	flags.IntVar(&f.sampled, "sampled", 64, "how many connections, the busiest first, are read "+
		"more than once per period; the limiter of the others comes only from the kernel's "+
		"counters of limited time")
	flags.BoolVar(&f.lines, "lines", false, "lines on a terminal too")
	flags.BoolVar(&f.anonymize, "anonymize", false, "replace each address by an invented one, "+
		"always the same while watch runs")
	flags.StringVar(&f.onChange, "on-change", "", "run this program when a path has changed, "+
		"with the change in environment variables (FULLPIPE_CHANGE and others); after 30 s it "+
		"is killed")
	flags.BoolVar(&f.onChangeShell, "on-change-shell", false, "run the command of --on-change "+
		"in a shell")
	flags.Bool("record", false, "store the payload and limiters of each minute in the history, "+
		"for groups of connections: far networks, no addresses")
	flags.StringToString("label", nil, "`name=value`, kept with --record")
	history.AddStoreFlag(flags)
}

func (f *flags) match() (m watch.Match, err error) {
	m = watch.Match{Program: f.program, Unit: f.unit, Container: f.container, MinBps: float64(f.minRate), Local: f.local}
	for _, host := range f.hosts {
		p, err := netip.ParsePrefix(host)
		if err != nil {
			a, bad := netip.ParseAddr(host)
			if bad != nil {
				return m, exit.Usage("--host", fmt.Sprintf("%q is no address and no prefix", host), "--host 192.0.2.0/24")
			}
			p = netip.PrefixFrom(a.Unmap(), a.Unmap().BitLen())
		}
		m.Hosts = append(m.Hosts, p.Masked())
	}
	for _, port := range f.ports {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return m, exit.Usage("--port", fmt.Sprintf("%q is not a port", port), "--port 443")
		}
		m.Ports = append(m.Ports, uint16(n))
	}
	return m, nil
}

// check says what cannot be, or not together.
func (f *flags) check() error {
	return cmdflag.Check(
		cmdflag.If(f.every < 100*time.Millisecond || f.every > time.Hour, "--every",
			fmt.Sprintf("%v is not between 100ms and 1h", f.every), "--every 2s"),
		cmdflag.If(f.length < 0 || f.length > 0 && f.length < f.every, "--for", fmt.Sprintf("%v is less than a period",
			f.length), "--for 30s"),
		cmdflag.If(f.length > 0 && f.scrapes.Address != "", "--listen", "with --for there would be nothing to scrape",
			"one of the two"),
		cmdflag.If(f.length > 0 && f.onChange != "", "--on-change", "with --for there are no windows to compare",
			"one of the two"),
		cmdflag.If(f.onChange != "" && strings.TrimSpace(f.onChange) == "", "--on-change", "it names no program",
			"--on-change /usr/local/bin/path-changed"),
		cmdflag.If(f.onChangeShell && f.onChange == "", "--on-change-shell", "there is nothing to run",
			"--on-change 'COMMAND' with it"),
		cmdflag.If(f.sampled < 0 || f.sampled > 1000, "--sampled", fmt.Sprintf("%d is not between 0 and 1000", f.sampled),
			"--sampled 64"),
		cmdflag.If(f.rows < 1, "--rows", "none would be shown", "--rows 20"),
	)
}

func (f *flags) run(cmd *cobra.Command) (err error) {
	m, err := f.match()
	if err != nil {
		return err
	}
	if f.length > 0 && !cmd.Flags().Changed("every") {
		f.every = min(f.every, f.length)
	}
	if err := f.check(); err != nil {
		return err
	}
	cfg := f.config(m)
	cfg.Segments = openSegments()
	defer cfg.Segments.Close()
	if f.scrapes.Address != "" {
		defer console.LogStderr(cmd)()
	}
	table := !f.lines && f.length == 0 && f.scrapes.Address == "" && !console.WantsJSON(cmd) &&
		console.IsTerminal(cmd.OutOrStdout()) &&
		console.IsTerminal(cmd.InOrStdin()) && console.IsDrawable(cmd.OutOrStdout())
	if table {
		defer console.HoldNotes(cmd)()
	}
	follow := thrifty(watch.Run)
	if console.IsSet(cmd, "record") {
		k := newKeeper(cmd, f.anonymize)
		defer func() { err = history.First(cmd, err, k.close()) }()
		follow = k.follow(follow)
	}
	if f.length == 0 {
		var h *hookQueue
		if f.onChange != "" {
			h = newHook(cmd, f.onChange, f.onChangeShell, f.hookOutput(cmd, table))
			defer h.close()
		}
		follow = newPathFollower(cmd, f.baselineFile(cmd), h).follow(follow)
	}
	if f.length > 0 {
		return watchFor(cmd, "", cfg, f.length, follow, criteria{})
	}
	losses := watchLosses()
	defer losses.close()
	cfg.Losses = losses.of
	if f.scrapes.Address != "" {
		return f.export(cmd, cfg, follow)
	}
	if table {
		return tui.Run(cmd.Context(), cmd.InOrStdin(), console.Raw(cmd.OutOrStdout()),
			func(ctx context.Context, each func(*record.Watch)) error {
				return follow(ctx, cfg, func(v *watch.View) error {
					each(report.Watch(present.Header(cmd), "", v))
					return nil
				})
			})
	}
	err = follow(cmd.Context(), cfg, func(v *watch.View) error {
		doc := report.Watch(present.Header(cmd), "", v)
		if console.WantsJSON(cmd) {
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
	case console.IsGone(err):
		return nil
	case cmd.Context().Err() != nil: // how a watch without an end ends: all that was seen is printed
		return exit.Status(exit.Interrupted)
	}
	return err
}

// config returns what the flags ask for.
func (f *flags) config(m watch.Match) watch.Config {
	cfg := watch.Default()
	cfg.Match = m
	cfg.Every = f.every
	cfg.Cumulative = f.length > 0
	if cfg.Cumulative { // only periods show which programs limit
		cfg.Programs = 0
	}
	cfg.Anonymize = f.anonymize
	cfg.Sampled = cmp.Or(f.sampled, -1)
	cfg.Namespaces = f.everywhere
	cfg.Count = f.count
	return cfg
}

// lessGarbage is the garbage of a watch before a collection, as a percentage of its live memory: other programs on the
// host need the memory.
const lessGarbage = 40

// thrifty does so, but not before the first view: until then what is kept grows, and to collect would only take
// time. A watch has one thing to do at a time, so of the processors it takes one: Go's scheduler would wake up
// others to look for work that is not there.
func thrifty(follow following) following {
	return func(ctx context.Context, cfg watch.Config, each func(*watch.View) error) error {
		runtime.GOMAXPROCS(1)
		var first sync.Once
		if cfg.Cumulative {
			debug.SetGCPercent(lessGarbage) // its first view is the last
		}
		return follow(ctx, cfg, func(v *watch.View) error {
			first.Do(func() { debug.SetGCPercent(lessGarbage) })
			return each(v)
		})
	}
}

// hookOutput is where a program on a change writes: standard output is the watch's own, and
// on a terminal that shows the table there is no place.
func (f *flags) hookOutput(cmd *cobra.Command, table bool) io.Writer {
	if table {
		return io.Discard
	}
	return console.Progress(cmd)
}

// watchFor watches so long and prints one document about all of it.
func watchFor(cmd *cobra.Command, target string, cfg watch.Config, length time.Duration, follow following,
	refused criteria) error {
	var doc *record.Watch
	losses := watchLosses() // before the time begins: a busy machine takes seconds for it
	defer losses.close()
	cfg.Losses = losses.of
	ctx, cancel := context.WithTimeout(cmd.Context(), length)
	defer cancel()
	err := follow(ctx, cfg, func(v *watch.View) error {
		doc = report.Watch(present.Header(cmd), target, v)
		return nil
	})
	if doc != nil {
		losses.explain(doc)
	}
	interrupted := cmd.Context().Err()
	if err != nil && !errors.Is(err, context.DeadlineExceeded) && interrupted == nil {
		return err
	}
	if doc == nil {
		return err
	}
	doc.Interrupted = interrupted != nil
	if target != "" && doc.Matching == 0 && interrupted == nil {
		return &noConnection{target, cfg.Match, runtime.GOOS == "linux" && os.Geteuid() != 0}
	}
	if len(doc.Connections) > 0 && len(doc.Connections[0].Directions) > 0 {
		doc.Criteria = refused.judge(&doc.Connections[0].Directions[0])
	}
	if err := present.Document(cmd, doc); err != nil {
		return err
	}
	switch {
	case interrupted != nil:
		return exit.Status(exit.Interrupted)
	case failed(doc):
		return exit.Status(exit.No)
	}
	return nil
}
