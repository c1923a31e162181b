package capture

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

func TestOrderNotes_LeaveOutZeros(t *testing.T) {
	for _, c := range []struct {
		order flow.Order
		want  string
	}{
		{flow.Order{Late: 2, LateMost: 2_000_000},
			"2 records were behind later ones in the file, by up to 2 ms, and were sorted by their times"},
		{flow.Order{Late: 2}, "2 records were behind later ones in the file and were sorted by their times"},
		{flow.Order{Steps: 1, StepMost: -3_000_000_000},
			"the capturing host's clock was set 1 times, by up to 3 s back; times run on as if it had not been"},
		{flow.Order{Steps: 1}, "the capturing host's clock was set 1 times; times run on as if it had not been"},
	} {
		if got := orderNotes(&c.order); len(got) != 1 || got[0] != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
