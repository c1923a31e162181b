package tune

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// farReach checks that the far host can be changed: over the user's own ssh, or in a lab.
// serve never changes its host.
func (f *flags) farReach(text string) error {
	if !f.applyFar || lab.Inside() || strings.HasPrefix(text, "ssh://") {
		return nil
	}
	return exit.Usage("--apply-far", "the far host is changed through ssh only, with your own rights there",
		"ssh://[USER@]HOST, or a lab: PEER")
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
			return peer.RunThere(ctx, text, peer.Options{Copy: f.Copy}, args, stdin)
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
