package console

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// The values of --color.
const (
	colourAuto   = "auto"
	colourAlways = "always"
	colourNever  = "never"
)

// AddColour adds --color to all commands.
func AddColour(root *cobra.Command) {
	root.PersistentFlags().String("color", colourAuto, "colours on standard output: `WHEN` is auto, always or never")
}

// SetColour makes standard output follow --color. It refuses other values.
func SetColour(cmd *cobra.Command) error {
	when, err := cmd.Flags().GetString("color")
	if err != nil {
		return nil // a command line without the flag
	}
	if !slices.Contains([]string{colourAuto, colourAlways, colourNever}, when) {
		return exit.Usage("--color", "\""+when+"\" is no value of it", "auto, always or never")
	}
	if w, ok := cmd.OutOrStdout().(*render.Writer); ok {
		if s, ok := w.Unwrap().(*sink); ok {
			s.colour = when
		}
	}
	return nil
}

// Colours reports whether text is shown in colour: by --color, else on a terminal, unless NO_COLOR is set
// (https://no-color.org).
func (s *sink) Colours() bool {
	switch s.colour {
	case colourAlways:
		return true
	case colourNever:
		return false
	}
	return os.Getenv("NO_COLOR") == "" && IsTerminal(s.to)
}
