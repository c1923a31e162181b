package model

import (
	"math"
	"time"
)

// Service is what one full segment and one acknowledgement take of a path, of which a
// window that does not fill it makes its round.
type Service struct {
	RTT          time.Duration // of the empty path, without the time on the line
	Segment, Ack time.Duration // that each takes on the line
	// HalfDuplex says that both take their turns on one line.
	HalfDuplex bool
	// DelayedAck is how long a receiver waits for a second full segment (RFC 1122 section
	// 4.2.3.2). 0 is a receiver that never lets a sender wait for that, as Linux: it also
	// acknowledges once its window would double (tcp_cleanup_rbuf).
	DelayedAck time.Duration
}

// NewService is the Service of a path of rateBps, with acknowledgements at ackBps, for
// segments of mss bytes with headers more, and overhead on the line for every packet. A
// rate of 0 takes no time.
func NewService(rtt time.Duration, rateBps, ackBps float64, mss, headers, overhead int) Service {
	return Service{RTT: rtt, Segment: onLine(mss+headers+overhead, rateBps), Ack: onLine(headers+overhead, ackBps)}
}

func onLine(bytes int, bps float64) time.Duration {
	if bps <= 0 {
		return 0
	}
	return time.Duration(math.Min(float64(bytes)*8/bps, math.MaxInt64/4e9) * float64(time.Second))
}

// Capacity is the most payload in bit/s that the line carries in segments of mss bytes,
// every second one acknowledged.
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

// Round is how long a window takes until it may be sent again, and what of it is sent: a
// sender sends whole segments, and a window is there again once its second segment has
// arrived and the acknowledgement has come back. A window of no more than two segments is
// cut in halves (tcp_bound_to_half_wnd), each of which is acknowledged; a receiver that
// waits for a second full segment lets those wait for its timer.
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
		if s.HalfDuplex { // the second half is on the line when the first one's answer comes
			round = max(round, s.RTT/2+2*segment+s.Ack)
		}
		return max(round, 2*segment), 2 * half
	}
	segments := window / mss
	switch {
	case segments%2 == 1 && s.DelayedAck > 0: // the last one waits for the first of the next pair
		return s.RTT + s.Segment + s.Ack, (segments - 1) * mss
	case s.HalfDuplex && segments <= mostInTurn:
		return s.inTurn(segments), segments * mss
	}
	return s.RTT + 2*s.Segment + s.Ack, segments * mss
}

// mostInTurn is the largest window in segments whose turns on one line are played; a
// larger one fills it.
const mostInTurn = 64

// inTurn is the round of a window on a line that segments and acknowledgements share:
// whoever comes while it is taken waits, and both wait in turn.
func (s Service) inTurn(segments int) time.Duration {
	const rounds, warm = 16, 4
	var data, acks []time.Duration // when what is to be sent came
	var acked []int                // what each acknowledgement tells of
	var pushed []bool              // it ends what the window let go
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

// Goodput is what a window lets through in bit/s, where nothing is lost.
func (s Service) Goodput(window, mss int) float64 {
	round, sent := s.Round(window, mss)
	if round <= 0 {
		return math.Inf(1)
	}
	return math.Min(float64(8*sent)/round.Seconds(), s.Capacity(mss))
}

// Window is the smallest even number of segments, in bytes, that gives a share (0 to 1) of
// the capacity when the round trip is longer by jitter; MaxWindow bounds it.
func (s Service) Window(mss int, share float64, jitter time.Duration) int {
	s.RTT += jitter
	two := 2 * mss
	if capacity := s.Capacity(mss); math.IsInf(capacity, 1) || s.Goodput(two, mss) >= share*capacity {
		return two
	}
	round, _ := s.Round(2*two, mss)
	return Window(share*s.Capacity(mss)/8*round.Seconds(), mss)
}
