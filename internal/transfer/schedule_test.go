package transfer

import (
	"slices"
	"testing"
	"time"
)

func TestIntervalSchedule(t *testing.T) {
	const s = time.Second
	for _, tt := range []struct {
		cut  IntervalSchedule
		want []time.Duration
	}{
		{IntervalSchedule{}, nil},
		{IntervalSchedule{Every: s}, []time.Duration{s, 2 * s, 3 * s, 4 * s}},
		{IntervalSchedule{Omit: 2 * s}, []time.Duration{2 * s}},
		{IntervalSchedule{Every: 700 * time.Millisecond, Omit: s}, []time.Duration{
			700 * time.Millisecond, s, 1700 * time.Millisecond,
			2400 * time.Millisecond}},
		{IntervalSchedule{Every: 3 * s, Omit: 2 * s}, []time.Duration{2 * s, 5 * s, 8 * s, 11 * s}},
	} {
		var got []time.Duration
		for at := tt.cut.Next(0); at > 0 && len(got) < 4; at = tt.cut.Next(at) {
			got = append(got, at)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.cut, got, tt.want)
		}
	}
}
