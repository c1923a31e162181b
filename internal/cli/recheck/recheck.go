// Package recheck implements the command that tests known paths regularly and reports changes.
package recheck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
	_ "time/tzdata"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/recheck/runner"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// flags are the options of recheck.
type flags struct {
	farend.PeerFlags
	time       time.Duration
	every      cmdflag.Duration
	dayBytes   units.Size
	dayTime    cmdflag.Duration
	quietHours string
	own        bool
	zone       string
	notify     hook.Target
	scrapes    listener.ListenFlags
}

// leastEvery is the shortest mean time between tests of one far end: retests of a suspicion must end before the next
// test.
const leastEvery = 30 * time.Minute

// New returns the command recheck.
func New() *cobra.Command {
	cmd, _ := command()
	return cmd
}

// command returns the command and its options.
func command() (*cobra.Command, *flags) {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "recheck [PEER...]",
		Short: "test known paths regularly and report changes",
		Long: `recheck measures each PEER for a few seconds, stores the result in the
history and compares it with earlier results. Without PEER it tests the peers in [recheck]
of the configuration. It needs 12 results before it can report a change.

An unusual result is re-tested at once, at intervals of three minutes. recheck reports a dip
or a rise within half an hour of the first unusual result, unless more than one in 16
results of this path is as unusual. It reports "changed" only after tests some hours later
have confirmed it. A new limiter, path MTU, round trip, handshake option or far kernel is an
event of its own.

Public ndt7 servers are tested by M-Lab's rules: at random intervals with a mean of 6 hours
(exponential distribution, 36 minutes to 15 hours). --every and timers do not change that,
and there are no immediate re-tests. These intervals apply to all public servers together;
they are tested one after the other. A dip is reported after four tests at the earliest. A
server at a private address is not public; with --own other servers are not public either.

Without --every recheck tests each PEER once, for use with a timer (contrib/). With --every
it keeps running and tests each PEER at random intervals with that mean (exponential
distribution, 0.1 to 2.5 times the mean). Only one test runs at a time, also if a user runs
recheck several times against one far end. A test starts only if the day's budget also
covers its possible re-tests.

Events that a killed process stored but did not report are reported by the next process. So
a program or webhook that was running at that time receives its event twice, with the same
run, metric and direction.

The exit status is 3 if an event other than "back" was reported, else 1 if a test failed.`,
		Example: `  fullpipe recheck server.example.net --key-file key
  fullpipe recheck --every 6h backup office --quiet-hours 08:00-18:00 --zone Europe/Berlin
  fullpipe recheck --every 6h backup --webhook https://alerts.example.net/hook
  fullpipe recheck --every 6h backup --listen 127.0.0.1:9742`,
		RunE:              func(cmd *cobra.Command, args []string) error { return f.run(cmd, args) },
		ValidArgsFunction: completeRecheck,
	}
	fl := cmd.Flags()
	f.PeerFlags.Add(fl)
	f.time = 3 * time.Second
	fl.VarP((*cmdflag.Period)(&f.time), "time", "t", "duration of each transfer; results are "+
		"compared only with results of the same duration")
	fl.Var(&f.every, "every", "keep running and test each PEER at this mean interval")
	f.dayBytes = 10e9
	f.dayTime = cmdflag.Duration(10 * time.Minute)
	fl.Var(&f.dayBytes, "day-bytes", "maximum payload of all tests of a day; 0 is unlimited")
	fl.Var(&f.dayTime, "day-time", "maximum duration of all tests of a day; 0 is unlimited")
	fl.StringVar(&f.quietHours, "quiet-hours", "", "`times` of the day without tests, for example "+
		"08:00-18:00; separate several by commas")
	fl.BoolVar(&f.own, "own", false, "treat ndt7 servers with public addresses as your own and "+
		"test them like any far end; never applies to M-Lab's servers")
	fl.StringVar(&f.zone, "zone", "Local", "time zone of --quiet-hours and of the daily "+
		"limits, for example Europe/Berlin")
	f.notify.Register(fl)
	listener.AddScrapeFlags(&f.scrapes, fl)
	fl.Lookup("listen").Usage = "with --every: serve metrics to Prometheus (OpenMetrics) at this ADDR:PORT"
	history.AddStoreFlag(fl)
	fl.Bool("record", false, "in a lab: store the results in the history")
	fl.Bool("json-stream", false, "print one JSON object per line: each interval when it ends, "+
		"then each result")
	return cmd, f
}

