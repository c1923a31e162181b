package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestAudit_Header checks that the first line of a host has no blanks where its name or version is not known.
func TestAudit_Header(t *testing.T) {
	for want, h := range map[string]record.AuditHost{
		"db1 (db1.json), linux 6.1":    {Host: "db1", File: "db1.json", System: "linux", Version: "6.1"},
		"db1, linux 6.1":               {Host: "db1", System: "linux", Version: "6.1"},
		"saved.reg, windows-2000":      {File: "saved.reg", System: "windows-2000"},
		"a host without a name, linux": {System: "linux"},
	} {
		var out strings.Builder
		Audit(&out, &record.Audit{Hosts: []record.AuditHost{h}})
		if got, _, _ := strings.Cut(out.String(), "\n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
