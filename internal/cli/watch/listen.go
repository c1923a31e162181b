package watch

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/listener"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// export watches and serves what it sees until it is interrupted.
func (f *flags) export(cmd *cobra.Command, cfg watch.Config, follow following) error {
	m := watch.NewMetrics()
	e := &listener.Exporter{Metrics: m}
	stop, err := f.scrapes.ServeMetrics(cmd, e, "limiters of this host's TCP connections,")
	if err != nil {
		return err
	}
	defer stop()
	err = follow(cmd.Context(), cfg, func(v *watch.View) error {
		for i := range v.Shifts {
			for _, s := range report.PathShifts(&v.Shifts[i]) {
				console.Note(cmd, "%s", text.PathShift(&s))
			}
		}
		e.Update(func() { m.Add(v) })
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil // the way to end it
	}
	return err
}
