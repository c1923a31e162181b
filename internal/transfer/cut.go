package transfer

import "time"

// Cut says where the time of a running test is cut into intervals. The zero value cuts
// nowhere.
type Cut struct {
	Every time.Duration // 0: only where Omit ends
	// Omit is a time at the start that does not count. Its end is a cut, and Every begins
	// there again.
	Omit time.Duration
}

// Next is the first cut after a moment; 0: there is none.
func (c Cut) Next(after time.Duration) time.Duration {
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
