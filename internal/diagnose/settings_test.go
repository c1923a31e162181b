package diagnose

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// TestTargets_NeedEvidenceOfTheSystem checks that settings are planned only for a system that a SYN points to.
func TestTargets_NeedEvidenceOfTheSystem(t *testing.T) {
	linux := flow.Offer{Seen: true, TTL: 57, Scale: 7, SACK: true, Timestamps: true}
	larger := linux
	larger.Scale = 10
	macOS := linux
	macOS.Scale = 6
	mixed := linux
	mixed.TTL = 128
	cut := linux
	cut.OptionsCut = true
	windows := []string{"windows-11", "server-2012"}
	for name, c := range map[string]struct {
		offer flow.Offer
		want  []string
	}{
		"Linux":                         {linux, []string{"linux"}},
		"Linux with larger buffers":     {larger, []string{"linux"}},
		"macOS":                         {macOS, nil},
		"Windows":                       {flow.Offer{Seen: true, TTL: 117, Scale: 8, SACK: true}, windows},
		"a device of TTL 255":           {flow.Offer{Seen: true, TTL: 250, Scale: 8, SACK: true}, nil},
		"Linux's options, Windows' TTL": {mixed, nil},
		"Windows without window scale":  {flow.Offer{Seen: true, TTL: 128, Scale: -1, SACK: true}, nil},
		"a capture that cuts options":   {cut, nil},
		"no handshake":                  {flow.Offer{Scale: -1}, nil},
	} {
		if got := targets(c.offer); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
