package record

import (
	"time"
)

// Apply is the object that `apply --json` prints.
type Apply struct {
	Header
	DryRun  bool         `json:"dry_run"`
	Applied bool         `json:"applied"` // every requested setting is in effect
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

// SettingKind names the store of a setting: sysctl, route, qdisc, registry, file or nettcp.
type SettingKind string

// ChangeOutcome is the outcome of a change, from the closed list in host.
type ChangeOutcome string

// HostChange is one change of a host's settings. Values are as the system writes them; null is an absent value.
type HostChange struct {
	Kind    SettingKind   `json:"kind"`
	Name    string        `json:"name"`
	Old     *string       `json:"old"`  // before
	New     *string       `json:"new"`  // requested
	Took    *string       `json:"took"` // read back after
	Outcome ChangeOutcome `json:"outcome"`
	// Reason is the text of the error that explains it, or the sentence that another host's fullpipe sent.
	Reason string `json:"reason,omitempty"`
	// Found is the value in place of ours: the system's if the change was clipped, another program's on a conflict.
	Found *string `json:"-"`
}

// JournalEntry is one value that fullpipe changed.
type JournalEntry struct {
	Kind SettingKind `json:"kind"`
	Name string      `json:"name"`
	Old  *string     `json:"old"`  // before the first change: undo restores it
	Was  *string     `json:"was"`  // before the last change: a roll-back restores it
	New  *string     `json:"new"`  // written last, or about to be written
	Made bool        `json:"made"` // New was written and read back; until then the value is Was or New
	At   time.Time   `json:"at"`
	Boot string      `json:"boot,omitempty"` // the boot that run-time values belong to
}

// HostSetting is a journal entry and the present value.
type HostSetting struct {
	JournalEntry
	Now *string `json:"now"`
	// Is is "ours", "interrupted" (ours, but the run that wrote it was cut short), "not-made" (announced, never written),
	// "changed" (another program's value), "gone" (reset by a restart) or "unreadable".
	Is string `json:"is"`
}
