package hub

import (
	"context"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// newLog prints what administrators changed, by the page, the API or this program.
func newLog(o *options) *cobra.Command {
	entries := 100
	cmd := &cobra.Command{Use: "log", Short: "list the changes that users made, the newest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				all, err := f.AuditLog(ctx, entries)
				if err != nil {
					return err
				}
				table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
				fmt.Fprintln(table, "TIME\tUSER\tACTION\tDETAIL")
				for _, e := range all {
					fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", e.At.UTC().Format(time.RFC3339), render.Line(e.By), render.Line(e.Action),
						render.Line(e.Detail))
				}
				return table.Flush()
			})
		}}
	cmd.Flags().IntVar(&entries, "entries", entries, "number of entries")
	return cmd
}
