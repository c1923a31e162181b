package cli

import (
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// Bounds of help texts. Short help fits a terminal of 80 columns without scrolling far.
const (
	shortColumns = 80
	maxColumns   = 110
	flagColumn   = 28 // at most, where a flag's text begins
	maxFlagLines = 2  // of a flag's text in short help
	etc          = " ..."
)

// setHelp installs the three help texts: fullpipe alone lists the commands by task, -h shows usage, examples and
// common flags, and --help shows the description and all flags in groups.
func setHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		out := cmd.OutOrStdout()
		columns := shortColumns
		if console.IsTerminal(out) {
			columns = min(render.Columns(out), maxColumns)
		}
		long := wantsLongHelp(args) || len(args) == 0 && cmd != root
		var text string
		switch {
		case cmd == root && !long:
			text = overview()
		case cmd == root:
			text = longHelp(cmd, columns) + "\n" + commandGroups(root, columns)
		case long:
			text = longHelp(cmd, columns)
		default:
			text = shortHelp(cmd, min(columns, shortColumns))
		}
		_, _ = io.WriteString(out, text) // the sink keeps the error
	})
}

// wantsLongHelp reports whether the command line has --help. Otherwise it has -h.
func wantsLongHelp(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--help")
}

// overview lists the commands by task, in at most 24 lines.
func overview() string {
	var b strings.Builder
	b.WriteString("fullpipe: find out why a TCP transfer is slow, fix it and prove it\n\n")
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
					b.WriteString(hang("  "+fmt.Sprintf("%-10s", cmd.Name())+"  ", cmd.Short, columns))
				}
			}
		}
	}
	return b.String()
}

// shortHelp returns usage, examples, subcommands and common flags.
func shortHelp(cmd *cobra.Command, columns int) string {
	var b strings.Builder
	b.WriteString(headline(cmd, columns))
	writeUsage(&b, cmd, columns, 12)
	flags := commonFlags(cmd)
	title := "Common flags"
	if len(flags) == len(ownFlags(cmd)) {
		title = "Flags"
	}
	writeFlags(&b, title, flags, columns, false)
	fmt.Fprintf(&b, "\n%s --help: description and all flags\n", cmd.CommandPath())
	return b.String()
}

// longHelp returns the description, usage, examples, subcommands and all flags in groups.
func longHelp(cmd *cobra.Command, columns int) string {
	var b strings.Builder
	b.WriteString(headline(cmd, columns))
	if cmd.Long != "" {
		b.WriteString(rewrap(cmd.Long, columns) + "\n")
	}
	writeUsage(&b, cmd, columns, math.MaxInt)
	for _, g := range flagGroups {
		var flags []*pflag.Flag
		for _, f := range ownFlags(cmd) {
			if groupOf(f.Name) == g.name {
				flags = append(flags, f)
			}
		}
		writeFlags(&b, g.name, flags, columns, true)
	}
	return b.String()
}

// headline returns what a command does.
func headline(cmd *cobra.Command, columns int) string {
	return hang("", strings.ToUpper(cmd.Short[:1])+cmd.Short[1:]+".", columns) + "\n"
}

// writeUsage writes a command's usage, subcommands and at most maxExamples lines of examples.
func writeUsage(b *strings.Builder, cmd *cobra.Command, columns, maxExamples int) {
	usage := cmd.UseLine()
	if cmd.HasAvailableSubCommands() && cmd.Runnable() {
		usage += "\nUsage: " + cmd.CommandPath() + " COMMAND"
	} else if cmd.HasAvailableSubCommands() {
		usage = cmd.CommandPath() + " COMMAND"
	}
	b.WriteString("Usage: " + usage + "\n")
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n")
		lines := 0
		for line := range strings.SplitSeq(cmd.Example, "\n") {
			example := breakCommand(line, columns)
			lines += strings.Count(example, "\n")
			if lines <= maxExamples {
				b.WriteString(example)
			}
		}
	}
	if cmd.HasAvailableSubCommands() && cmd.HasParent() {
		b.WriteString("\nCommands:\n")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				b.WriteString(hang(fmt.Sprintf("  %-12s", sub.Name()), sub.Short, columns))
			}
		}
	}
}

