package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// finish reports a command's error as text or JSON and returns the exit status.
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

// Messages of cobra about arguments that it refuses.
var (
	wrongCount = regexp.MustCompile(`^(?:accepts|requires) ((?:at \w+ |between \d+ and )?\d+) arg\(s\), ` +
		`(?:only )?received (\d+)$`)
	unknownCommand = regexp.MustCompile(`^unknown command ("(?:[^"\\]|\\.)*") for "`)
)

// argumentError replaces cobra's messages about a command's arguments by this program's and returns other errors
// unchanged.
func argumentError(cmd *cobra.Command, err error) error {
	if m := wrongCount.FindStringSubmatch(err.Error()); m != nil {
		noun := "arguments"
		if m[2] == "1" {
			noun = "argument"
		}
		return exit.Usage("", fmt.Sprintf("%s %s given, %s needed", m[2], noun, m[1]), cmd.CommandPath()+" --help")
	}
	m := unknownCommand.FindStringSubmatch(err.Error())
	if m == nil {
		return err
	}
	if !cmd.HasAvailableSubCommands() {
		return exit.Usage("", m[1]+" is an argument too many: "+cmd.CommandPath()+" takes none",
			cmd.CommandPath()+" --help")
	}
	name, err := strconv.Unquote(m[1])
	if err != nil {
		name = m[1]
	}
	return noCommand(cmd, name)
}

// noCommand returns the error of an unknown command below cmd, with the nearest name.
func noCommand(cmd *cobra.Command, name string) error {
	try := cmd.CommandPath() + " --help"
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		try = cmd.CommandPath() + " " + near[0]
	}
	if name == "hub" && !cmd.HasParent() {
		try = "fullpipe-hub serve: the hub of a fleet is a program of its own"
	}
	return exit.Usage("", fmt.Sprintf("unknown command %q", name), try)
}

// refuseStrays makes cobra's own commands refuse unknown names. By themselves they print their help and succeed.
func refuseStrays(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Run = nil
			cmd.RunE = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil || len(rest) > 0 {
					return noCommand(about, strings.Join(rest, " "))
				}
				about.InitDefaultHelpFlag()
				return about.Help()
			}
		case "completion":
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
