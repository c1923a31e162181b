// Package cli is the command line, with a package for each command.
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

// Run runs the command line args and returns the exit status. args[0] is the program's name.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(ctx, iperf3.CalledAs(args[0], args[1:]), console.NewStreams(stdin, stdout, stderr))
}

// run runs one command line and returns the exit status.
func run(ctx context.Context, args []string, std console.Streams) int {
	harmless, out := console.NewSinks(ctx, std)
	root := NewRoot(harmless)
	root.SetArgs(args)
	called, err := root.ExecuteContextC(history.WithSession(ctx))
	lost := out.Err()
	if lost != nil && !console.IsGone(lost) && errors.Is(err, lost) {
		err = nil // reported below, once
	}
	status := finish(ctx, called, args, err, harmless)
	lost = out.Err()
	if lost != nil && !console.IsGone(lost) {
		fmt.Fprintf(harmless.Err, "fullpipe: standard output: %v\n", lost)
		return exit.Failed
	}
	return status
}

// oneForm refuses two forms of output in one command line.
func oneForm(cmd *cobra.Command, _ []string) error {
	if err := history.BecomeCaller(cmd); err != nil {
		return err
	}
	if err := console.SetColour(cmd); err != nil {
		return err
	}
	if console.IsSet(cmd, "csv") && console.IsSet(cmd, "json") {
		return exit.Usage("--csv", "is another form than --json", "one of them")
	}
	return named(cmd)
}

// guards are the options that name a file for authentication or encryption of a server.
var guards = []string{"keys", "web-token-file", "web-cert", "web-key", "listen-token-file",
	"listen-operator-token-file", "listen-cert", "listen-key", "rsa-private-key-path", "authorized-users-path"}

// named refuses a guard without a file name, as an unset shell variable gives it: the server would be open.
func named(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.String() == "" && slices.Contains(guards, f.Name) {
			err = exit.Usage("--"+f.Name, "names no file", "a file, or nothing of --"+f.Name)
		}
	})
	return err
}

// plainDefaults writes defaults in help as a user would give them, 100kB instead of 97.7 KiB, and leaves out unset
// ones.
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
