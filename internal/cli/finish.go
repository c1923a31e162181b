package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// finish reports a command's error where its user looks for it and chooses the status.
func finish(ctx context.Context, cmd *cobra.Command, args []string, err error, std console.Streams) int {
	var own exit.Status
	if err == nil {
		return exit.Done
	}
	if errors.As(err, &own) {
		return int(own)
	}
	err = argumentError(cmd, err)
	failure, status := exit.Describe(ctx, err)
	if cmd.Name() == iperf3.Name {
		return iperf3.Fail(err, failure, console.WantsJSON(cmd) || asksJSON(args), std)
	}
	if console.WantsJSON(cmd) || asksJSON(args) {
		if err := present.Object(cmd, std.Out, &record.CommandFailed{Header: present.Header(cmd),
			Error: &failure}); err != nil {
			return exit.Failed
		}
		return status
	}
	fmt.Fprintln(std.Err, "fullpipe: "+console.FailureText(failure))
	return status
}

// asksJSON looks for --json among arguments that could not all be parsed.
func asksJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "-J") || slices.Contains(args, "--json-stream")
}
