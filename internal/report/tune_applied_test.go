package report

import (
	"errors"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/tune"
)

func TestTuneApplied_WarnsOfOldWindows(t *testing.T) {
	wmem := host.Did{Kind: host.Sysctl, Name: "net.ipv4.tcp_wmem", Outcome: host.Changed}
	control := host.Did{Kind: host.Sysctl, Name: "net.ipv4.tcp_congestion_control", Outcome: host.Changed}
	for _, tt := range []struct {
		name    string
		applied tune.Applied
		scope   string
		want    []string
	}{
		{"kept", tune.Applied{Kept: true, Changes: []host.Did{wmem}}, "this host, until the next restart",
			[]string{text.OldWindows}},
		{"kept after a restart too", tune.Applied{Kept: true, Lasting: true, Changes: []host.Did{wmem}},
			"this host, after a restart too", []string{text.OldWindows}},
		{"cannot last", tune.Applied{Kept: true, NotLasting: errors.New("read-only"), Changes: []host.Did{control}},
			"this host, until the next restart", []string{"it is lost at the next restart: read-only"}},
		{"taken back", tune.Applied{Changes: []host.Did{wmem}}, "this host, until the next restart", nil},
		{"the far host's", tune.Applied{Kept: true, Far: []host.Did{wmem}}, "this host, until the next restart",
			[]string{text.OldWindows}},
	} {
		got := TuneApplied(&tt.applied, true)
		if got.Scope != tt.scope || !slices.Equal(got.Warnings, tt.want) {
			t.Errorf("%s: %q, %q", tt.name, got.Scope, got.Warnings)
		}
	}
}
