package console

import "github.com/spf13/cobra"

// IsSet reports whether a command has a flag of that name and it is set.
func IsSet(cmd *cobra.Command, name string) bool {
	is, err := cmd.Flags().GetBool(name)
	return err == nil && is
}

// IsQuiet says that nothing but errors belongs on standard error.
func IsQuiet(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("quiet")
	return err == nil && v
}

// TakesOutput says that standard output is a page's or a picture's, named by "-".
func TakesOutput(cmd *cobra.Command) bool {
	for _, name := range []string{"html", "picture"} {
		if f := cmd.Flags().Lookup(name); f != nil && f.Value.String() == "-" {
			return true
		}
	}
	return false
}

// WantsJSON reports whether standard output takes JSON only.
func WantsJSON(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("json")
	return err == nil && v || WantsStream(cmd)
}

// WantsStream says that a command prints one JSON object a line as it goes.
func WantsStream(cmd *cobra.Command) bool {
	v, err := cmd.Flags().GetBool("json-stream")
	return err == nil && v
}
