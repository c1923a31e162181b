package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// ApplyScope formats how far a change reaches and how long it lasts.
func ApplyScope(wholeHost, persist bool) string {
	switch {
	case !wholeHost:
		return "this network namespace, until it ends"
	case persist:
		return "this host, after a restart too"
	}
	return "this host, until the next restart"
}

// ChangeReason returns why a change has its outcome, or "".
func ChangeReason(d host.Did) string {
	switch {
	case d.Reason != "" || d.Found == nil:
		return d.Reason
	case d.Outcome == host.Conflict:
		return fmt.Sprintf("another program changed it to %s", host.Text(d.Found))
	}
	return fmt.Sprintf("the system set it to %s", host.Text(d.Found))
}

// OverriddenAtBoot warns of the files that replace persistent settings at the next boot.
func OverriddenAtBoot(overrides []host.Override, err error) (lines []string) {
	if err != nil {
		return []string{"whether another file overrides these settings at the next boot is unknown: " + err.Error()}
	}
	for _, o := range overrides {
		lines = append(lines, fmt.Sprintf("%s sets %s too and is loaded later: its value applies after the next boot",
			o.File, o.Name))
	}
	return lines
}

// Apply prints the changes.
func Apply(w io.Writer, a *record.Apply) {
	if len(a.Changes) == 0 {
		fmt.Fprintln(w, "nothing to change")
		return
	}
	fmt.Fprintf(w, "%s\n", a.Scope)
	writeChanges(w, a.Changes)
	changed := false
	for _, d := range a.Changes {
		if d.Outcome == host.Unchanged {
			continue
		}
		changed = true
		if entry, ok := entryOf(d); ok {
			fmt.Fprintln(w, hanging(w, "  "+entry.Name+": ", entry.Effect+" Takes effect: "+entry.Acts+"."))
		}
	}
	for _, text := range a.Warnings {
		fmt.Fprintln(w, hanging(w, "  warning: ", text))
	}
	switch {
	case !changed:
		fmt.Fprintln(w, "nothing to change: it already has this value")
	case a.Applied && !a.DryRun:
		if KeepsOldWindows(a.Changes) {
			fmt.Fprintln(w, hanging(w, "", OldWindows))
		}
		fmt.Fprintln(w, "fullpipe undo restores it")
	}
}

// OldWindows names the connections that a change of windows or buffers does not reach.
const OldWindows = "connections that are open keep the windows that they agreed on: have them reconnect, or restart " +
	"the programs that hold them open"

// KeepsOldWindows reports whether one of the changes that were made is of windows or buffers, which open connections
// do not take over: their window scale is the handshake's (RFC 7323 section 2.3).
func KeepsOldWindows(changes []record.HostChange) bool {
	for _, d := range changes {
		if d.Outcome != host.Changed {
			continue
		}
		for _, word := range []string{"mem", "window", "tcp1323opts", "autotuning", "scaling"} {
			if strings.Contains(strings.ToLower(d.Name), word) {
				return true
			}
		}
	}
	return false
}

func entryOf(d record.HostChange) (catalog.Parameter, bool) {
	name := d.Name[strings.LastIndexAny(d.Name, ` \/`)+1:]
	for _, family := range catalog.Families() {
		if entry, ok := catalog.Get(family, name); ok {
			return entry, true
		}
	}
	return catalog.Parameter{}, false
}

func writeChanges(w io.Writer, changes []record.HostChange) {
	t := newTable()
	for _, d := range changes {
		change := brief(d.Old) + " -> " + brief(d.New)
		if d.Outcome == host.Unchanged {
			change = brief(d.Old)
		}
		t.row(string(d.Outcome), d.Name, change, d.Reason)
	}
	t.write(w, "  ")
}

// brief formats a value on one line; for a file its number of lines.
func brief(value *string) string {
	text := host.Text(value)
	if n := strings.Count(text, "\n"); n > 0 {
		return fmt.Sprintf("%d line%s", n, plural(n))
	}
	return text
}

// Undo prints the settings that were restored.
func Undo(w io.Writer, u *record.Undo) {
	if len(u.Changes) == 0 {
		fmt.Fprintln(w, "nothing to undo")
		return
	}
	writeChanges(w, u.Changes)
	for _, d := range u.Changes {
		if d.Outcome == host.Conflict {
			fmt.Fprintf(w, "%s stays as it is; settle it by hand, then: fullpipe undo --forget '%s'\n", d.Name, d.Name)
		}
	}
}

// Status prints the settings that fullpipe has changed.
func Status(w io.Writer, s *record.Status) {
	if len(s.Settings) == 0 {
		fmt.Fprintln(w, "fullpipe has changed nothing here")
		return
	}
	t := newTable()
	t.row("", "name", "before", "ours", "now", "since")
	for _, r := range s.Settings {
		t.row(r.Is, r.Name, brief(r.Old), brief(r.New), brief(r.Now), r.At.Local().Format("2006-01-02 15:04:05"))
	}
	t.write(w, "")
	for _, r := range s.Settings {
		if why := meaning[r.Is]; why != "" {
			fmt.Fprintf(w, "%s: %s\n", r.Name, why)
		}
	}
}

var meaning = map[string]string{
	"interrupted": "the run that set it was interrupted; undo restores the old value",
	"not-made":    "planned by a run that was interrupted before it set it",
	"changed":     "another program changed it since; undo does not change it",
	"gone":        "a restart took it back",
	"unreadable":  "it cannot be read now",
}
