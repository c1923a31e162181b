// Package cli is the command line: it has a package for each command and carries out what main is called with.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Run carries out the command line args, whose first word is the program's name, and returns the exit status.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(ctx, iperf3.CalledAs(args[0], args[1:]), console.NewStreams(stdin, stdout, stderr))
}

// run carries out one command line and returns the exit status.
func run(ctx context.Context, args []string, std console.Streams) int {
	harmless, out := console.NewSinks(ctx, std)
	root := NewRoot(harmless)
	root.SetArgs(args)
	called, err := root.ExecuteContextC(history.WithSession(ctx))
	lost := out.Err()
	if lost != nil && !console.IsGone(lost) && errors.Is(err, lost) {
		err = nil // it is said below, once
	}
	status := finish(ctx, called, args, err, harmless)
	lost = out.Err()
	if lost != nil && !console.IsGone(lost) {
		fmt.Fprintf(harmless.Err, "fullpipe: standard output: %v\n", lost)
		return exit.Failed
	}
	return status
}

// oneForm refuses two forms of output, of which one would be left out in silence.
func oneForm(cmd *cobra.Command, _ []string) error {
	if err := history.BecomeCaller(cmd); err != nil {
		return err
	}
	if console.IsSet(cmd, "csv") && console.IsSet(cmd, "json") {
		return exit.Usage("--csv", "is another form than --json", "one of them")
	}
	return named(cmd)
}

// guards are the options that name the file of whom a server lets in, or of what it is encrypted with.
var guards = []string{"keys", "web-token-file", "web-cert", "web-key", "listen-token-file",
	"listen-operator-token-file", "listen-cert", "listen-key", "rsa-private-key-path", "authorized-users-path"}

// named refuses a guard without a name, as a shell's variable that is not set gives it: the server would be open.
func named(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.String() == "" && slices.Contains(guards, f.Name) {
			err = exit.Usage("--"+f.Name, "names no file", "a file, or nothing of --"+f.Name)
		}
	})
	return err
}

// plainDefaults has the help tell defaults as they would be given: 100kB instead of 97.7 KiB,
// and nothing of a quantity or a list that is unset.
func plainDefaults(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		size, is := f.Value.(*units.Size)
		switch {
		case f.DefValue == units.Size(0).String() || f.DefValue == units.Rate(0).String() ||
			f.DefValue == "[]" && f.Value.Type() != "stringSlice":
			f.DefValue = ""
		case is && *size%1e9 == 0 && *size%(1<<30) != 0:
			f.DefValue = fmt.Sprintf("%dGB", *size/1e9)
		case is && *size%1e3 == 0 && *size%(1<<10) != 0:
			f.DefValue = fmt.Sprintf("%dkB", *size/1e3)
		}
	})
	for _, sub := range cmd.Commands() {
		plainDefaults(sub)
	}
}
