package fullpipe_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryDependencyIsExplained holds go.mod's direct requirements and the table of
// ARCHITECTURE.md against each other.
func TestEveryDependencyIsExplained(t *testing.T) {
	out, err := exec.Command("go", "mod", "edit", "-json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	var required []string
	for _, r := range mod.Require {
		if !r.Indirect {
			path := strings.TrimPrefix(r.Path, "github.com/")
			required = append(required, regexp.MustCompile(`/v[0-9]+$`).ReplaceAllString(path, ""))
		}
	}
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## Dependencies\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no dependencies")
	}
	var explained []string
	for _, m := range regexp.MustCompile(`(?m)^\| ([^ |]+/[^ |]+) \| `).FindAllStringSubmatch(table, -1) {
		explained = append(explained, m[1])
	}
	for _, path := range required {
		if !slices.Contains(explained, path) {
			t.Errorf("go.mod requires %s, ARCHITECTURE.md does not say why", path)
		}
	}
	for _, path := range explained {
		if !slices.Contains(required, path) {
			t.Errorf("ARCHITECTURE.md explains %s, go.mod does not require it", path)
		}
	}
}
