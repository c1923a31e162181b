// Package version prints which build this is.
package version

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// shownBuild is what version prints with --json.
type shownBuild struct {
	record.Header
	build.Info
}

// New returns the command version.
func New() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "which build this is: release, commit, Go and system",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := build.This()
			if console.WantsJSON(cmd) {
				return present.JSON(cmd.OutOrStdout(), shownBuild{present.Header(cmd), b})
			}
			return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
				for _, line := range [][2]string{{"fullpipe", b.Release}, {"commit", b.Commit}, {"date", b.Date}, {"go", b.Go},
					{"system", b.System}} {
					if line[1] != "" {
						fmt.Fprintf(w, "%-9s %s\n", line[0], line[1])
					}
				}
				if b.Modified {
					fmt.Fprintln(w, "          built from files that differ from the commit")
				}
				return nil
			})
		},
	}
}
