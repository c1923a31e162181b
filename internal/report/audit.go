package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/units"
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

// NewAuditHost names a judged snapshot.
func NewAuditHost(file string, s *audit.Snapshot, findings []audit.Finding) AuditHost {
	if findings == nil {
		findings = []audit.Finding{}
	}
	return AuditHost{File: file, Host: s.Host, System: s.System, Version: s.Version, Findings: findings}
}

// Bad says whether a finding asks for something to be done.
func (a *Audit) Bad() bool {
	return slices.ContainsFunc(a.Hosts, func(h AuditHost) bool { return slices.ContainsFunc(h.Findings, audit.Finding.Bad) })
}

// WriteText prints the audit for a person.
func (a *Audit) WriteText(w io.Writer) {
	for i, h := range a.Hosts {
		if i > 0 {
			fmt.Fprintln(w)
		}
		name := h.Host
		if h.File != "" {
			name += " (" + h.File + ")"
		}
		fmt.Fprintf(w, "%s, %s %s", name, h.System, h.Version)
		if a.RateBps > 0 {
			fmt.Fprintf(w, ", for %s x %s", units.Rate(a.RateBps), secondsText(a.RTTS))
		}
		fmt.Fprintln(w)
		if len(h.Findings) == 0 {
			fmt.Fprintln(w, "  nothing found")
		}
		for _, f := range h.Findings {
			writeFinding(w, f)
		}
	}
}

func writeFinding(w io.Writer, f audit.Finding) {
	label := fmt.Sprintf("  %-8s  ", f.Grade)
	text := f.Parameter
	if f.Value != "" {
		text += " = " + f.Value
	}
	fmt.Fprintln(w, hanging(label, text))
	blank := fmt.Sprintf("  %-8s  ", "")
	said := f.Text
	if f.CostBps > 0 {
		said += ", a loss of " + units.Rate(f.CostBps).String()
	}
	if !f.Confirmed && f.Grade != audit.Unknown && f.Source != "" {
		said += " [not confirmed by a primary source]"
	}
	fmt.Fprintln(w, hanging(blank, said))
	if f.Fix != "" {
		fmt.Fprintln(w, hanging(blank+"try: ", f.Fix))
	}
}
