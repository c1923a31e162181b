package report

import (
	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
)

// AuditHost returns the findings about a host with their sentences.
func AuditHost(file string, s *audit.Snapshot, findings []audit.Finding) record.AuditHost {
	if findings == nil {
		findings = []audit.Finding{}
	}
	return record.AuditHost{File: file, Host: s.Host, System: s.System, Version: s.Version,
		Findings: text.AuditSentences(findings)}
}
