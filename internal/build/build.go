// Package build knows which build of fullpipe this is.
package build

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// These are set by the linker when a release is built: its tag, its commit and when that
// was made.
var release, revision, revised string

// Info says which build this is.
type Info struct {
	Release  string `json:"release,omitempty"`
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"commit_date,omitempty"`
	Modified bool   `json:"modified,omitempty"` // built from changed files
	Go       string `json:"go"`
	System   string `json:"system"`
}

// This reads what the Go tool recorded in the program.
func This() Info {
	b := Info{Release: release, Commit: revision, Date: revised, Go: runtime.Version(),
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

// Version is a build on one line.
func Version() string {
	b := This()
	parts := []string{b.Release}
	if short := b.Commit[:min(12, len(b.Commit))]; short != "" && !strings.Contains(b.Release, short) {
		if b.Modified {
			short += "+changes"
		}
		parts = append(parts, short)
	}
	return strings.TrimSpace(strings.Join(append(parts, b.Go), " "))
}
