package record

import (
	"time"
)

// Apply is the object that `apply --json` prints.
type Apply struct {
	Header
	DryRun  bool         `json:"dry_run"`
	Applied bool         `json:"applied"` // all that was asked for holds now
	Scope   string       `json:"scope"`
	Changes []HostChange `json:"changes"`
	// Warnings name what takes a setting back later.
	Warnings []string `json:"warnings,omitempty"`
	Error    *Failure `json:"error,omitempty"`
}

// Undo is the object that `undo --json` prints.
type Undo struct {
	Header
	Changes []HostChange `json:"changes"`
	Error   *Failure     `json:"error,omitempty"`
}

// Status is the object that `status --json` prints.
type Status struct {
	Header
	Settings []HostSetting `json:"settings"`
}

// HostChange is what became of one change of a host's settings. Values are as the system
// writes them; null where there is none.
type HostChange struct {
	Kind    string  `json:"kind"` // sysctl, route, qdisc, registry, file or nettcp
	Name    string  `json:"name"`
	Old     *string `json:"old"`     // before
	New     *string `json:"new"`     // asked for
	Took    *string `json:"took"`    // read back after
	Outcome string  `json:"outcome"` // one of host's Outcomes: changed, unchanged, refused …
	Reason  string  `json:"reason,omitempty"`
}

// HostSetting is one value that fullpipe changed, as the journal has it, and what holds now.
type HostSetting struct {
	Kind string    `json:"kind"`
	Name string    `json:"name"`
	Old  *string   `json:"old"`  // before the first change: what undo restores
	Was  *string   `json:"was"`  // right before the last change: what a roll-back restores
	New  *string   `json:"new"`  // written last, or about to be
	Made bool      `json:"made"` // New was written and read back
	At   time.Time `json:"at"`
	Boot string    `json:"boot,omitempty"` // run-time values live no longer than this
	Now  *string   `json:"now"`
	Is   string    `json:"is"` // ours, interrupted, not-made, changed, gone or unreadable
}
