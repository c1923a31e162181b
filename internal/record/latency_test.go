package record

import "testing"

func TestLatency_Grade(t *testing.T) {
	at := func(s float64) *Latency { return &Latency{AddedS: &s, LoadedTrimmedMeanS: &s} }
	for _, c := range []struct {
		name    string
		latency *Latency
		grade   string
		rpm     int
	}{
		{"nothing measured", nil, "", 0},
		{"too few under load", &Latency{IdleS: 0.02}, "", 0},
		{"programs waited for a core", &Latency{AddedS: at(0.2).AddedS, LoadedTrimmedMeanS: at(0.2).AddedS, NoCore: true}, "",
			0},
		{"no added time", at(0), "A", 0},
		{"RFC 9097's lower threshold", at(0.03), "A", 2000},
		{"RFC 9097's upper threshold", at(0.09), "B", 667},
		{"G.114's first limit", at(0.15), "C", 400},
		{"G.114's second limit", at(0.4), "D", 150},
		{"more", at(0.5), "F", 120},
	} {
		if grade, rpm := c.latency.Grade(), c.latency.RPM(); grade != c.grade || rpm != c.rpm {
			t.Errorf("%s: %q and %d, not %q and %d", c.name, grade, rpm, c.grade, c.rpm)
		}
	}
}
