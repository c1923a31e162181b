// Package recheck decides when paths are tested and derives events from the results of a path: schedule, quiet hours,
// daily budgets. It has no clock and no I/O; package runner executes its decisions.
package recheck

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Hours are the times of day without tests, in the local time of a zone. The zero value is empty.
type Hours struct {
	zone  *time.Location // nil: UTC
	spans []span
}

// span is from one minute of a day until another, which may be on the next day.
type span struct{ from, to int }

// leastOpen is the minimum length of the longest interval of a day outside quiet hours: a visit takes up to Room.
const leastOpen = 60 // minutes

// Room is the minimum time from a visit to the next quiet hours. It leaves time for immediate re-tests.
const Room = 30 * time.Minute

// ParseHours reads spans as 08:00-18:00, several of them with commas between; "" is none.
func ParseHours(text string, zone *time.Location) (Hours, error) {
	h := Hours{zone: zone}
	if text == "" {
		return h, nil
	}
	for one := range strings.SplitSeq(text, ",") {
		from, to, ok := strings.Cut(strings.TrimSpace(one), "-")
		a, bad := minuteOfDay(from)
		b, badToo := minuteOfDay(to)
		if !ok || bad != nil || badToo != nil {
			return h, fmt.Errorf("%q is no span of a day", one)
		}
		if a == b {
			return h, fmt.Errorf("%q is the whole day", one)
		}
		h.spans = append(h.spans, span{a, b})
	}
	if h.longestOpen() < leastOpen {
		return h, errors.New("they leave less than an hour in a row to test in")
	}
	return h, nil
}

const minutesOfDay = 24 * 60

// minuteOfDay reads HH:MM; 24:00 is midnight too.
func minuteOfDay(text string) (int, error) {
	if text == "24:00" {
		return 0, nil
	}
	at, err := time.Parse("15:04", text)
	return at.Hour()*60 + at.Minute(), err
}

func (s span) contains(minute int) bool {
	if s.from < s.to {
		return minute >= s.from && minute < s.to
	}
	return minute >= s.from || minute < s.to
}

func (h Hours) quietMinute(minute int) bool {
	return slices.ContainsFunc(h.spans, func(s span) bool { return s.contains(minute) })
}

func (h Hours) longestOpen() (longest int) {
	open := 0
	for m := range 2 * minutesOfDay {
		open++
		if h.quietMinute(m % minutesOfDay) {
			open = 0
		}
		longest = max(longest, min(open, minutesOfDay))
	}
	return longest
}

func (h Hours) in(at time.Time) time.Time {
	if h.zone == nil {
		return at.UTC()
	}
	return at.In(h.zone)
}

// Quiet reports whether a time is in quiet hours. An hour that occurs twice when summer time ends is quiet both times.
func (h Hours) Quiet(at time.Time) bool {
	local := h.in(at)
	return h.quietMinute(local.Hour()*60 + local.Minute())
}

// Day returns the start of the day of a time, in the zone.
func (h Hours) Day(at time.Time) time.Time {
	y, m, d := h.in(at).Date()
	day := time.Date(y, m, d, 0, 0, 0, 0, h.in(at).Location())
	if day.After(at) { // the zone has no midnight that day
		return at
	}
	return day
}

// Advance returns the time at which the given open time has passed. Open time excludes quiet hours and Room before
// them: a visit may begin in it.
func (h Hours) Advance(from time.Time, open time.Duration) time.Time {
	if len(h.spans) == 0 {
		return from.Add(open)
	}
	for {
		if h.Quiet(from) {
			from = h.untilFlip(from, false)
		}
		quiet := h.untilFlip(from, true)
		room := max(quiet.Sub(from)-Room, 0)
		if open < room || open == 0 && quiet.Sub(from) >= Room {
			return from.Add(open)
		}
		open = open - room
		from = quiet
	}
}

// untilFlip returns the first minute from a time on that is quiet, or the first that is not.
func (h Hours) untilFlip(at time.Time, quiet bool) time.Time {
	if h.Quiet(at) == quiet {
		return at
	}
	const most = 4 * minutesOfDay // of spans that come every day
	at = at.Truncate(time.Minute)
	for range most {
		at = at.Add(time.Minute)
		if h.Quiet(at) == quiet {
			break
		}
	}
	return at
}
