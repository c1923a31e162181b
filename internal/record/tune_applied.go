package record

// TuneApplied is the change that `tune --apply` made on this host for one direction, and the results of alternating
// runs with and without it.
type TuneApplied struct {
	Kept    bool          `json:"kept"`
	Reason  string        `json:"reason"`
	Scope   string        `json:"scope"`
	Changes []HostChange  `json:"changes"`
	Far     []HostChange  `json:"far_changes,omitempty"` // of the far host
	Before  *TuneMeasured `json:"before,omitempty"`
	After   *TuneMeasured `json:"after,omitempty"`
	Gain    *TuneGain     `json:"gain,omitempty"`
	// Marked is how many segments queues marked instead of dropping them, where ECN was asked for.
	Marked *int64 `json:"marked_segments,omitempty"`
	// Warnings say what the change does not reach.
	Warnings []string `json:"warnings,omitempty"`
}