// check returns a usage error for options and far ends that cannot be measured.
func (f *flags) check(cmd *cobra.Command, peers []string) error {
	if len(peers) == 0 {
		return exit.Usage("PEER", "none is given, and the configuration names none",
			"fullpipe recheck PEER, or [recheck] peers = [\"…\"] in the configuration")
	}
	for _, p := range peers {
		switch {
		case peer.OnceOnly(p) && f.time > 10*time.Second:
			return exit.Usage("--time", p+": an ndt7 test lasts 10 s at the most", "--time 10s")
		case strings.HasPrefix(p, lab.Prefix):
			return exit.Usage("PEER", p+" is made anew for each test: it does not change",
				"fullpipe lab PROFILE --far '…' -- fullpipe recheck --record …")
		}
	}
	if err := cmdflag.Check(
		cmdflag.If(f.time < 200*time.Millisecond || f.time > time.Minute, "--time",
			fmt.Sprintf("%v is not between 200ms and 1m", f.time), "--time 3s"),
		cmdflag.If(f.every != 0 && time.Duration(f.every) < leastEvery, "--every",
			fmt.Sprintf("%v leaves no time for re-tests", time.Duration(f.every)),
			"30m or more, as in --every 6h"),
		cmdflag.If(time.Duration(f.every) > 31*24*time.Hour, "--every", "more than a month", "--every 6h"),
		cmdflag.If(f.dayBytes < 0 || f.dayTime < 0, "--day-bytes", "a budget below 0", "--day-bytes 2GB --day-time 5m"),
		cmdflag.If(f.scrapes.Address != "" && f.every == 0, "--listen", "there would be nothing to scrape after one visit",
			"--every 6h with it"),
	); err != nil {
		return err
	}
	if f.scrapes.Address != "" {
		if err := f.scrapes.Check(); err != nil {
			return err
		}
	}
	if _, err := f.Directions(); err != nil {
		return err
	}
	return f.notify.Check()
}

// hours returns the quiet hours in their zone.
func (f *flags) hours() (recheck.Hours, error) {
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return recheck.Hours{}, exit.Usage("--zone", fmt.Sprintf("%q is no time zone that this host knows", f.zone),
			"--zone Europe/Berlin, --zone UTC")
	}
	quiet, err := recheck.ParseHours(f.quietHours, zone)
	if err != nil {
		return quiet, exit.Usage("--quiet-hours", exit.Plain(err), "--quiet-hours 08:00-18:00")
	}
	return quiet, nil
}

func (f *flags) run(cmd *cobra.Command, args []string) error {
	file, name, err := settings.Read(cmd)
	if err != nil {
		return exit.Usage(name, exit.Plain(err), "docs/configuration.md")
	}
	if len(args) == 0 {
		args = file.Recheck.Peers
	}
	fars, err := f.resolve(cmd, file, args)
	if err != nil {
		return err
	}
	var peers []string
	for _, far := range fars {
		peers = append(peers, far.address)
	}
	if err := f.check(cmd, peers); err != nil {
		return err
	}
	quiet, err := f.hours()
	if err != nil {
		return err
	}
	if f.scrapes.Address != "" {
		defer console.LogStderr(cmd)()
	}
	k, err := newRechecker(cmd, f, fars)
	if err != nil {
		return err
	}
	cfg := runner.Config{Peers: peers, Once: f.every == 0,
		Schedule: recheck.Schedule{Every: time.Duration(f.every), Quiet: quiet},
		Budget:   recheck.Budget{Bytes: int64(f.dayBytes), Time: time.Duration(f.dayTime)},
		Test:     k.test, Load: k.load, Spent: k.spent, Lock: k.lock, Report: k.report,
		Public: func(peer string) bool { return k.fars[peer].public }, Turn: k.turn}
	cfg.Now, cfg.Sleep = clockOf(cmd.Context())
	if f.scrapes.Address != "" {
		stop, err := f.scrapes.ServeMetrics(cmd, k.Exporter, "results and events of the tested paths,")
		if err != nil {
			return err
		}
		defer stop()
	}
	return k.finish(runner.Run(cmd.Context(), cfg))
}

