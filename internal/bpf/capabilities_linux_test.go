package bpf

import (
	"slices"
	"testing"
)

func TestMissingIn(t *testing.T) {
	for status, want := range map[string][]string{
		"CapEff:\t000001ffffffffff\n":         nil,
		"CapEff:\t0000000000200000\n":         nil, // CAP_SYS_ADMIN
		"CapEff:\t000000c000000000\n":         nil,
		"CapEff:\t0000008000000000\n":         {"CAP_PERFMON"},
		"Name:\tx\nCapEff:\t00000000a80425fb": {"CAP_BPF", "CAP_PERFMON"}, // Docker's default
		"CapEff:\tnone\n":                     nil,
		"":                                    nil,
	} {
		if got := missingIn(status); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", status, got, want)
		}
	}
}
