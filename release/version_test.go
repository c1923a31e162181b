package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestVersionOfADescription(t *testing.T) {
	v := version{commit: "0123456789abcdef0123", at: time.Date(2026, 11, 22, 10, 20, 30, 0, time.UTC)}
	for text, want := range map[string]string{
		"v1.2.3":                       "v1.2.3",
		"v1.2.3-rc.1":                  "v1.2.3-rc.1",
		"v1.2.3-14-g0123456789ab":      "v1.2.4-dev.14.g0123456789ab",
		"v1.3.0-rc.1-2-g0123456789ab":  "v1.3.0-dev.2.g0123456789ab",
		"0123456789ab":                 "v0.0.0-dev.20261122102030.g0123456789ab",
		"vendor-is-no-version-3-gabcd": "v0.0.0-dev.20261122102030.g0123456789ab",
	} {
		if got := fromDescription(text, v); got != want || !released.MatchString(got) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// commit makes a repository of a directory's files, always the same one.
func commit(t *testing.T, dir string, tags ...string) {
	t.Helper()
	commands := [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "-m", "all", "--allow-empty"}}
	for _, tag := range tags {
		commands = append(commands, []string{"tag", tag})
	}
	for _, args := range commands {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.net",
			"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.net", "GIT_AUTHOR_DATE=1767225600 +0000",
			"GIT_COMMITTER_DATE=1767225600 +0000")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
}

func TestVersionOfATree(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	commit(t, dir)
	v, err := describe(t.Context(), dir, "")
	if err != nil || !strings.HasPrefix(v.tag, "v0.0.0-dev.20260101000000.g") || v.at.Unix() != 1767225600 {
		t.Errorf("%+v, %v", v, err)
	}
	commit(t, dir, "v2.0.0", "not-a-version")
	if v, err = describe(t.Context(), dir, ""); err != nil || v.tag != "v2.0.0" || v.number() != "2.0.0" || len(v.commit) != 40 {
		t.Errorf("%+v, %v", v, err)
	}
	if _, err := describe(t.Context(), dir, "2.0"); err == nil {
		t.Error("2.0 was taken for a version")
	}
}
