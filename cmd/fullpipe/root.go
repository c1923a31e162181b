package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Run carries out the command line args, whose first word is the program's name, and returns the exit status.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return run(ctx, calledAs(args[0], args[1:]), console.NewStreams(stdin, stdout, stderr))
}

// run carries out one command line and returns the exit status.
func run(ctx context.Context, args []string, std console.Streams) int {
	harmless, out := console.NewSinks(ctx, std)
	root := newRoot(harmless)
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

func newRoot(std console.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "fullpipe",
		Short: "find out why a TCP transfer is slow, fix it and prove it",
		Long: `fullpipe measures a path, names what limits a TCP transfer on it with evidence,
computes the right windows and buffers, tries them and proves the gain.

PEER is one of
  HOST[:PORT]             a fullpipe server (its key in --key, --key-file or FULLPIPE_KEY)
  fullpipe://HOST[:PORT]  the same, and nothing else
  iperf3://HOST[:PORT]    an iperf3 server; HOST alone finds one too when there is no key
  iperf2://HOST[:PORT]    an iperf 2 server, which only receives
  ndt7://HOST[:PORT]      an ndt7 server, as M-Lab's or fullpipe serve --web; measure, recheck
  ssh://[USER@]HOST       a host with an SSH account; ssh starts the far end there
  https://... http://...  a large object on a web server, downloaded
  lab:PROFILE             two hosts and a link on this machine (see: fullpipe lab list)
  lab:rate=100mbit,rtt=40ms,...`,
		Version:       build.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentPreRunE = oneForm
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetVersionTemplate("fullpipe {{.Version}}\n")
	root.SetFlagErrorFunc(cmdflag.Error)
	root.PersistentFlags().BoolP("json", "J", false, "print one JSON object on standard output and nothing else there")
	root.AddCommand(newTune(), newMeasure(), newSweep(), newRFC6349(), newServe(), newPlan(), newPredict(), newAudit(),
		newApply(), newUndo(), newStatus(), newExplain(), newExec(), newLab(), newDiagnose(), newShow(), newVersion(),
		newWatch(), newWhy(), newHistory(),
		newUI(retest{command: "recheck", series: recheckSeries}, retest{command: "measure", series: measureSeries}), newRecheck())
	root.PersistentFlags().BoolP("quiet", "q", false, "no notes and no progress on standard error, only errors")
	root.AddCommand(newIperf3(), newKey())
	refuseStrays(root)
	completions(root)
	configured(root)
	plainDefaults(root)
	return root
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
		case f.DefValue == units.Size(0).String() || f.DefValue == units.Rate(0).String() || f.DefValue == "[]":
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
