package model

import (
	"math"
	"time"
)

// Service describes the line and ACK timing of a path for windows below its BDP.
type Service struct {
	RTT          time.Duration // of the empty path, without serialization
	Segment, Ack time.Duration // serialization time
	// HalfDuplex means that both directions share one line.
	HalfDuplex bool
	// DelayedAck is how long a receiver waits for a second full segment (RFC 1122 section 4.2.3.2). 0: it never makes
	// the sender wait, as Linux, which also acknowledges when its window would double (tcp_cleanup_rbuf).
	DelayedAck time.Duration
}

// NewService returns the Service of a path of rateBps, with ACKs at ackBps, for segments of mss bytes plus headers,
// and overhead bytes a packet. A rate of 0 takes no time.
func NewService(rtt time.Duration, rateBps, ackBps float64, mss, headers, overhead int) Service {
	return Service{RTT: rtt, Segment: onLine(mss+headers+overhead, rateBps), Ack: onLine(headers+overhead, ackBps)}
}

func onLine(bytes int, bps float64) time.Duration {
	if bps <= 0 {
		return 0
	}
	return time.Duration(math.Min(float64(bytes)*8/bps, math.MaxInt64/4e9) * float64(time.Second))
}

// Capacity returns the largest goodput in bit/s of the line with segments of mss bytes and an ACK for every second
// one.
func (s Service) Capacity(mss int) float64 {
	segment := s.Segment
	if s.HalfDuplex {
		segment += s.Ack / 2
	}
	if segment <= 0 {
		return math.Inf(1)
	}
	return float64(8*mss) / segment.Seconds()
}

// Round returns the time until the sender can use the window again, and the bytes sent in that time. The window is
// rounded down to whole segments. The ACK of the second segment opens it again. The sender halves a window of at most
// two segments (tcp_bound_to_half_wnd). Each half gets its own ACK, which the delayed ACK timer may hold back.
func (s Service) Round(window, mss int) (round time.Duration, sent int) {
	if window <= 2*mss {
		half := max(min(mss, window/2), 1)
		segment := s.Segment * time.Duration(half) / time.Duration(mss)
		round = s.RTT + segment + s.Ack
		switch {
		case s.DelayedAck > 0 && window < 2*mss:
			round += segment + s.DelayedAck
		case s.DelayedAck > 0:
			round += segment
		}
		if s.HalfDuplex { // the second half is on the line when the first ACK arrives
			round = max(round, s.RTT/2+2*segment+s.Ack)
		}
		return max(round, 2*segment), 2 * half
	}
	segments := window / mss
	switch {
	case segments%2 == 1 && s.DelayedAck > 0: // the last one waits for the first of the next pair
		return s.RTT + s.Segment + s.Ack, (segments - 1) * mss
	case s.HalfDuplex && segments <= maxInTurn:
		return s.inTurn(segments), segments * mss
	}
	return s.RTT + 2*s.Segment + s.Ack, segments * mss
}

// maxInTurn is the largest window, in segments, that is simulated on a shared line; a larger one fills it.
const maxInTurn = 64

// inTurn returns the round of a window on a line that segments and ACKs share, in order of arrival.
func (s Service) inTurn(segments int) time.Duration {
	const rounds, warm = 16, 4
	var data, acks []time.Duration // arrival times in the queue
	var acked []int                // segments that each ACK covers
	var pushed []bool              // last segment of a burst
	var sent, una, got, waiting int
	send := func(at time.Duration) {
		for ; sent < una+segments; sent++ {
			data = append(data, at)
			pushed = append(pushed, sent+1 == una+segments)
		}
	}
	send(0)
	var free, begin time.Duration
	for turn := 0; ; {
		next := max(free, min(first(data), first(acks)))
		if first(acks) <= next && (turn == 1 || first(data) > next) {
			free = next + s.Ack
			turn = 0
			una = acked[0]
			acks = acks[1:]
			acked = acked[1:]
			send(free + s.RTT/2)
			continue
		}
		free = next + s.Segment
		turn = 1
		got = got + 1
		waiting = waiting + 1
		if waiting == 2 || pushed[0] {
			acks = append(acks, free+s.RTT/2)
			acked = append(acked, got)
			waiting = 0
		}
		data = data[1:]
		pushed = pushed[1:]
		switch got {
		case warm * segments:
			begin = free
		case (warm + rounds) * segments:
			return (free - begin) / rounds
		}
	}
}

func first(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return math.MaxInt64
	}
	return all[0]
}

// Goodput returns a window's goodput in bit/s without loss.
func (s Service) Goodput(window, mss int) float64 {
	round, sent := s.Round(window, mss)
	if round <= 0 {
		return math.Inf(1)
	}
	return math.Min(float64(8*sent)/round.Seconds(), s.Capacity(mss))
}

// Rate returns the goodput in bit/s of bytes in flight that need not be whole segments.
func (s Service) Rate(bytes int) float64 { return Rate(bytes, s.RTT+s.Segment+s.Ack) }

// Window returns the smallest even number of segments, in bytes, that reaches a share (0 to 1) of the capacity when
// the RTT is longer by jitter. The maximum is MaxWindow.
func (s Service) Window(mss int, share float64, jitter time.Duration) int {
	s.RTT += jitter
	two := 2 * mss
	if capacity := s.Capacity(mss); math.IsInf(capacity, 1) || s.Goodput(two, mss) >= share*capacity {
		return two
	}
	round, _ := s.Round(2*two, mss)
	return Window(share*s.Capacity(mss)/8*round.Seconds(), mss)
}
