package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

func writeTuneApplied(w io.Writer, a *record.TuneApplied) {
	fmt.Fprintf(w, "\n  applied to %s\n", a.Scope)
	writeChanges(w, a.Changes)
	if len(a.Far) > 0 {
		fmt.Fprint(w, "\n  applied to the far host\n")
		writeChanges(w, a.Far)
	}
	tuneAppliedRows(a).write(w, "  ")
}

// tuneAppliedRows returns the rows of the verification of a change, and its outcome.
func tuneAppliedRows(a *record.TuneApplied) *table {
	t := newTable()
	if a.Before != nil {
		t.row("as it was", tuneMeasuredText(a.Before))
		t.row("changed", tuneMeasuredText(a.After))
		t.row("limited by", Verdict(&a.After.Direction))
	}
	if a.Gain != nil {
		text := "× " + factor(a.Gain.Factor)
		if a.Gain.CI95 != nil {
			text += fmt.Sprintf("   (× %s to × %s with 95 %% confidence, measured in turn)", factor(a.Gain.CI95[0]),
				factor(a.Gain.CI95[1]))
		}
		t.row("gain", text)
	}
	if a.Kept {
		t.row("kept", a.Reason)
	} else {
		t.row("taken back", a.Reason)
	}
	for _, warning := range a.Warnings {
		t.row("note", warning)
	}
	return t
}

func tuneInLab(d *record.Tune) bool { return strings.HasPrefix(d.Peer, "lab:") }

// tuneChanged returns the report's last line about the hosts.
func tuneChanged(d *record.Tune) string {
	var touched, kept, far bool
	for _, direction := range d.Directions {
		if direction.Applied != nil {
			touched = true
			kept = kept || direction.Applied.Kept
			far = far || len(direction.Applied.Far) > 0
		}
	}
	switch {
	case kept && tuneInLab(d):
		return "the lab's host was changed, and ended with the lab"
	case kept && far:
		return "both hosts were changed: fullpipe undo on each restores it"
	case kept:
		return "this host was changed: fullpipe undo restores it"
	case touched && far:
		return "both hosts are as they were"
	case touched:
		return "this host is as it was"
	}
	return "nothing was changed on either host"
}
