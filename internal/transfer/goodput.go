package transfer

import "time"

// Span is a number of payload bytes and the time from the first to the last of them.
type Span struct {
	Bytes       int64
	Opening     int64         // of Bytes, those that had arrived by First
	First, Last time.Duration // on the clock of the end that counted
}

// Duration is the time from the first to the last byte.
func (s Span) Duration() time.Duration { return s.Last - s.First }

// HasRate says that the span has a goodput: something came in more than an instant, or
// nothing came.
func (s Span) HasRate() bool { return s.Bytes == 0 || s.Last > s.First }

// Bps is the goodput in bit/s, 0 for a span without length.
func (s Span) Bps() float64 {
	if s.Last <= s.First {
		return 0
	}
	return float64(s.Bytes-s.Opening) * 8 / s.Duration().Seconds()
}
