package cli

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/history"
)

// configured lets every command that has a PEER, or flags that may have defaults, read
// the configuration before it runs.
func configured(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		run := cmd.RunE
		if len(settings.MayDefault[cmd.Name()]) == 0 {
			continue
		}
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			file, name, err := settings.Read(cmd)
			if err == nil {
				args, err = settings.Apply(cmd, file, slices.Clone(args))
			}
			if err != nil {
				return exit.Usage(cmp.Or(name, "configuration"), exit.Plain(err), "docs/configuration.md")
			}
			if err := history.CheckStore(cmd, file); err != nil {
				return err
			}
			return run(cmd, args)
		}
	}
	withFars(root)
}

// withFars offers the far ends of the configuration where a PEER is completed.
func withFars(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		complete := cmd.ValidArgsFunction
		if complete == nil || cmd.Flags().Lookup("key-file") == nil || cmd.Flags().Lookup("bind") == nil {
			continue
		}
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			offered, directive := complete(cmd, args, begun)
			if file, _, err := settings.Read(cmd); err == nil && len(args) == 0 {
				offered = append(file.Names(), offered...)
			}
			return offered, directive
		}
	}
}
