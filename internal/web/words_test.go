package web

import (
	"testing"
	"time"
)

func TestShortVersion(t *testing.T) {
	for version, want := range map[string]string{
		"v1.4.0": "v1.4.0", "v1.4.0 linux/amd64": "v1.4.0", "(devel)": "(devel)",
		"v0.0.0-20261129105000-87afc46946f0":                   "87afc46946f0",
		"v0.0.0-20261129105000-87afc46946f0+dirty linux/amd64": "87afc46946f0",
	} {
		if got := shortVersion(version); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

func TestDueText(t *testing.T) {
	for left, want := range map[time.Duration]string{
		-time.Minute: "is due", 0: "is due", 30 * time.Second: "within 1 min", 119 * time.Minute: "within 120 min",
		3 * time.Hour: "within 4 h",
	} {
		if got := dueText(left); got != want {
			t.Errorf("%v: %q, want %q", left, got, want)
		}
	}
}
