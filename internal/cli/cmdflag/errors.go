package cmdflag

import (
	"errors"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
)

// Complaints are what pflag says of options, and what getopt says, as iperf3 does, and this
// program.
var Complaints = []struct {
	Match         *regexp.Regexp
	Getopt, words string
}{
	{regexp.MustCompile(`unknown flag: (--[^ =]+)`), "unrecognized option '%s'", "no such option"},
	{regexp.MustCompile(`unknown shorthand flag: '(.)'`), "invalid option -- '%s'", "no such option"},
	{regexp.MustCompile(`flag needs an argument: (--[^ =]+)`), "option '%s' requires an argument", "needs a value"},
	{regexp.MustCompile(`flag needs an argument: '(.)'`), "option requires an argument -- '%s'", "needs a value"},
}

// Complain says what is wrong with an option, in pflag's words or, where they are known,
// plainly.
func Complain(cmd *cobra.Command, said string) *exit.UsageError {
	help := cmd.CommandPath() + " --help"
	for _, one := range Complaints {
		if m := one.Match.FindStringSubmatch(said); m != nil {
			option := m[1]
			if len(option) == 1 {
				option = "-" + option
			}
			return exit.Usage(option, one.words, help)
		}
	}
	return exit.Usage(cmd.Name(), said, help)
}

// Error says what is wrong with a flag that pflag refuses.
func Error(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		return exit.Usage("--"+value.GetFlag().Name, exit.PlainFlag(value), cmd.CommandPath()+" --help")
	}
	return Complain(cmd, err.Error())
}
