package transfer

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Derived values of a Result. Times are durations, sizes bytes; 0, nil or false means that a value is not known.

// CountingEnd returns the end that counts the payload: the receiver, or the sender where the receiver cannot be
// observed. A sender counts the acknowledged bytes. It returns nil if neither was observed.
func (r *Result) CountingEnd() *End {
	if end := r.Receiver(); end != nil {
		return end
	}
	return r.Sender()
}

// Received returns the payload that all streams delivered: read by the receiver or, where the receiver cannot be
// observed, acknowledged to the sender. It returns false if neither is known.
func (r *Result) Received() (span Span, ok bool) {
	end := r.CountingEnd()
	if end == nil || len(end.Streams) == 0 {
		return Span{}, false
	}
	span = Span{First: end.Streams[0].First, Last: end.Streams[0].Last, FirstReadBytes: end.Streams[0].FirstReadBytes}
	for _, s := range end.Streams {
		span.Bytes += s.Bytes
		if s.First < span.First {
			span.First = s.First
			span.FirstReadBytes = s.FirstReadBytes
		}
		span.Last = max(span.Last, s.Last)
	}
	return span, true
}

// MinRTT returns the least round trip of both ends.
func (r *Result) MinRTT() (least time.Duration) {
	for _, end := range []*End{r.Near, r.Far} {
		if rtt := end.MinRTT(); rtt > 0 && (least == 0 || rtt < least) {
			least = rtt
		}
	}
	return least
}

// MinRTT returns the least round trip of an end's connections: tcpi_min_rtt (over net.ipv4.tcp_min_rtt_wlen), or the
// least smoothed RTT where the kernel reports no minimum.
func (e *End) MinRTT() (least time.Duration) {
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

// MeanRTT returns the mean of the sender's smoothed RTT.
func (r *Result) MeanRTT() time.Duration { return r.Sender().MeanRTT() }

// MeanRTT returns the mean of the smoothed RTT (tcpi_rtt) over all samples of an end's connections.
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

// LoadedRTT returns the time-weighted median of the smoothed RTT, beginning at from after each stream's first byte.
func (e *End) LoadedRTT(from time.Duration) time.Duration {
	return e.timeWeightedMedian(from, func(s *Sample) time.Duration { return s.RTT })
}

// LoadedRTTLessVar returns the time-weighted median of srtt - rttvar. Subtracting rttvar removes the jitter of delayed
// acknowledgements and leaves a standing queue.
func (e *End) LoadedRTTLessVar(from time.Duration) time.Duration {
	return e.timeWeightedMedian(from, func(s *Sample) time.Duration { return max(s.RTT-s.RTTVar, 0) })
}

// timeWeightedMedian returns the value that an end's connections exceeded half of the time. Samples are not evenly
// spaced, so each counts for the time since the one before.
func (e *End) timeWeightedMedian(from time.Duration, of func(*Sample) time.Duration) time.Duration {
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

// Jitter estimates the 95th percentile of an idle connection's RTT above the least one, by the samples of the first
// stream's sender during n requests. The kernel's mean deviation (tcpi_rttvar) is 0.8 of a standard deviation, and the
// 95th percentile is 1.64 of those. rttvar begins with half of the first RTT and loses a quarter of it with each sample
// (RFC 6298). The lower quartile of the second half leaves out a single late response.
func (r *Result) Jitter(minRTT time.Duration, n int) time.Duration {
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
		above = append(above, float64(s.RTT-minRTT))
		deviation = append(deviation, float64(s.RTTVar))
	}
	if len(above) == 0 {
		return 0
	}
	slices.Sort(deviation)
	rest := deviation[len(deviation)/4] - float64(minRTT)/2*math.Pow(0.75, float64(n*3/4))
	return time.Duration(stats.Median(above) + 2*math.Max(rest, 0))
}

// Retransmitted returns the number of retransmitted segments by the last sample. It returns false if that is not known.
func (s *Stream) Retransmitted() (segments int64, ok bool) {
	n := len(s.Samples)
	if n == 0 || s.Samples[n-1].Have&HaveRetrans == 0 {
		return 0, false
	}
	return s.Samples[n-1].Retransmitted, true
}

// DeliveredCE returns the number of segments of all streams that arrived with a CE mark (RFC 3168), by the sender's
// last samples. It returns false if that is not known.
func (r *Result) DeliveredCE() (segments int64, ok bool) {
	end := r.Sender()
	if end == nil {
		return 0, false
	}
	for i := range end.Streams {
		s := end.Streams[i].Samples
		if len(s) == 0 || s[len(s)-1].Have&HaveDeliveredCE == 0 {
			return 0, false
		}
		segments += s[len(s)-1].DeliveredCE
	}
	return segments, len(end.Streams) > 0
}

// OfferedWindow returns the largest receive window that the first stream's sender saw in the second half of the
// transfer, when autotuning and clamps have settled. If the sender did not report it, it returns the largest that the
// receiver advertised.
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

// MaxInFlight returns the most bytes that the first stream had in flight.
func (r *Result) MaxInFlight() int {
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
			bytes = float64(segments) * float64(s.Handshake.SegmentSize())
		}
		again += bytes
		sent += max(float64(last.Sent), float64(last.Acked)+bytes)
	}
	if sent <= 0 {
		return 0, false
	}
	return min(again/sent, 1), true
}

// Lossless reports whether the sender was observed and retransmitted nothing.
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

// TimeByAcknowledgements sets the first and last time of each of a sender's streams by its acknowledgements, for a
// receiver that does not report its own: one RTT after the first byte, and the last acknowledgement.
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
