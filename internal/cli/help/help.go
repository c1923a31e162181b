// Package help writes the help texts of commands.
package help

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

// MaxShortColumns is the width of short help, which fits a terminal without scrolling far.
const MaxShortColumns = 80

const (
	maxColumns   = 110
	flagColumn   = 28 // at most, where a flag's text begins
	maxFlagLines = 2  // of a flag's text in short help
)

// Group is a titled group of flags in long help.
type Group struct {
	Name  string
	Flags []*pflag.Flag
}

// Columns returns the width of help texts on out.
func Columns(out io.Writer) int {
	if console.IsTerminal(out) {
		return min(render.Columns(out), maxColumns)
	}
	return MaxShortColumns
}

// WantsLong reports whether the command line has --help. Otherwise it has -h.
func WantsLong(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--help")
}

// Short returns usage, examples, subcommands and the flags that most people use.
func Short(cmd *cobra.Command, columns int, flags []*pflag.Flag) string {
	columns = min(columns, MaxShortColumns)
	var b strings.Builder
	b.WriteString(headline(cmd, columns))
	writeUsage(&b, cmd, columns, 12)
	title := "Common flags"
	if len(flags) == len(Flags(cmd)) {
		title = "Flags"
	}
	writeFlags(&b, title, flags, columns, false)
	fmt.Fprintf(&b, "\n%s --help: description and all flags\n", cmd.CommandPath())
	return b.String()
}

// Long returns the description, usage, examples, subcommands and all flags in groups.
func Long(cmd *cobra.Command, columns int, groups []Group) string {
	var b strings.Builder
	b.WriteString(headline(cmd, columns))
	if cmd.Long != "" {
		b.WriteString(rewrap(cmd.Long, columns) + "\n")
	}
	writeUsage(&b, cmd, columns, math.MaxInt)
	for _, g := range groups {
		writeFlags(&b, g.Name, g.Flags, columns, true)
	}
	return b.String()
}

// headline returns what a command does.
func headline(cmd *cobra.Command, columns int) string {
	return Hang("", strings.ToUpper(cmd.Short[:1])+cmd.Short[1:]+".", columns) + "\n"
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
		b.WriteString("\n" + Commands(cmd, columns))
	}
}

// Commands lists a command's subcommands.
func Commands(cmd *cobra.Command, columns int) string {
	var b strings.Builder
	b.WriteString("Commands:\n")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			b.WriteString(Hang(fmt.Sprintf("  %-12s", sub.Name()), sub.Short, columns))
		}
	}
	return b.String()
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
		if !whole {
			text = shorter(text, func(text string) bool {
				return strings.Count(Hang(name, text, columns), "\n") <= maxFlagLines
			})
		}
		b.WriteString(Hang(name, text, columns))
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

// shorter returns a text that fits: without its list after a colon, or else without its last clauses. It returns a text
// of one clause whole.
func shorter(text string, fits func(string) bool) string {
	if fits(text) {
		return text
	}
	if head, _, listed := strings.Cut(text, ": "); listed && fits(head) {
		return head
	}
	for short := text; ; {
		end := strings.LastIndex(short, ", ")
		if end < 0 {
			return text
		}
		short = short[:end]
		if fits(short) {
			return short
		}
	}
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

// Flags returns a command's visible flags with those of all commands, by name.
func Flags(cmd *cobra.Command) (all []*pflag.Flag) {
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

// Hang returns text after a prefix, wrapped, with the following lines indented by the prefix's width.
func Hang(prefix, text string, columns int) string {
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
			b.WriteString(Hang("", strings.Join(paragraph, " "), columns))
		}
		paragraph = nil
	}
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if line == "" || strings.HasPrefix(line, " ") {
			flush()
			prefix, text := splitRow(line)
			b.WriteString(strings.TrimRight(Hang(prefix, text, columns), " \n") + "\n")
			continue
		}
		paragraph = append(paragraph, line)
	}
	flush()
	return b.String()
}
