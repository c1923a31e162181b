package tune

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

// change makes the settings that this host needs in each direction, if any, proves them
// and enters what came of it in the record. The status is 3 when all were taken back.
func (f *flags) change(cmd *cobra.Command, peer string, cfg tune.Config, result *tune.Result,
	doc *record.Tune) (int, error) {
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
		if err := f.agree(cmd, changes, there); err != nil {
			return exit.Failed, err
		}
		applied, err := tune.Apply(cmd.Context(), cfg, direction, changes, there)
		tried = true
		entry.Applied = report.TuneApplied(applied, host.WholeHost())
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
func (f *flags) agree(cmd *cobra.Command, changes []host.Change, there *tune.FarHost) error {
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
	if err := text.Write(cmd.ErrOrStderr(), report.Apply(present.Header(cmd), dids, host.WholeHost(), false)); err != nil {
		return fmt.Errorf("the changes cannot be shown: %w", err)
	}
	return console.Confirm(cmd, "make these changes, and keep them only where they help?")
}
