package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

func newGrid(o *options) *cobra.Command {
	var task string
	cmd := &cobra.Command{Use: "grid", Short: "print the grid: what limits each path",
		Long: `grid prints the last goodput and limiter of each path. Rows send, columns receive.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				cells, err := f.Grid(ctx, task)
				if err != nil {
					return err
				}
				if console.WantsJSON(cmd) {
					return json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"cells": cells})
				}
				names, err := agentNames(ctx, f)
				if err != nil {
					return err
				}
				return printGrid(cmd, names, cells)
			})
		}}
	cmd.Flags().StringVar(&task, "task", "", "only this task")
	return cmd
}

// printGrid prints a matrix of goodputs with a letter for the limiter, and a legend.
func printGrid(cmd *cobra.Command, names map[string]string, cells []store.Cell) error {
	byEnds := map[[2]string]store.Cell{}
	var all, limiters []string
	for _, c := range cells {
		from := names[c.Sender]
		to := names[c.Receiver]
		if from == "" || to == "" {
			continue
		}
		byEnds[[2]string{from, to}] = c
		for _, name := range []string{from, to} {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
		if c.Limiter != "" && !slices.Contains(limiters, c.Limiter) {
			limiters = append(limiters, c.Limiter)
		}
	}
	slices.Sort(all)
	slices.Sort(limiters)
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "from \\ to\t%s\t\n", strings.Join(all, "\t"))
	for _, from := range all {
		fmt.Fprintf(table, "%s\t", from)
		for _, to := range all {
			fmt.Fprintf(table, "%s\t", cellText(byEnds, from, to))
		}
		fmt.Fprintln(table)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, name := range limiters {
		fmt.Fprintf(cmd.OutOrStdout(), "%s %s  ", text.Letter(name), name)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout())
	return err
}

func cellText(byEnds map[[2]string]store.Cell, from, to string) string {
	c, ok := byEnds[[2]string{from, to}]
	switch {
	case from == to:
		return "-"
	case !ok:
		return "."
	case c.State != mesh.Done:
		return cmp.Or(string(c.Reason), string(c.State))
	case c.GoodputBps == nil:
		return "?"
	}
	return units.Rate(*c.GoodputBps).String() + " " + text.Letter(c.Limiter)
}
