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

// Bps is the goodput in bit/s, 0 for a span without length.
func (s Span) Bps() float64 {
	if s.Last <= s.First {
		return 0
	}
	return float64(s.Bytes-s.Opening) * 8 / s.Duration().Seconds()
}

// Received is what the transfer delivered over all streams: what the receiver took from
// its sockets, or, where the receiver cannot be seen, what it acknowledged to the
// sender; ok is false where neither is known.
func (r *Result) Received() (span Span, ok bool) {
	end := r.Receiver()
	if end == nil {
		end = r.Sender()
	}
	if end == nil || len(end.Streams) == 0 {
		return Span{}, false
	}
	span = Span{First: end.Streams[0].First, Last: end.Streams[0].Last, Opening: end.Streams[0].Opening}
	for _, s := range end.Streams {
		span.Bytes += s.Bytes
		if s.First < span.First {
			span.First, span.Opening = s.First, s.Opening
		}
		span.Last = max(span.Last, s.Last)
	}
	return span, true
}
