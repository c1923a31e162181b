package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

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

// TestSentence_UnknownRoundTrip has observations without the empty path's round trip, and without any.
func TestSentence_UnknownRoundTrip(t *testing.T) {
	for _, code := range []verdict.Code{verdict.CapturedFullLink, verdict.CapturedLoss, verdict.CapturedAckQueue,
		verdict.CapturedWaitsSomewhere, verdict.CapturedIdleRestart, verdict.CapturedCoarseClock,
		verdict.ArrivesThroughAQueue, verdict.ArrivesWithHoles, verdict.ArrivesUnlimited} {
		for _, values := range []verdict.Values{{"queue": 1}, {"rtt_s": 0.08},
			{"rtt_s": 0.08, "rtt_base_s": 0.04, "queue": 1}} {
			values["idle_s"] = 1
			values["grain_s"] = 1
			said := Sentence(verdict.Evidence{Code: code, Values: values})
			if strings.Contains(said, " 0 ns") || strings.Contains(said, "()") {
				t.Errorf("%s: %s", code, said)
			}
		}
	}
}

// TestSentence_FiguresRemoved counts in the singular and the plural.
func TestSentence_FiguresRemoved(t *testing.T) {
	for figures, want := range map[float64]string{
		1: "1 value was removed, because it contradicts the others",
		2: "2 values were removed, because they contradict the others",
	} {
		e := verdict.Evidence{Code: verdict.FiguresRemoved, Values: verdict.Values{"figures": figures}}
		if got := Sentence(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
