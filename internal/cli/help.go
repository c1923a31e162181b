package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/help"
)

// setHelp installs the three help texts: fullpipe alone lists the commands by task, -h shows usage, examples and
// common flags, and --help shows the description and all flags in groups.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		columns := help.Columns(out)
		long := help.WantsLong(args) || len(args) == 0 && cmd != root
		var text string
		switch {
		case cmd == root && !long:
			text = overview()
		case cmd == root:
			text = help.Long(cmd, columns, groups(cmd)) + "\n" + commandGroups(root, columns)
		case long:
			text = help.Long(cmd, columns, groups(cmd))
		default:
			text = help.Short(cmd, columns, commonFlags(cmd))
		}
		_, _ = io.WriteString(out, text) // the sink keeps the error
	})
}

// overview lists the commands by task, in at most 24 lines.
func overview() string {
	var b strings.Builder
	b.WriteString("fullpipe: find out why a TCP transfer is slow, fix it and prove it\n" +
		"Is it the network, the program, the disk or the other side? fullpipe why NAME\n\n")
	for _, t := range tasks {
		name := t.name
		for _, row := range t.rows {
			fmt.Fprintf(&b, "%-9s  %-15s  %s\n", name, row.commands, row.text)
			name = ""
		}
	}
	b.WriteString("\nPEER: HOST, ssh://HOST, iperf3://HOST, https://URL, lab:PROFILE (all: --help)\n" +
		"fullpipe COMMAND -h: usage and common flags; --help: all flags\n")
	return b.String()
}

// commandGroups lists each command by task with its first line of help.
func commandGroups(root *cobra.Command, columns int) string {
	var b strings.Builder
	for _, t := range tasks {
		fmt.Fprintf(&b, "%s\n", t.name)
		for _, row := range t.rows {
			for name := range strings.SplitSeq(row.commands, ", ") {
				cmd, _, err := root.Find([]string{name})
				if err == nil {
					b.WriteString(help.Hang("  "+fmt.Sprintf("%-10s", cmd.Name())+"  ", cmd.Short, columns))
				}
			}
		}
	}
	return b.String()
}

// commonFlags returns the flags that most people use, in the order of the table, or all flags.
func commonFlags(cmd *cobra.Command) (flags []*pflag.Flag) {
	names, ok := common[cmd.Name()]
	if !ok || cmd.Parent() != cmd.Root() {
		return help.Flags(cmd)
	}
	for _, name := range names {
		if f := cmd.Flag(name); f != nil {
			flags = append(flags, f)
		}
	}
	return flags
}

// groups returns a command's flags in their groups.
func groups(cmd *cobra.Command) (all []help.Group) {
	for _, g := range flagGroups {
		one := help.Group{Name: g.name}
		for _, f := range help.Flags(cmd) {
			if groupOf(f.Name) == g.name {
				one.Flags = append(one.Flags, f)
			}
		}
		all = append(all, one)
	}
	return all
}

// groupOf returns the group of a flag, "" for none.
func groupOf(flag string) string {
	for _, g := range flagGroups {
		if slices.Contains(strings.Fields(g.flags), flag) {
			return g.name
		}
	}
	return ""
}
