package tune

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// change makes the settings that this host needs in each direction, if any, proves them
// and enters what came of it in the record. The status is 3 when all were taken back.
func (f *flags) change(cmd *cobra.Command, peer string, cfg tune.Config, result *tune.Result,
	doc *record.Tune, line *progress.Line) (int, error) {
	s, err := host.Snapshot()
	if err != nil {
		return exit.Failed, err
	}
	var far netip.Addr
	if result.Near != nil && len(result.Near.Streams) > 0 {
		far = result.Near.Streams[0].Remote.Addr()
	}
	_, farTarget := f.targets(result)
	tried := false
	for i := range result.Directions {
		direction := &result.Directions[i]
		entry := &doc.Directions[i]
		var changes []host.Change
		if f.apply {
			changes, err = direction.HostChanges(far, host.Target(s.Version), s)
			var left *host.UnsettableError
			switch {
			case errors.As(err, &left):
				entry.Warnings = append(entry.Warnings, left.Error())
			case err != nil:
				return exit.Failed, err
			}
		}
		there, err := f.farHost(cmd.Context(), peer, direction, farTarget)
		if err != nil {
			return exit.Failed, err
		}
		if len(changes) == 0 && there == nil {
			entry.Warnings = append(entry.Warnings, "nothing on the hosts was shown to hold the path back: nothing was applied")
			continue
		}
		shown := changes
		cfg.Persist = nil
		if f.persist && len(changes) > 0 {
			lasting, err := host.Persist(changes)
			if err == nil {
				shown = lasting
				cfg.Persist = func(ctx context.Context, changes []host.Change) ([]host.Did, error) {
					return host.ApplyLasting(ctx, host.Config{}, changes)
				}
			} else {
				entry.Warnings = append(entry.Warnings, "the change is lost at the next restart: "+err.Error())
			}
		}
		if err := f.agree(cmd, shown, cfg.Persist != nil, there); err != nil {
			return exit.Failed, err
		}
		n := len(result.Directions)
		cfg.Progress = func(p tune.Progress) { line.ShowPart(p, n+i, 2*n) }
		applied, err := tune.Apply(cmd.Context(), cfg, direction, changes, there)
		tried = true
		report.EnterTuneApplied(entry, applied, host.WholeHost())
		if applied.Lasting {
			entry.Applied.Warnings = append(entry.Applied.Warnings, text.OverriddenAtBoot(host.Overridden(changes))...)
		}
		doc.Applied = doc.Applied || applied.Kept
		if err != nil {
			return exit.Failed, err
		}
	}
	if tried && !doc.Applied {
		return exit.No, nil
	}
	return exit.Done, nil
}

// agree shows the changes and asks, unless that was answered already.
func (f *flags) agree(cmd *cobra.Command, changes []host.Change, lasting bool, there *tune.FarHost) error {
	if there != nil {
		if err := f.agreeFar(cmd, there); err != nil {
			return err
		}
	}
	dids, err := host.Preview(host.Config{}, changes)
	if err != nil || f.yes || len(changes) == 0 {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr())
	err = text.Write(cmd.ErrOrStderr(), report.Apply(present.Header(cmd), dids, host.WholeHost(), lasting))
	if err != nil {
		return fmt.Errorf("the changes cannot be shown: %w", err)
	}
	return console.Confirm(cmd, "make these changes, and keep them only where they help?")
}

// farReach checks that the far host can be changed: over the user's own ssh, or in a lab.
// serve never changes its host.
func (f *flags) farReach(text string) error {
	if !f.applyFar || lab.Inside() || strings.HasPrefix(text, "ssh://") {
		return nil
	}
	return exit.Usage("--apply-far", "the far host is changed through ssh only, with your own rights there",
		"ssh://[USER@]HOST, or a lab: PEER")
}

// canPersist checks that a change of this host can hold after a restart.
func (f *flags) canPersist() error {
	switch {
	case !f.persist:
		return nil
	case !f.apply:
		return exit.Usage("--persist", "without --apply nothing is set that could hold after a restart", "--apply --persist")
	case !host.WholeHost():
		return exit.Usage("--persist", "these settings belong to a network namespace and end with it", "--apply alone")
	}
	return nil
}

// farHost is the far host with what a direction needs there; nil where that is nothing.
func (f *flags) farHost(ctx context.Context, text string, d *tune.Direction, target *report.System) (*tune.FarHost,
	error) {
	if !f.applyFar {
		return nil, nil
	}
	if target == nil || target.Family != "linux" {
		return nil, exit.Usage("--apply-far", "the far host's system is not known, or cannot be changed by fullpipe",
			"--far-target linux")
	}
	far := &tune.FarHost{Run: func(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
		if strings.HasPrefix(text, "ssh://") {
			return peer.RunThere(ctx, text, peer.Options{Copy: f.Copy, CopyName: f.CopyName}, args, stdin)
		}
		return runInLab(ctx, args, stdin)
	}}
	needs, err := d.PlanFar(ctx, far, target.Target)
	if err != nil || !needs {
		return nil, err
	}
	return far, nil
}

// runInLab has this program run at the lab's far end.
func runInLab(ctx context.Context, args []string, stdin []byte) ([]byte, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env := []string{"FULLPIPE_STATE=" + os.Getenv("FULLPIPE_STATE")}
	out, says, status, _, err := lab.AtFar(ctx, append([]string{program}, args...), env, stdin)
	if err == nil && status != 0 && len(out) == 0 {
		err = fmt.Errorf("fullpipe %s: exit status %d: %s", args[0], status, bytes.TrimSpace(says))
	}
	return out, err
}

// agreeFar shows what would change there and asks, unless that was answered already.
func (f *flags) agreeFar(cmd *cobra.Command, far *tune.FarHost) error {
	dids, err := far.Changes(cmd.Context())
	if err != nil || f.yes {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "\non the far host:")
	if err := text.Write(cmd.ErrOrStderr(), report.Apply(present.Header(cmd), dids, host.WholeHost(), false)); err != nil {
		return fmt.Errorf("the changes cannot be shown: %w", err)
	}
	return console.Confirm(cmd, "make these changes there, and keep them only where they help?")
}
