package recheck

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestSchedule_Mean checks that the mean of bounded exponential gaps is the interval that was asked for.
func TestSchedule_Mean(t *testing.T) {
	const draws = 200_000
	s := Schedule{Every: time.Hour}
	rng := rand.New(rand.NewPCG(1, 1))
	at := time.Unix(0, 0)
	sum := 0.0
	for range draws {
		sum += s.Next(at, rng.ExpFloat64()).Sub(at).Hours()
	}
	if mean := sum / draws; mean < 0.99 || mean > 1.01 {
		t.Errorf("a mean of %.3f h, want 1 h", mean)
	}
}

func TestSchedule_Bounds(t *testing.T) {
	s := Schedule{Every: 6 * time.Hour}
	at := time.Unix(0, 0)
	for drawn, want := range map[float64]time.Duration{0: 36 * time.Minute, 9: 15 * time.Hour} {
		if got := s.Next(at, drawn).Sub(at); got != want {
			t.Errorf("%v: %v, not %v", drawn, got, want)
		}
	}
}

func TestBudget(t *testing.T) {
	one := Cost{Bytes: 10, Time: time.Second}
	for _, c := range []struct {
		budget Budget
		spent  Cost
		retest bool
		want   Skip
	}{
		{Budget{}, Cost{1 << 60, time.Hour}, false, ""},
		{Budget{Bytes: 80}, Cost{}, false, ""},
		{Budget{Bytes: 80}, Cost{Bytes: 1}, false, BytesBudget}, // a suspicion could not be looked into
		{Budget{Bytes: 80}, Cost{Bytes: 70}, true, ""},
		{Budget{Bytes: 80}, Cost{Bytes: 71}, true, BytesBudget},
		{Budget{Time: 8 * time.Second}, Cost{Time: 1}, false, TimeBudget},
		{Budget{Time: 8 * time.Second}, Cost{Time: 7 * time.Second}, true, ""},
	} {
		if got := c.budget.Allows(c.spent, one, c.retest); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
	if (Budget{Bytes: 5}).Left(Cost{Bytes: 9}) != 1 || (Budget{}).Left(Cost{Bytes: 9}) != 0 {
		t.Error("the remaining bytes are wrong")
	}
}
