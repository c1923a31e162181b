package hub

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

func newGrid(o *options) *cobra.Command {
	var task string
	cmd := &cobra.Command{Use: "grid", Short: "print the grid: goodput and limiter of each path",
		Long: `grid prints the last goodput and limiter of each path. Rows send, columns receive.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				doc, err := (&web.Fleet{Store: f}).Grid(ctx, build.Version(), task, maxAgents)
				if err != nil {
					return err
				}
				if console.WantsJSON(cmd) {
					return present.JSON(cmd.OutOrStdout(), doc)
				}
				return printGrid(cmd.OutOrStdout(), doc)
			})
		}}
	cmd.Flags().StringVar(&task, "task", "", "only this task")
	return cmd
}

// maxAgents is above any number of agents: on a terminal the grid never shows sites.
const maxAgents = 1 << 20

// printGrid prints a matrix of goodputs with a letter for the limiter, and a legend.
func printGrid(out io.Writer, doc *web.FleetGrid) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "from \\ to\t%s\t\n", strings.Join(doc.Names, "\t"))
	for _, row := range doc.Rows {
		fmt.Fprintf(table, "%s\t", row.Name)
		for _, c := range row.Cells {
			fmt.Fprintf(table, "%s\t", cellText(row.Name, c))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	legend := make([]string, len(doc.Limiters))
	for i, name := range doc.Limiters {
		legend[i] = text.Letter(name) + " " + render.Line(name)
	}
	legend = append(legend, "* unconfirmed: one host's word")
	_, err := fmt.Fprintln(out, strings.Join(legend, "  "))
	return err
}

func cellText(from string, c web.FleetCell) string {
	switch {
	case from == c.Receiver:
		return "-"
	case c.State == "":
		return "."
	case c.State != mesh.Done:
		return cmp.Or(string(c.Reason), string(c.State))
	case c.GoodputBps == nil:
		return "?"
	}
	cell := units.Rate(*c.GoodputBps).String() + " " + text.Letter(c.Limiter)
	if store.Doubtful(c.Unconfirmed) {
		cell += "*"
	}
	return cell
}
