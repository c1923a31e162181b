package verdict

import "testing"

// TestParseLimiter reads each subtype in both spellings.
func TestParseLimiter(t *testing.T) {
	for _, c := range []struct {
		word    string
		limiter Name
		subtype string
		ok      bool
	}{
		{"congestion", Congestion, "", true},
		{"congestion/policer", Congestion, Policer, true},
		{"policer", Congestion, Policer, true},
		{"receiver-window/factor-0", ReceiverWindow, ScaleZero, true},
		{"receiver-window/scale-0", ReceiverWindow, ScaleZero, true},
		{"receiver-window/stuck", ReceiverWindow, AutotuneCeiling, true},
		{"receiver-window/autotune-ceiling", ReceiverWindow, AutotuneCeiling, true},
		{"scale-0", ReceiverWindow, ScaleZero, true},
		{"stuck", ReceiverWindow, AutotuneCeiling, true},
		{"congestion/stuck", Congestion, AutotuneCeiling, false},
		{"congestion/", Congestion, "", false},
		{"stuck/", "", "", false},
		{"scale-1", "", "", false},
		{"", "", "", false},
	} {
		limiter, subtype, ok := ParseLimiter(c.word)
		if ok != c.ok || ok && (limiter != c.limiter || subtype != c.subtype) {
			t.Errorf("%q: %s, %s, %t", c.word, limiter, subtype, ok)
		}
	}
	for _, limiter := range Names() {
		for _, subtype := range Subtypes(limiter) {
			for _, word := range []string{LimiterPath(limiter, subtype), string(limiter) + "/" + subtype, Label(subtype)} {
				if l, s, ok := ParseLimiter(word); !ok || l != limiter || s != subtype {
					t.Errorf("%q: %s, %s, %t", word, l, s, ok)
				}
			}
		}
	}
}

// TestSubtypes_JSONWords expects the two words of JSON version 1 that differ from those for people.
func TestSubtypes_JSONWords(t *testing.T) {
	if ScaleZero != "factor-0" || AutotuneCeiling != "stuck" {
		t.Errorf("%s and %s: documents of version 1 have factor-0 and stuck", ScaleZero, AutotuneCeiling)
	}
	if Suffix(ScaleZero) != " (scale-0)" || Suffix(AutotuneCeiling) != " (autotune-ceiling)" || Suffix("") != "" {
		t.Error(Suffix(ScaleZero), Suffix(AutotuneCeiling))
	}
}
