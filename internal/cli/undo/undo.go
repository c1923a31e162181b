// Package undo has the commands undo and status: they restore and list the settings that fullpipe changed.
package undo

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
)

// New returns the command undo.
func New() *cobra.Command {
	var forget bool
	cmd := &cobra.Command{
		Use:   "undo [NAME...]",
		Short: "restore the settings that fullpipe changed on this host",
		Long: `undo restores the values from before fullpipe's first change: all, or only
those of NAME. If another program has changed a value since, undo keeps it, reports it and
exits with status 3; --forget removes it from fullpipe's list.`,
		RunE: func(cmd *cobra.Command, names []string) error {
			if forget {
				if len(names) == 0 {
					return exit.Usage("NAME", "no name to forget", "fullpipe status lists the names")
				}
				return host.Forget(cmd.Context(), host.Config{}, names...)
			}
			dids, err := host.Undo(cmd.Context(), host.Config{}, names...)
			doc := report.Undo(present.Header(cmd), dids)
			if err != nil && len(dids) == 0 {
				return err
			}
			if err != nil {
				doc.Error = &record.Failure{Code: exit.Code(err), Message: exit.Message(err)}
			}
			if failed := present.Document(cmd, doc); failed != nil {
				return errors.Join(err, failed)
			}
			switch {
			case err != nil && console.WantsJSON(cmd):
				return exit.Status(exit.Failed)
			case err != nil:
				return err
			case slices.ContainsFunc(dids, func(d host.Did) bool { return d.Outcome == host.Conflict }):
				return exit.Status(exit.No)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&forget, "forget", false, "remove NAMEs from fullpipe's list and keep "+
		"their current values")
	return cmd
}

// NewStatus returns the command status.
func NewStatus() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "list the settings that fullpipe changed on this host",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			states, err := host.Status(host.Config{})
			if err != nil {
				return err
			}
			return present.Document(cmd, report.Status(present.Header(cmd), states))
		},
	}
}
