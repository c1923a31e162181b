package report

import (
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// Apply describes changes and their outcomes.
func Apply(header record.Header, dids []record.HostChange, wholeHost, persist bool) *record.Apply {
	a := &record.Apply{Header: header, Applied: true, Changes: hostChanges(dids),
		Scope: text.ApplyScope(wholeHost, persist)}
	for _, d := range dids {
		a.Applied = a.Applied && (d.Outcome == host.Changed || d.Outcome == host.Unchanged)
	}
	return a
}

// Undo describes what was restored.
func Undo(header record.Header, dids []record.HostChange) *record.Undo {
	return &record.Undo{Header: header, Changes: hostChanges(dids)}
}

// Status describes this host's settings that fullpipe changed.
func Status(header record.Header, states []record.HostSetting) *record.Status {
	return &record.Status{Header: header, Settings: listed(states)}
}

// listed returns a list that JSON shows as [] when it is empty.
func listed[T any](all []T) []T { return append([]T{}, all...) }

// hostChanges returns changes with the sentences of their reasons.
func hostChanges(dids []record.HostChange) []record.HostChange {
	all := listed(dids)
	for i := range all {
		all[i].Reason = text.ChangeReason(all[i])
	}
	return all
}
