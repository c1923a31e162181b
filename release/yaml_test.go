package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestDocumentedYAML parses the YAML of docs/containers.md and the DaemonSet. The DaemonSet's arguments must be options
// of watch.
func TestDocumentedYAML(t *testing.T) {
	page, err := os.ReadFile("../docs/containers.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(blocks) == 0 {
		t.Error("docs/containers.md has no YAML")
	}
	for _, b := range blocks {
		var object map[string]any
		if err := yaml.Unmarshal(b[1], &object); err != nil {
			t.Errorf("%v in\n%s", err, b[1])
		}
	}
	text, err := os.ReadFile("../contrib/fullpipe-watch.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Kind string
		Spec struct {
			Template struct {
				Spec struct {
					Containers []struct{ Args []string }
				}
			}
		}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&set); err != nil || set.Kind != "DaemonSet" || len(set.Spec.Template.Spec.Containers) != 1 {
		t.Fatalf("%v: %+v", err, set)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		t.Errorf("a second document: %v", err)
	}
	help := exec.Command("go", "run", "./cmd/fullpipe", "watch", "--help")
	help.Dir = ".."
	out, err := help.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	args := set.Spec.Template.Spec.Containers[0].Args
	if args[0] != "watch" {
		t.Errorf("%q", args)
	}
	for _, arg := range args[1:] {
		name, _, _ := strings.Cut(arg, "=")
		if !regexp.MustCompile(name + `\b`).Match(out) {
			t.Errorf("watch has no option %s", name)
		}
	}
}
