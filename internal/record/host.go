package record

import (
	"github.com/fullpipe-net/fullpipe/internal/host"
)

// Apply is the object that `apply --json` prints.
type Apply struct {
	Header
	DryRun  bool       `json:"dry_run"`
	Applied bool       `json:"applied"` // all that was asked for holds now
	Scope   string     `json:"scope"`
	Changes []host.Did `json:"changes"`
	// Warnings name what takes a setting back later.
	Warnings []string `json:"warnings,omitempty"`
	Error    *Failure `json:"error,omitempty"`
}

// NewApply says what became of changes.
func NewApply(header Header, dids []host.Did, wholeHost, persist bool) *Apply {
	a := &Apply{Header: header, Applied: true, Changes: dids, Scope: "this network namespace, until it ends"}
	if wholeHost {
		a.Scope = "this host, until the next restart"
		if persist {
			a.Scope = "this host, after a restart too"
		}
	}
	if a.Changes == nil {
		a.Changes = []host.Did{}
	}
	for _, d := range dids {
		a.Applied = a.Applied && (d.Outcome == host.Changed || d.Outcome == host.Unchanged)
	}
	return a
}

// Undo is the object that `undo --json` prints.
type Undo struct {
	Header
	Changes []host.Did `json:"changes"`
	Error   *Failure   `json:"error,omitempty"`
}

// Status is the object that `status --json` prints.
type Status struct {
	Header
	Settings []host.State `json:"settings"`
}
