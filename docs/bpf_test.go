package docs_test

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/bpf"
)

// TestSecurityListsEBPFPrograms compares security.md with the programs.
func TestSecurityListsEBPFPrograms(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "security.md"), "## eBPF programs\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, p := range bpf.Programs() {
		found := false
		for line := range strings.Lines(section) {
			found = found || strings.Contains(line, "`"+p.Hook+"`") && strings.Contains(line, p.License) &&
				strings.Contains(line, p.Needs)
		}
		if !found {
			t.Errorf("security.md has no line with %s, %s and %s", p.Hook, p.License, p.Needs)
		}
	}
}