// Clock replaces the host's clock in tests that simulate days.
type Clock struct {
	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Kept  func() // nil, or called after a result is stored and before it is reported
}

type clockKey struct{}

// WithClock returns a context in which recheck uses another clock.
func WithClock(ctx context.Context, c Clock) context.Context {
	return context.WithValue(ctx, clockKey{}, c)
}

// clockOf returns the clock of a context; nil functions are the host's clock.
func clockOf(ctx context.Context) (now func() time.Time, sleep func(context.Context, time.Duration) error) {
	if c, ok := ctx.Value(clockKey{}).(Clock); ok {
		return c.Now, c.Sleep
	}
	return nil, nil
}

// finish prints the document of a single visit and returns the exit status.
func (k *rechecker) finish(err error) error {
	stopped := k.cmd.Context().Err() != nil
	switch {
	case err != nil && !(stopped && errors.Is(err, context.Canceled)):
		return err
	case k.f.every != 0:
		return nil // how a process ends that has no end of its own
	}
	k.doc.Interrupted = stopped
	if err := k.print(); err != nil {
		return err
	}
	switch {
	case stopped:
		return exit.Status(exit.Interrupted)
	case k.reported:
		return exit.Status(exit.No)
	case k.failed:
		return exit.Status(exit.Failed)
	}
	return nil
}

// recheckFar is one far end with its options.
type recheckFar struct {
	address string
	flags   farend.PeerFlags
	series  string // the path's key
	public  bool   // its operator limits how often programs test it
	sends   []string
}

// resolve puts far ends in the place of their names, each with the key and the way out that
// the configuration has for it. A flag goes before that, for all of them.
func (f *flags) resolve(cmd *cobra.Command, file *config.File, names []string) (fars []*recheckFar, err error) {
	given := cmd.Flags().Changed
	for _, name := range names {
		far := &recheckFar{address: name, flags: f.PeerFlags}
		if known, ok := file.Far[name]; ok {
			far.address = known.Peer
			if known.KeyFile != "" && !given("key") && !given("key-file") && os.Getenv(secret.Key) == "" {
				far.flags.File = known.KeyFile
			}
			if known.Bind != "" && !given("bind") {
				far.flags.Bind = known.Bind
			}
			if !given("ipv4") && !given("ipv6") {
				far.flags.Only4 = known.IPv4
				far.flags.Only6 = known.IPv6
			}
		}
		if slices.ContainsFunc(fars, func(o *recheckFar) bool { return o.address == far.address }) {
			continue
		}
		if peer.DownOnly(far.address) && !given("direction") {
			far.flags.Direction = "down"
		}
		directions, err := far.flags.Directions()
		if err != nil {
			return nil, err
		}
		for _, d := range directions {
			far.sends = append(far.sends, string(d))
		}
		if _, err := far.flags.Route(); err != nil {
			return nil, err
		}
		fars = append(fars, far)
	}
	return fars, nil
}

// completeRecheck completes far ends of the history, names of the configuration and kinds of PEER.
func completeRecheck(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	var offered []string
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second) // completion does not wait for a server
	defer cancel()
	if s, err := history.Open(ctx, cmd); err == nil { // without a history there is nothing to offer
		runs, _ := s.List(ctx, store.Filter{Limit: 200})
		for i := range runs {
			far := runs[i].Far
			if didyoumean.IsWord(far) && !strings.HasPrefix(far, lab.Prefix) && !slices.Contains(offered, far) {
				offered = append(offered, far)
			}
		}
		s.Close()
	}
	if file, _, err := settings.Read(cmd); err == nil && len(args) > 0 { // before, they are offered as for every PEER
		offered = append(offered, file.Names()...)
	}
	kinds, directive := farend.CompletePeer(cmd, nil, begun)
	for _, kind := range kinds {
		if !strings.HasPrefix(kind, lab.Prefix) {
			offered = append(offered, kind)
		}
	}
	return offered, directive
}
