//go:build manual

package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/hub"
)

// A program that is built with the tag "manual" writes the manual pages and the shells'
// completions of the one without it and of fullpipe-hub, and does nothing else:
//
//	go run -tags manual ./cmd/fullpipe DIR DATE EXIT-STATUS.md
func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: DIR YYYY-MM-DD EXIT-STATUS.md")
		os.Exit(exit.Misused)
	}
	if err := writeManual(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(exit.Failed)
	}
}

func writeManual(dir, date, statuses string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	table, err := os.ReadFile(statuses)
	if err != nil {
		return err
	}
	std := console.NewStreams(strings.NewReader(""), &bytes.Buffer{}, &bytes.Buffer{})
	for _, sub := range []string{"man1", "bash", "zsh", "fish"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return err
		}
	}
	var failed []error
	for _, root := range []*cobra.Command{cli.NewRoot(std), hub.NewRoot(std)} {
		root.DisableAutoGenTag = true
		name := root.Name()
		failed = append(failed,
			manualPages(root, filepath.Join(dir, "man1"), day, exitStatusSection(string(table))),
			root.GenBashCompletionFileV2(filepath.Join(dir, "bash", name), true),
			root.GenZshCompletionFile(filepath.Join(dir, "zsh", "_"+name)),
			root.GenFishCompletionFile(filepath.Join(dir, "fish", name+".fish"), true))
	}
	return errors.Join(failed...)
}

// manualPages writes a page for a command and all below it.
func manualPages(cmd *cobra.Command, dir string, day time.Time, statuses string) error {
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := manualPages(sub, dir, day, statuses); err != nil {
			return err
		}
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var page bytes.Buffer
	if err := doc.GenMan(cmd, &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Date: &day,
		Source: "fullpipe", Manual: "fullpipe"}, &page); err != nil {
		return err
	}
	text := page.String()
	if before, after, found := strings.Cut(text, ".SH SEE ALSO"); found {
		text = before + statuses + ".SH SEE ALSO" + after
	} else {
		text += statuses
	}
	return atomicfile.Write(context.Background(), filepath.Join(dir, name+".1"), []byte(text))
}

// exitStatusSection turns the first table of docs/exit-status.md, the only one there is of
// them, into a section of a manual page.
func exitStatusSection(markdown string) string {
	var b strings.Builder
	b.WriteString(".SH EXIT STATUS\n")
	rows := 0
	for line := range strings.Lines(markdown) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 {
			if rows > 0 {
				break
			}
			continue
		}
		rows++
		if rows <= 2 { // the heading and its rule
			continue
		}
		text := strings.NewReplacer("`", "", `\`, `\e`, "-", `\-`).Replace(strings.TrimSpace(cells[1]))
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fP\n%s\n", strings.TrimSpace(cells[0]), text)
	}
	return b.String() + ".PP\n"
}
