package cli

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/help"
	"github.com/fullpipe-net/fullpipe/internal/cli/hub"
)

// eachCommand calls f with every command that help lists.
func eachCommand(root *cobra.Command, f func(*cobra.Command)) {
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() {
			f(cmd)
			eachCommand(cmd, f)
		}
	}
}

// helpText returns what a command line prints.
func helpText(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status := run(t.Context(), args, console.NewStreams(nil, &out, &errs)); status != 0 || errs.Len() > 0 {
		t.Fatalf("%v: status %d: %s", args, status, errs.String())
	}
	return out.String()
}

func checkSize(t *testing.T, name, text string, maxLines int) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > maxLines {
		t.Errorf("%s: %d lines, at most %d", name, len(lines), maxLines)
	}
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > help.MaxShortColumns {
			t.Errorf("%s: %d columns: %s", name, n, line)
		}
	}
}

func TestHelp_OverviewListsAllCommands(t *testing.T) {
	text := helpText(t)
	checkSize(t, "fullpipe", text, 24)
	var listed []string
	for _, task := range tasks {
		for _, row := range task.rows {
			listed = append(listed, strings.Split(row.commands, ", ")...)
		}
	}
	for _, cmd := range NewRoot(console.Streams{}).Commands() {
		if n := cmd.Name(); cmd.IsAvailableCommand() && n != "help" && n != "completion" && !slices.Contains(listed, n) {
			t.Errorf("%s is not in the overview", n)
		}
	}
	checkSize(t, "fullpipe --help", helpText(t, "--help"), math.MaxInt)
	if helpText(t, "-h") != text || helpText(t, "help") != text {
		t.Error("fullpipe -h or help differs from fullpipe")
	}
}

// TestHelp_ShortHelpFitsScreen walks all commands.
func TestHelp_ShortHelpFitsScreen(t *testing.T) {
	const maxLines, maxFirstLine = 45, 70
	check := func(cmd *cobra.Command, help func(args []string) string) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "-h")
		text := help(args)
		checkSize(t, strings.Join(args, " "), text, maxLines)
		if n := utf8.RuneCountInString(cmd.Short); n > maxFirstLine {
			t.Errorf("%s: the first line has %d characters, at most %d: %s", cmd.CommandPath(), n, maxFirstLine, cmd.Short)
		}
		if strings.Contains(text, "(default )") || strings.Contains(text, " ...\n") ||
			!strings.Contains(text, "Usage: "+cmd.CommandPath()) {
			t.Errorf("%v:\n%s", args, text)
		}
	}
	eachCommand(NewRoot(console.Streams{}), func(cmd *cobra.Command) {
		check(cmd, func(args []string) string { return helpText(t, args...) })
	})
	center := hub.NewRoot(console.Streams{})
	ofHub := func(args []string) string { return hubHelp(t, args) }
	check(center, ofHub)
	eachCommand(center, func(cmd *cobra.Command) { check(cmd, ofHub) })
}

// hubHelp returns what fullpipe-hub prints.
func hubHelp(t *testing.T, args []string) string {
	t.Helper()
	var out, errs bytes.Buffer
	status := hub.Run(t.Context(), append([]string{"fullpipe-hub"}, args...), nil, &out, &errs)
	if status != 0 || errs.Len() > 0 {
		t.Fatalf("%v: status %d: %s", args, status, errs.String())
	}
	return out.String()
}

// TestHelp_OfHubListsAll checks that long help of fullpipe-hub has all flags and commands.
func TestHelp_OfHubListsAll(t *testing.T) {
	root := hub.NewRoot(console.Streams{})
	text := hubHelp(t, nil)
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && !strings.Contains(text, "\n  "+cmd.Name()) {
			t.Errorf("%s is not listed:\n%s", cmd.Name(), text)
		}
	}
	eachCommand(root, func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		text := hubHelp(t, args)
		checkSize(t, strings.Join(args, " "), text, math.MaxInt)
		for _, f := range help.Flags(cmd) {
			if !strings.Contains(text, "--"+f.Name) {
				t.Errorf("%v: no --%s", args, f.Name)
			}
		}
	})
}

// TestHelp_LongHelpHasAllFlagsInGroups walks all commands. Each flag has one group.
func TestHelp_LongHelpHasAllFlagsInGroups(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range flagGroups {
		for _, name := range strings.Fields(g.flags) {
			if seen[name] {
				t.Errorf("--%s is in two groups", name)
			}
			seen[name] = true
		}
	}
	used := map[string]bool{"timestamp": true}
	eachCommand(NewRoot(console.Streams{}), func(cmd *cobra.Command) {
		args := append(strings.Fields(cmd.CommandPath())[1:], "--help")
		text := helpText(t, args...)
		for _, f := range help.Flags(cmd) {
			used[f.Name] = true
			if !strings.Contains(text, "--"+f.Name) || groupOf(f.Name) == "" {
				t.Errorf("%s: --%s is in no group", cmd.CommandPath(), f.Name)
			}
		}
		for _, name := range common[cmd.Name()] {
			if cmd.Parent() == cmd.Root() && cmd.Flag(name) == nil {
				t.Errorf("%s has no --%s", cmd.CommandPath(), name)
			}
		}
		checkSize(t, strings.Join(args, " "), text, math.MaxInt)
		if strings.Contains(text, "(default )") {
			t.Errorf("%v: an empty default", args)
		}
	})
	for name := range seen {
		if !used[name] {
			t.Errorf("no command has --%s", name)
		}
	}
}
