package cli

import (
	"cmp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/settings"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/history"
)

// configured makes every command with a PEER, or with flags that may have defaults, read the configuration before it
// runs.
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
			given := slices.Clone(args)
			return suggestFar(run(cmd, args), given, file.Names())
		}
	}
	withFars(root)
}

// unknownFarError is an unknown host whose name is near that of a far end of the configuration.
type unknownFarError struct {
	error
	near string
}

func (e *unknownFarError) Unwrap() error { return e.error }

// Try returns what to try.
func (e *unknownFarError) Try() string { return e.near + ", a far end of the configuration" }

// suggestFar adds the far end of the configuration that is spelt like an unknown host.
func suggestFar(err error, args, fars []string) error {
	if exit.Code(err) != "unknown-host" {
		return err
	}
	for _, arg := range args {
		if near := didyoumean.Nearest(arg, fars); near != "" {
			return &unknownFarError{err, near}
		}
	}
	return err
}

// withFars completes a PEER with the far ends of the configuration.
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
