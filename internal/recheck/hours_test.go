package recheck

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func zone(t *testing.T, name string) *time.Location {
	t.Helper()
	z := must.Get(time.LoadLocation(name))(t)
	return z
}

func hours(t *testing.T, text, name string) Hours {
	t.Helper()
	h := must.Get(ParseHours(text, zone(t, name)))(t)
	return h
}

func TestParseHours(t *testing.T) {
	for text, good := range map[string]bool{"": true, "08:00-18:00": true, "22:00-06:00": true,
		"22:00-24:00, 00:00-05:30": true, "23:45-22:45": true,
		"8-18": false, "08:00": false, "25:00-26:00": false, "08:00-08:00": false, "00:00-23:30": false,
		"a-b": false, "23:30-23:00": false, "00:00-12:00,12:00-24:00": false} {
		if _, err := ParseHours(text, time.UTC); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestQuietOnDaysOfSummerTime: in Berlin the clock goes from 2 to 3 on 2026-03-29 at 1:00 UTC
// and from 3 to 2 on 2026-10-25 at 1:00 UTC.
func TestQuietOnDaysOfSummerTime(t *testing.T) {
	for _, c := range []struct {
		quiet, at string
		is        bool
	}{
		{"02:00-03:00", "2026-03-28T01:30:00Z", true}, // 2:30 on the day before
		{"02:00-03:00", "2026-03-29T00:59:00Z", false},
		{"02:00-03:00", "2026-03-29T01:00:00Z", false}, // 3:00: the quiet hour is not there
		{"02:00-03:00", "2026-10-25T00:30:00Z", true},  // 2:30, the first time
		{"02:00-03:00", "2026-10-25T01:30:00Z", true},  // and the second
		{"02:00-03:00", "2026-10-25T02:00:00Z", false},
		{"08:00-18:00", "2026-03-29T06:00:00Z", true}, // 8:00 in summer
		{"08:00-18:00", "2026-03-28T06:30:00Z", false},
		{"22:00-06:00", "2026-03-29T03:59:00Z", true},
		{"22:00-06:00", "2026-03-29T04:00:00Z", false},
	} {
		at := must.Get(time.Parse(time.RFC3339, c.at))(t)
		if got := hours(t, c.quiet, "Europe/Berlin").Quiet(at); got != c.is {
			t.Errorf("%s at %s: %v", c.quiet, c.at, got)
		}
	}
}

func TestDaysOfSummerTime(t *testing.T) {
	h := hours(t, "", "Europe/Berlin")
	for begin, length := range map[string]time.Duration{"2026-03-28T23:00:00Z": 23 * time.Hour,
		"2026-10-24T22:00:00Z": 25 * time.Hour, "2026-07-01T22:00:00Z": 24 * time.Hour} {
		at := must.Get(time.Parse(time.RFC3339, begin))(t)
		for _, in := range []time.Duration{0, time.Hour, length - 1} {
			if day := h.Day(at.Add(in)); !day.Equal(at) {
				t.Errorf("%v is of the day from %v", at.Add(in), day)
			}
		}
		if day := h.Day(at.Add(length)); !day.Equal(at.Add(length)) {
			t.Errorf("the day after %v begins at %v", at, day)
		}
	}
	// A zone whose clock left midnight out: the day never begins after its times.
	cairo := hours(t, "", "Africa/Cairo")
	for at := time.Date(2026, 4, 22, 0, 0, 0, 0, time.UTC); at.Day() < 27; at = at.Add(17 * time.Minute) {
		if day := cairo.Day(at); day.After(at) || at.Sub(day) > 25*time.Hour {
			t.Errorf("%v is of the day from %v", at, day)
		}
	}
}

// TestVisitsAreAtOpenTimes over weeks with a change of the clock: none in quiet hours or so late
// that a suspicion's re-tests would be, and as many an open hour as without them.
func TestVisitsAreAtOpenTimes(t *testing.T) {
	const days = 24
	for _, text := range []string{"", "08:00-18:00", "22:00-06:00", "02:00-03:00,12:00-13:00", "23:45-22:40"} {
		for zone, month := range map[string]time.Month{"Europe/Berlin": 3, "America/St_Johns": 10, "Australia/Lord_Howe": 3} {
			s := Schedule{Every: time.Hour, Quiet: hours(t, text, zone)}
			rng := rand.New(rand.NewPCG(1, 2))
			begin := time.Date(2026, month, 15, 12, 0, 0, 0, time.UTC)
			at, end, visits := begin, begin.AddDate(0, 0, days), 0
			for {
				next := s.Next(at, rng.ExpFloat64())
				if !next.After(at) {
					t.Fatalf("%s: %v after %v", text, next, at)
				}
				if at = next; at.After(end) {
					break
				}
				visits++
				if !s.Quiet.open(at) || s.Quiet.Quiet(at.Add(Room-time.Minute)) {
					t.Fatalf("%s in %s: a visit at %v", text, zone, at)
				}
			}
			open := 0
			for m := range days * 24 * 2 {
				if s.Quiet.open(begin.Add(time.Duration(m) * 30 * time.Minute)) {
					open++
				}
			}
			if n := float64(visits) * 2 / float64(open); n < 0.8 || n > 1.4 {
				t.Errorf("%q in %s: %d visits in %d open half hours", text, zone, visits, open)
			}
		}
	}
}

// open reports whether a visit may begin then: it is not quiet, and will not be for Room.
func (h Hours) open(at time.Time) bool {
	return len(h.spans) == 0 || !h.Quiet(at) && h.untilFlip(at, true).Sub(at) >= Room
}

func FuzzParseHours(f *testing.F) {
	f.Add("22:00-06:00,12:00-13:00", int64(1_774_746_000), uint16(90))
	f.Fuzz(func(t *testing.T, text string, unix int64, minutes uint16) {
		h, err := ParseHours(text, time.UTC)
		if err != nil {
			return
		}
		at := time.Unix(unix%4e9, 0)
		got := h.Advance(at, time.Duration(minutes)*time.Minute)
		if got.Before(at) || !h.open(got) {
			t.Errorf("%q: %v after %v", text, got, at)
		}
	})
}
