package text

import "testing"

func TestFigures_LoadedRoundTrip(t *testing.T) {
	for want, f := range map[string]figures{
		"round trip 80 ms":                   {"rtt_s": 0.08},
		"round trip 80 ms, 40 ms when empty": {"rtt_s": 0.08, "rtt_base_s": 0.04},
	} {
		if got := f.loaded(); got != want {
			t.Errorf("loaded() = %q, want %q", got, want)
		}
	}
}
