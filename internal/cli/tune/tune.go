// Package tune finds the windows that fill the path to a far end, and proves the gain.
package tune

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

type flags struct {
	farend.PeerFlags
	budget    cmdflag.Duration
	maxBytes  units.Size
	fileSize  units.Size
	seed      uint64
	target    string
	farTarget string
	goal      string
	html      string
	apply     bool
	applyFar  bool
	persist   bool
	likely    bool
	yes       bool
}

// New returns the command tune.
func New() *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "tune PEER",
		Short: "find the windows that fill the path to PEER, and prove the gain",
		Long: `tune measures the path to PEER and today's goodput, names the limiter, looks
for a remedy (the smallest window with the highest goodput, another congestion control,
pacing, several streams, or a combination) and measures with and without it in turn. It
tries everything through socket options and changes no host. It prints the settings for each
end. With --goal latency it looks for the shortest queue. With --goal fair it looks for a
setup that gains more than a second CUBIC flow on the path loses. If a host was too busy and
no remedy was shown to help, tune says to measure again when the host is idle. A setup that
is at least 95 % likely to help is printed as not yet proven, with its probability and its
settings. The exit status is 3 if something limits the transfer and no remedy was shown or
likely to help.`,
		Example: `  fullpipe tune server.example.net --key-file key
  fullpipe tune server.example.net --direction both --budget 30s --file-size 10GB
  fullpipe tune server.example.net --goal latency --html receipt.html
  fullpipe tune lab:rate=100mbit,rtt=40ms,stack=windows-2000`,
		Args: farend.OnePeer,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.DownOnly(cmd, args[0])
			cfg, err := f.config()
			if err != nil {
				return err
			}
			if done, err := farend.InLab(cmd, args[0]); done {
				return err
			}
			if err := f.farReach(args[0]); err != nil {
				return err
			}
			if err := f.canPersist(); err != nil {
				return err
			}
			if f.likely && !f.apply && !f.applyFar {
				return exit.Usage("--accept-likely", "without --apply or --apply-far nothing is set that could be kept",
					"--apply --accept-likely")
			}
			if f.apply {
				if err := host.Ready(cmd.Context(), host.Config{}); err != nil {
					return err
				}
			}
			return f.run(cmd, args[0], cfg)
		},
	}
	fl := cmd.Flags()
	f.PeerFlags.Add(fl)
	fl.Var((*cmdflag.Period)(&f.budget), "budget",
		"time for each direction (default: the longest of 30 s, the time to send 900 segments "+
			"(375 on modems), 150 RTTs and, on a path with loss, 20 transfers of 20 RTTs; up "+
			"to 150 s it is doubled once if no decision was possible)")
	fl.Var(&f.maxBytes, "max-bytes", "maximum payload of all trials in each direction")
	fl.Var(&f.fileSize, "file-size", "file size for the before/after transfer time")
	fl.StringVar(&f.goal, "goal", string(tune.Throughput), "goal of the tuning: throughput, latency (the shortest "+
		"queue that keeps 95 % of the rate) or fair (gain more than a second flow loses)")
	fl.StringVar(&f.html, "html", "", "also write the receipt to this `file` (- is standard output): path, limiter, "+
		"trials, proof and settings on one page")
	fl.Uint64Var(&f.seed, "seed", 1, "seed (a `number`) of the random order of the trials; "+
		"the same seed gives the same order")
	fl.StringVar(&f.target, "target", "", "print settings of this system for this host "+
		"(default: this one)")
	fl.StringVar(&f.farTarget, "far-target", "", "print settings of this system for the far "+
		"host (default: the "+
		"system that it reports)")
	fl.BoolVar(&f.apply, "apply", false, "change this host's settings, measure with and "+
		"without the change in turn, and keep the change only if it helps")
	fl.BoolVar(&f.persist, "persist", false, "with --apply: keep the change after a restart ("+host.PersistFile+")")
	fl.BoolVar(&f.applyFar, "apply-far", false, "also change the settings of the far host, "+
		"through ssh (ssh:// peers) or in a lab; the change is kept only if it helps")
	fl.BoolVar(&f.likely, "accept-likely", false, "with --apply or --apply-far: also keep settings that are likely to "+
		"help (95 % or more), unless the measurement with them shows the opposite")
	fl.BoolVar(&f.yes, "yes", false, "with --apply or --apply-far: do not ask")
	history.AddFlags(cmd, true, f.Series("tune"))
	return cmd
}

