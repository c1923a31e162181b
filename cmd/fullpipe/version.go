package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
)

// These are set by the linker when a release is built: its tag, its commit and when that
// was made.
var release, revision, revised string

// buildInfo says which build this is.
type buildInfo struct {
	Release  string `json:"release,omitempty"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"commit_date,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from changed files
	Go       string `json:"go"`
	System   string `json:"system"`
}

// thisBuild reads what the Go tool recorded in the program.
func thisBuild() buildInfo {
	b := buildInfo{Release: release, Commit: revision, Date: revised, Go: runtime.Version(),
		System: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if b.Release == "" {
		b.Release = strings.Trim(info.Main.Version, "()")
	}
	for _, s := range info.Settings {
		switch {
		case revision != "": // says more than the tree that a release was copied to
		case s.Key == "vcs.revision":
			b.Commit = s.Value
		case s.Key == "vcs.time":
			b.Date = s.Value
		case s.Key == "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// version is a build on one line.
func version() string {
	b := thisBuild()
	parts := []string{b.Release}
	if short := b.Commit[:min(12, len(b.Commit))]; short != "" && !strings.Contains(b.Release, short) {
		if b.Modified {
			short += "+changes"
		}
		parts = append(parts, short)
	}
	return strings.TrimSpace(strings.Join(append(parts, b.Go), " "))
}

// shownBuild is what version prints with --json.
type shownBuild struct {
	record.Header
	buildInfo
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "which build this is: release, commit, Go and system",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := thisBuild()
			if wantsJSON(cmd) {
				return printJSON(cmd.OutOrStdout(), shownBuild{newHeader(cmd), b})
			}
			return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
				for _, line := range [][2]string{{"fullpipe", b.Release}, {"commit", b.Commit}, {"date", b.Date}, {"go", b.Go},
					{"system", b.System}} {
					if line[1] != "" {
						fmt.Fprintf(w, "%-9s %s\n", line[0], line[1])
					}
				}
				if b.Modified {
					fmt.Fprintln(w, "          built from files that differ from the commit")
				}
				return nil
			})
		},
	}
}
