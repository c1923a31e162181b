package verdict

import (
	"slices"
	"testing"
)

// Each subtype belongs to one limiter.
func TestEverySubtypeHasItsLimiter(t *testing.T) {
	var all []string
	for _, name := range Names() {
		all = append(all, Subtypes(name)...)
	}
	for _, subtype := range []string{Unscaled, ScaleZero, AutotuneCeiling, AutotuneGrowing,
		AutotuneOff, Fixed, ScaleMismatch, NoUpdates, Policer, Reordering, LostSYNs, PerFlow,
		Shared, Oversized, AckTimer, IdleRestart, RequestResponse, ProgramWindow, Marked,
		LowSsthresh, Damaged, ReceiverDrops} {
		at := slices.Index(all, subtype)
		if at < 0 {
			t.Fatalf("%s is no limiter's", subtype)
		}
		all = slices.Delete(all, at, at+1)
	}
	if len(all) > 0 {
		t.Errorf("%v are defined twice, or are not in this test", all)
	}
}
