package transfer

import "time"

// Span is an amount of payload and the time from its first to its last byte.
type Span struct {
	Bytes          int64
	FirstReadBytes int64         // the part of Bytes that had arrived by First
	First, Last    time.Duration // on the clock of the counting end
}

// Duration returns the time from the first to the last byte.
func (s Span) Duration() time.Duration { return s.Last - s.First }

// HasRate reports whether the span has a goodput: it is longer than an instant, or empty.
func (s Span) HasRate() bool { return s.Bytes == 0 || s.Last > s.First }

// Bps returns the goodput in bit/s, 0 for a span without length.
func (s Span) Bps() float64 {
	if s.Last <= s.First {
		return 0
	}
	return float64(s.Bytes-s.FirstReadBytes) * 8 / s.Duration().Seconds()
}
