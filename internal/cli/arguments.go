package cli

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
)

// What cobra says of arguments that it does not take.
var (
	wrongCount = regexp.MustCompile(`^(?:accepts|requires) ((?:at \w+ |between \d+ and )?\d+) arg\(s\), ` +
		`(?:only )?received (\d+)$`)
	unknownCommand = regexp.MustCompile(`^unknown command ("(?:[^"\\]|\\.)*") for "`)
)

// argumentError puts what cobra says of a command's arguments in this program's words; any
// other error stays as it is.
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

// noCommand says that a command has no other one by that name below it.
func noCommand(cmd *cobra.Command, name string) error {
	try := cmd.CommandPath() + " --help"
	if cmd.SuggestionsMinimumDistance <= 0 {
		cmd.SuggestionsMinimumDistance = 2
	}
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		try = cmd.CommandPath() + " " + near[0]
	}
	return exit.Usage("", fmt.Sprintf("unknown command %q", name), try)
}

// refuseStrays has cobra's own commands refuse names that they do not know: by themselves
// they print their help and end well.
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