func (f *flags) config() (tune.Config, error) {
	cfg, err := f.Tuning()
	if err != nil {
		return cfg, err
	}
	cfg.Budget = time.Duration(f.budget)
	cfg.MaxBytes = int64(f.maxBytes)
	cfg.FileSize = int64(f.fileSize)
	cfg.Seed = f.seed
	cfg.Goal = tune.Goal(f.goal)
	cfg.AcceptLikely = f.likely
	near, far := f.stated()
	cfg.Near = adviceSystem(near)
	cfg.Far = adviceSystem(far)
	switch cfg.Goal {
	case tune.Throughput, tune.Latency, tune.Fair:
	default:
		return cfg, exit.Usage("--goal", fmt.Sprintf("%q is no goal", f.goal), "throughput, latency or fair")
	}
	for argument, name := range map[string]string{"--target": f.target, "--far-target": f.farTarget} {
		if name == "" {
			continue
		}
		if _, err := plan.ParseTarget(name); err != nil {
			return cfg, exit.Usage(argument, fmt.Sprintf("%q is not a system that is known", name), strings.Join(plan.Targets(),
				", "))
		}
	}
	return cfg, nil
}

func (f *flags) run(cmd *cobra.Command, text string, cfg tune.Config) error {
	ctx := cmd.Context()
	f.Notes = console.Progress(cmd)
	far, err := f.Open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	if cfg.Goal == tune.Fair {
		cfg.Second, err = f.OpenAgain(ctx, text, far)
		if err != nil {
			return err
		}
		defer cfg.Second.Close()
	}
	page, err := present.CreateFile(cmd, "--html", f.html)
	if err != nil {
		return err
	}
	defer page.Discard()
	losses := farend.WatchLosses()
	defer losses.Close()
	cfg.Peer = losses.Peer(far)
	line := progress.NewLine(console.Progress(cmd))
	parts := len(cfg.Directions)
	if f.apply || f.applyFar {
		parts *= 2
	}
	cfg.Progress = func(p tune.Progress) { line.ShowPart(p, slices.Index(cfg.Directions, p.Direction), parts) }
	result, err := tune.Run(ctx, cfg)
	line.Clear()
	if len(result.Directions) == 0 {
		return err
	}
	near, farTarget := f.targets(result)
	doc := report.Tune(present.Header(cmd), lab.PeerName(text), result, near, farTarget)
	status := exit.Done
	if (f.apply || f.applyFar) && err == nil {
		status, err = f.change(cmd, text, cfg, result, doc, line)
		line.Clear()
	}
	if status == exit.Done && err == nil && !result.Helps() && !doc.Applied {
		status = exit.No
	}
	if err != nil {
		var failure record.Failure
		failure, status = exit.Describe(ctx, err)
		doc.Error = &failure
	}
	present.NoteLate(cmd, doc)
	if err := present.Document(cmd, doc); err != nil {
		return err
	}
	if err := present.WriteFile("--html", page, func(w io.Writer) error { return html.Write(w, doc) }); err != nil {
		return err
	}
	if doc.Error != nil && !console.WantsJSON(cmd) {
		console.PrintFailure(cmd, *doc.Error)
	}
	if status != exit.Done {
		return exit.Status(status)
	}
	return nil
}

// stated returns the names of the ends' systems by the user's choice, else of those that a lab
// imitates; "": neither.
func (f *flags) stated() (near, far string) {
	if profile, ok := strings.CutPrefix(os.Getenv(lab.PeerVariable), lab.Prefix); ok {
		if made, err := link.Parse(profile); err == nil {
			near = made.Near.Name
			far = made.Far.Name
		}
	}
	return cmp.Or(f.target, near), cmp.Or(f.farTarget, far)
}

// adviceSystem returns the system of a target's name; nil where that is not known.
func adviceSystem(name string) *advice.System {
	target, err := plan.ParseTarget(name)
	if err != nil {
		return nil
	}
	return new(advice.SystemOf(target.Family + " " + target.Version))
}

// targets returns the systems whose settings are printed: those that are stated, else those that
// the ends report.
func (f *flags) targets(r *tune.Result) (near, far *report.System) {
	names := [2]string{runtime.GOOS, ""}
	if r.Near != nil {
		names[0] = plan.KernelTarget(r.Near.Kernel)
	}
	if r.Far != nil {
		names[1] = plan.KernelTarget(r.Far.Kernel)
	}
	statedNear, statedFar := f.stated()
	names = [2]string{cmp.Or(statedNear, names[0]), cmp.Or(statedFar, names[1])}
	var found [2]*report.System
	for i, name := range names {
		if target, err := plan.ParseTarget(name); err == nil {
			found[i] = &report.System{Target: target}
		}
	}
	if _, imitated := os.LookupEnv(lab.PeerVariable); found[0] != nil && f.target == "" && !imitated {
		if now, err := host.Snapshot(); err == nil { // else its system's defaults are used
			found[0].Values = now.Values
		}
	}
	return found[0], found[1]
}
