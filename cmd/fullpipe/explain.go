package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/report"
)

func newExplain() *cobra.Command {
	var system string
	cmd := &cobra.Command{
		Use:   "explain [NAME]",
		Short: "what an operating system's parameter does; without a name, all that are known",
		Example: `  fullpipe explain tcp_rmem
  fullpipe explain AutoTuningLevelLocal
  fullpipe explain --system freebsd`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if system != "" && !slices.Contains(catalog.Families(), system) {
				return &usageError{"--system", fmt.Sprintf("%q is not a family of systems", system), strings.Join(catalog.Families(), ", ")}
			}
			if len(args) == 0 {
				return listParameters(cmd, system)
			}
			found := catalog.Find(system, args[0])
			if len(found) == 0 {
				try := "fullpipe explain (lists all)"
				if near := catalog.Nearest(args[0]); len(near) > 0 {
					try = "fullpipe explain " + strings.Join(near, " or ")
				}
				return &usageError{"NAME", fmt.Sprintf("no parameter is called %q", args[0]), try}
			}
			return printParameters(cmd, found)
		},
	}
	cmd.Flags().StringVar(&system, "system", "", "only this family: "+strings.Join(catalog.Families(), ", "))
	return cmd
}

type explanation struct {
	report.Header
	Parameters []catalog.Parameter `json:"parameters"`
}

func printParameters(cmd *cobra.Command, found []catalog.Parameter) error {
	if wantsJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), explanation{newHeader(cmd), found})
	}
	for i, p := range found {
		if i > 0 {
			fmt.Fprintln(cmd.OutOrStdout())
		}
		report.Parameter(cmd.OutOrStdout(), p)
	}
	return nil
}

func listParameters(cmd *cobra.Command, system string) error {
	var all []catalog.Parameter
	for _, p := range catalog.All() {
		if system == "" || p.System == system {
			all = append(all, p)
		}
	}
	if wantsJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), explanation{newHeader(cmd), all})
	}
	return report.Parameters(cmd.OutOrStdout(), all)
}
