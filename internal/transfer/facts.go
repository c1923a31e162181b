package transfer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// The facts of a Result, each derived here and nowhere else. Times are durations, sizes
// bytes; 0, nil or false is "not known".

// Counting is the end whose count of payload is believed: the receiver, or where it
// cannot be seen the sender, whose count is what was acknowledged; nil: neither.
func (r *Result) Counting() *End {
	if end := r.Receiver(); end != nil {
		return end
	}
	return r.Sender()
}

// Received is what the transfer delivered over all streams: what the receiver took from
// its sockets, or, where the receiver cannot be seen, what it acknowledged to the
// sender; ok is false where neither is known.
func (r *Result) Received() (span Span, ok bool) {
	end := r.Counting()
	if end == nil || len(end.Streams) == 0 {
		return Span{}, false
	}
	span = Span{First: end.Streams[0].First, Last: end.Streams[0].Last, Opening: end.Streams[0].Opening}
	for _, s := range end.Streams {
		span.Bytes += s.Bytes
		if s.First < span.First {
			span.First = s.First
			span.Opening = s.Opening
		}
		span.Last = max(span.Last, s.Last)
	}
	return span, true
}

// LeastRTT is the smallest round trip that either end saw.
func (r *Result) LeastRTT() (least time.Duration) {
	for _, end := range []*End{r.Near, r.Far} {
		if rtt := end.LeastRTT(); rtt > 0 && (least == 0 || rtt < least) {
			least = rtt
		}
	}
	return least
}

// LeastRTT is the smallest round trip that an end's connections saw: the kernel's minimum
// (tcpi_min_rtt, over net.ipv4.tcp_min_rtt_wlen), or its smoothed one where it tells no
// minimum.
func (e *End) LeastRTT() (least time.Duration) {
	if e == nil {
		return 0
	}
	for i := range e.Streams {
		for _, s := range e.Streams[i].Samples {
			rtt := s.MinRTT
			if s.Have&HaveMinRTT == 0 {
				rtt = s.RTT
			}
			if s.Have&(HaveMinRTT|HaveRTT) != 0 && rtt > 0 && (least == 0 || rtt < least) {
				least = rtt
			}
		}
	}
	return least
}

// MeanRTT is the mean of the smoothed round trips that the sender sampled.
func (r *Result) MeanRTT() time.Duration { return r.Sender().MeanRTT() }

// MeanRTT is the mean of the smoothed round trips (tcpi_rtt) over all samples of an end's
// connections.
func (e *End) MeanRTT() time.Duration {
	if e == nil {
		return 0
	}
	var sum time.Duration
	n := 0
	for i := range e.Streams {
		for _, s := range e.Streams[i].Samples {
			if s.Have&HaveRTT != 0 && s.RTT > 0 {
				sum = sum + s.RTT
				n = n + 1
			}
		}
	}
	return sum / time.Duration(max(n, 1))
}

// LoadedRTT is the smoothed round trip that an end's connections exceeded half of the time,
// from so long after each one's first byte. Samples are not evenly spaced, so time counts.
func (e *End) LoadedRTT(from time.Duration) time.Duration {
	return e.halfOfTheTime(from, func(s *Sample) time.Duration { return s.RTT })
}

// StandingRTT is the same without the round trips' usual deviation: what stands in the path stays
// in it, while acknowledgements that wait for their host come now early, now late.
func (e *End) StandingRTT(from time.Duration) time.Duration {
	return e.halfOfTheTime(from, func(s *Sample) time.Duration { return max(s.RTT-s.RTTVar, 0) })
}

// halfOfTheTime is what an end's connections exceeded half of the time.
func (e *End) halfOfTheTime(from time.Duration, of func(*Sample) time.Duration) time.Duration {
	type stay struct{ rtt, lasted time.Duration }
	var stays []stay
	var sum, passed time.Duration
	for _, s := range e.Streams {
		at := s.First + from
		for i := range s.Samples {
			sample := &s.Samples[i]
			if sample.Have&HaveRTT == 0 || sample.RTT <= 0 || sample.At <= at || sample.At > s.Last {
				continue
			}
			stays = append(stays, stay{of(sample), sample.At - at})
			sum += sample.At - at
			at = sample.At
		}
	}
	slices.SortFunc(stays, func(a, b stay) int { return cmp.Compare(a.rtt, b.rtt) })
	for _, s := range stays {
		passed += s.lasted
		if 2*passed >= sum {
			return s.rtt
		}
	}
	return 0
}

