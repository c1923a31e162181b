// Package show renders a stored document again.
package show

import (
	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/input"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// New returns the command show.
func New() *cobra.Command {
	var f present.StoredFlags
	cmd := &cobra.Command{
		Use:   "show FILE|-",
		Short: "render any stored document again",
		Long: `show reads the output of a command with --json, or of history export, and prints it
as the command did: as text, as a page, as a table or as the same JSON. It measures
nothing and changes nothing.`,
		Example: `  fullpipe measure server.example.net --json > run.json; fullpipe show run.json
  fullpipe show run.json --html run.html
  fullpipe show run.json --json --anonymize`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return showFile(cmd, &f, args[0]) },
	}
	f.Add(cmd)
	return cmd
}

func showFile(cmd *cobra.Command, f *present.StoredFlags, name string) error {
	stored, err := input.Read(cmd, name, record.MostBytes)
	if err != nil {
		return input.Missing(err, "fullpipe measure PEER --json > "+name)
	}
	return f.Print(cmd, name, stored, nil)
}
