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

// TestBenchRequiresNothingMore checks that the bench module requires only versions that the main module requires,
// so that `make demo-ui` works with the modules that `make build` needs.
func TestBenchRequiresNothingMore(t *testing.T) {
	requirements := regexp.MustCompile(`(?m)^\t(\S+ v\S+)`)
	all := map[string]string{}
	for _, file := range []string{"go.mod", "bench/go.mod", "go.sum", "bench/go.sum"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all[file] = string(text)
	}
	ours := map[string]bool{}
	for _, m := range requirements.FindAllStringSubmatch(all["go.mod"], -1) {
		ours[m[1]] = true
	}
	theirs := requirements.FindAllStringSubmatch(all["bench/go.mod"], -1)
	if len(theirs) < 10 {
		t.Fatalf("bench/go.mod has only %d requirements", len(theirs))
	}
	for _, m := range theirs {
		if !ours[m[1]] {
			t.Errorf("bench/go.mod requires %s, go.mod does not", m[1])
		}
	}
	for line := range strings.Lines(all["bench/go.sum"]) {
		if !strings.Contains(all["go.sum"], line) {
			t.Errorf("go.sum does not have bench's %s", line)
		}
	}
}

// TestOnlyTheHubLinksTheNATSServer checks that fullpipe itself does not link the NATS server.
func TestOnlyTheHubLinksTheNATSServer(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./cmd/fullpipe").Output()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(out), "nats-server") {
		t.Error("cmd/fullpipe links nats-server: only bus/embed may import it, and only fullpipe-hub may import that")
	}
}

// TestEveryDependencyIsExplained compares go.mod's direct requirements with the table of
// ARCHITECTURE.md.
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
			t.Errorf("go.mod requires %s, ARCHITECTURE.md does not explain it", path)
		}
	}
	for _, path := range explained {
		if !slices.Contains(required, path) {
			t.Errorf("ARCHITECTURE.md explains %s, go.mod does not require it", path)
		}
	}
}

// TestArchitectureNamesEveryPackage compares ARCHITECTURE.md's list of packages with the tree.
// TestEveryDependencyIsExplained checks its table of modules.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	picture, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range packages(t) {
		parts := strings.Split(p.path(), "/")
		name := strings.TrimPrefix(p.path(), "internal/")
		if len(p.GoFiles) > 0 && len(parts) <= 2 && !strings.HasPrefix(p.path(), "e2e") && !strings.Contains(string(picture),
			name+"/ ") {
			t.Errorf("ARCHITECTURE.md does not show %s", p.path())
		}
	}
}