// Jitter is how far the 95th percentile of an idle connection's round trips lies above the
// least, about, from what the first stream's sender sampled while it asked so many times:
// the kernel's mean deviation (tcpi_rttvar) is 0.8 of a standard one, and 1.64 of those are
// p95. It begins with half of the first round trip and forgets a quarter of that with each.
// The lower quartile of what remains in the second half keeps one late answer out.
func (r *Result) Jitter(least time.Duration, asked int) time.Duration {
	end := r.Sender()
	if end == nil || len(end.Streams) == 0 {
		return 0
	}
	var above, deviation []float64
	samples := end.Streams[0].Samples
	for i, s := range samples {
		if s.Have&HaveRTT == 0 || s.RTT <= 0 || i < len(samples)/2 {
			continue
		}
		above = append(above, float64(s.RTT-least))
		deviation = append(deviation, float64(s.RTTVar))
	}
	if len(above) == 0 {
		return 0
	}
	slices.Sort(deviation)
	rest := deviation[len(deviation)/4] - float64(least)/2*math.Pow(0.75, float64(asked*3/4))
	return time.Duration(stats.Median(above) + 2*math.Max(rest, 0))
}

// Retransmitted is how many segments a connection sent again, by its last sample; ok is
// false where that is not known.
func (s *Stream) Retransmitted() (segments int64, ok bool) {
	n := len(s.Samples)
	if n == 0 || s.Samples[n-1].Have&HaveRetrans == 0 {
		return 0, false
	}
	return s.Samples[n-1].Retransmitted, true
}

// Marked is how many segments of all the sender's connections came marked by a queue that does
// so instead of dropping (RFC 3168), by their last samples; ok is false where that is not known.
func (r *Result) Marked() (segments int64, ok bool) {
	end := r.Sender()
	if end == nil {
		return 0, false
	}
	for i := range end.Streams {
		s := end.Streams[i].Samples
		if len(s) == 0 || s[len(s)-1].Have&HaveMarked == 0 {
			return 0, false
		}
		segments += s[len(s)-1].Marked
	}
	return segments, len(end.Streams) > 0
}

// OfferedWindow is the largest window that the first stream's sender saw in the second
// half of the transfer, when automatic sizing and clamps have settled; where it did not
// tell, the largest that the receiver says it advertised.
func (r *Result) OfferedWindow() int {
	if end := r.Sender(); end != nil && len(end.Streams) > 0 {
		s := &end.Streams[0]
		largest := int64(0)
		for _, sample := range s.Samples {
			if sample.Have&HaveSendWnd != 0 && sample.At >= (s.First+s.Last)/2 && sample.At <= s.Last {
				largest = max(largest, sample.SendWnd)
			}
		}
		if largest > 0 {
			return int(largest)
		}
	}
	if end := r.Receiver(); end != nil && len(end.Streams) > 0 {
		return end.Streams[0].ReceiveBuffer.Effective
	}
	return 0
}

// InFlight is the most that the first stream's sender had in flight.
func (r *Result) InFlight() int {
	if end := r.Sender(); end != nil && len(end.Streams) > 0 {
		return end.Streams[0].SendBuffer.Effective
	}
	return 0
}

// RetransmitRatio returns the retransmitted bytes over all bytes that the sender's connections sent. It returns false
// where a connection's retransmissions are not known.
func (r *Result) RetransmitRatio() (ratio float64, ok bool) {
	end := r.Sender()
	if end == nil || len(end.Streams) == 0 {
		return 0, false
	}
	var again, sent float64
	for i := range end.Streams {
		s := &end.Streams[i]
		segments, known := s.Retransmitted()
		if !known {
			return 0, false
		}
		last := &s.Samples[len(s.Samples)-1]
		bytes := float64(last.RetransmittedBytes)
		if bytes == 0 {
			mss := 1448
			if s.Handshake != nil && s.Handshake.MSS > 0 {
				mss = s.Handshake.MSS
			}
			bytes = float64(segments) * float64(mss)
		}
		again += bytes
		sent += max(float64(last.Sent), float64(last.Acked)+bytes)
	}
	if sent <= 0 {
		return 0, false
	}
	return min(again/sent, 1), true
}

// Lossless says that the sender is seen and retransmitted nothing.
func (r *Result) Lossless() bool {
	end := r.Sender()
	if end == nil || len(end.Streams) == 0 {
		return false
	}
	for i := range end.Streams {
		if n, ok := end.Streams[i].Retransmitted(); !ok || n > 0 {
			return false
		}
	}
	return true
}

// TimeByAcknowledgements times each stream of a sender by its acknowledgements, where
// nobody tells when the bytes arrived: from when the first could be acknowledged until the
// last one was.
func (e *End) TimeByAcknowledgements() {
	for i := range e.Streams {
		s := &e.Streams[i]
		var acked int64
		var rtt time.Duration
		for _, sample := range s.Samples {
			if sample.Have&HaveMinRTT != 0 {
				rtt = sample.MinRTT
			}
			if sample.Have&HaveAcked != 0 && sample.Acked > acked {
				acked = sample.Acked
				s.Last = max(sample.At, s.First)
			}
		}
		if s.First+rtt < s.Last {
			s.First += rtt
		}
	}
}