// writeFlags writes a table of flags.
func writeFlags(b *strings.Builder, title string, flags []*pflag.Flag, columns int, whole bool) {
	if len(flags) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%s:\n", title)
	width := 0
	for _, f := range flags {
		width = max(width, len(flagName(f))+2)
	}
	width = min(width, flagColumn)
	for _, f := range flags {
		name := flagName(f)
		_, text := pflag.UnquoteUsage(f)
		if f.Name == "help" {
			text = "-h: usage and common flags; --help: all flags"
		}
		if !whole {
			text = firstPart(text)
		}
		if d := shownDefault(f); d != "" {
			text += " (default " + d + ")"
		}
		if len(name) > width-2 {
			b.WriteString(name + "\n")
			name = ""
		}
		name = fmt.Sprintf("%-*s", width, name)
		if lines := strings.SplitAfter(hang(name, text, columns-len(etc)), "\n"); !whole && len(lines) > maxFlagLines+1 {
			b.WriteString(strings.TrimRight(strings.Join(lines[:maxFlagLines], ""), ", \n") + etc + "\n")
			continue
		}
		b.WriteString(hang(name, text, columns))
	}
}

// flagName returns "  -b, --bitrate rate".
func flagName(f *pflag.Flag) string {
	name := "      --" + f.Name
	if f.Shorthand != "" {
		name = "  -" + f.Shorthand + ", --" + f.Name
	}
	kind, _ := pflag.UnquoteUsage(f)
	switch {
	case kind == "":
		return name
	case f.NoOptDefVal != "" && f.Value.Type() != "bool":
		return name + "[=" + kind + "]"
	}
	return name + " " + kind
}

// parenthesis matches an addition to a flag's text.
var parenthesis = regexp.MustCompile(` \([^)]*\)`)

// firstPart returns a flag's text up to its first semicolon, without parentheses.
func firstPart(text string) string {
	text, _, _ = strings.Cut(parenthesis.ReplaceAllString(text, ""), "; ")
	return text
}

// shownDefault returns a flag's default as a user would write it, or "" if it has none.
func shownDefault(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "false", "[]", "0s":
		return ""
	}
	if strings.Contains(f.Usage, "(default") || strings.Contains(f.Usage, "default:") {
		return ""
	}
	return f.DefValue
}

// ownFlags returns a command's visible flags with those of all commands, by name.
func ownFlags(cmd *cobra.Command) (all []*pflag.Flag) {
	cmd.InitDefaultHelpFlag()
	seen := map[string]bool{}
	for _, set := range []*pflag.FlagSet{cmd.LocalFlags(), cmd.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !seen[f.Name] {
				seen[f.Name] = true
				all = append(all, f)
			}
		})
	}
	return all
}

// commonFlags returns the flags that most people use, in the order of the table, or all flags.
func commonFlags(cmd *cobra.Command) (flags []*pflag.Flag) {
	names, ok := common[cmd.Name()]
	if !ok || cmd.Parent() != cmd.Root() {
		return ownFlags(cmd)
	}
	for _, name := range names {
		if f := cmd.Flag(name); f != nil {
			flags = append(flags, f)
		}
	}
	return flags
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

// hang returns text after a prefix, wrapped, with the following lines indented by the prefix's width.
func hang(prefix, text string, columns int) string {
	indent := utf8.RuneCountInString(prefix)
	var b strings.Builder
	b.WriteString(prefix)
	at := indent
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i > 0 && at+1+n > columns && indent+n <= columns:
			b.WriteString("\n" + strings.Repeat(" ", indent))
			at = indent
		case i > 0:
			b.WriteString(" ")
			at++
		}
		b.WriteString(word)
		at += n
	}
	return b.String() + "\n"
}

// breakCommand breaks a command line that is longer than columns at spaces outside quotes, as a shell reads it.
func breakCommand(line string, columns int) string {
	const indent = "      "
	end := -1
	quoted := false
	for i, c := range []byte(line) {
		switch {
		case c == '\'' || c == '"':
			quoted = !quoted
		case c == ' ' && !quoted && i > len(indent) && (i <= columns-2 || end < 0):
			end = i
		}
	}
	if utf8.RuneCountInString(line) <= columns || end < 0 {
		return line + "\n"
	}
	return line[:end] + " \\\n" + breakCommand(indent+line[end+1:], columns)
}

// row matches a row of a table: an indented name and, after two spaces, its text.
var row = regexp.MustCompile(`^( +\S.*?  +)(\S.*)$`)

// splitRow splits a row of a table before its text. Another line has only its indent before the text.
func splitRow(line string) (name, text string) {
	if m := row.FindStringSubmatch(line); m != nil {
		return m[1], m[2]
	}
	text = strings.TrimLeft(line, " ")
	return line[:len(line)-len(text)], text
}

// rewrap wraps the paragraphs and table rows of a text.
func rewrap(text string, columns int) string {
	var b strings.Builder
	var paragraph []string
	flush := func() {
		if len(paragraph) > 0 {
			b.WriteString(hang("", strings.Join(paragraph, " "), columns))
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			flush()
			prefix, text := splitRow(line)
			b.WriteString(strings.TrimRight(hang(prefix, text, columns), " \n") + "\n")
			continue
		}
		paragraph = append(paragraph, line)
	}
	flush()
	return b.String()
}
