package transfer

import "time"

// IntervalSchedule divides the time of a running test into intervals. The zero value does not divide it.
type IntervalSchedule struct {
	Every time.Duration // 0: only at the end of Omit
	// Omit is a time at the start that does not count. An interval ends with it, and Every starts again there.
	Omit time.Duration
}

// Next returns the first boundary after a moment; 0: none.
func (c IntervalSchedule) Next(after time.Duration) time.Duration {
	var from, next time.Duration
	if after >= c.Omit {
		from = c.Omit
	}
	if c.Every > 0 {
		next = from + (after-from)/c.Every*c.Every + c.Every
	}
	if after < c.Omit && (next == 0 || next > c.Omit) {
		next = c.Omit
	}
	return next
}
