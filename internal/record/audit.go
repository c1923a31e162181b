package record

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/audit"
)

// Audit is the object that `audit --json` prints.
type Audit struct {
	Header
	RateBps float64     `json:"rate_bps,omitempty"`
	RTTS    float64     `json:"rtt_s,omitempty"`
	Hosts   []AuditHost `json:"hosts"`
}

// AuditHost is what was found on one host.
type AuditHost struct {
	File     string          `json:"file,omitempty"` // empty: this host
	Host     string          `json:"host,omitempty"`
	System   string          `json:"system"`
	Version  string          `json:"kernel,omitempty"`
	Findings []audit.Finding `json:"findings"`
}

// Bad reports whether a finding limits or harms.
func (a *Audit) Bad() bool {
	return slices.ContainsFunc(a.Hosts, func(h AuditHost) bool {
		return slices.ContainsFunc(h.Findings,
			audit.Finding.Bad)
	})
}
