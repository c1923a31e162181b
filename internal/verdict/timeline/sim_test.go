package timeline

import (
	"container/heap"
	"math"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// transfer is a simulated transfer. Its sender doubles its congestion window each round trip until a loss. A line
// delivers the data.
type transfer struct {
	drops
	bytes int
	bps   float64 // of the line, headers included
	rtt   int64   // of the empty path
	loop  int64   // the part of rtt between the sender and the tap
	// tapBeforeLine puts the tap between the sender and the line.
	tapBeforeLine bool
	timestamps    bool
	delay         func() int64 // additional delay of a segment after the line; nil: none

	// The receiver.
	window     int // receive buffer, bytes
	scale      int // of the window
	read       int // the program reads as many bytes each readEvery; 0: all at once
	readEvery  int64
	ackEvery   int // segments to an acknowledgement
	delayedAck int64

	// The sender.
	sendBuffer int     // 0: unlimited
	wakes      bool    // the program waits until a third of the send buffer is free
	block      int     // the program writes a block when all data is acknowledged; 0: it does not wait
	write      int     // the program writes as many bytes each writeEvery; 0: it always has data
	writeEvery int64   // nanoseconds
	pacing     float64 // bit/s of pairs of segments; 0: not paced
}

// mss returns the payload of a full segment, bytes.
func (x *transfer) mss() int {
	if x.timestamps {
		return 1448
	}
	return 1460
}

type simEvent struct {
	at    int64
	order int
	do    func()
}

type simEvents []simEvent

func (e simEvents) Len() int { return len(e) }
func (e simEvents) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e simEvents) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *simEvents) Push(x any)   { *e = append(*e, x.(simEvent)) }
func (e *simEvents) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// sim is a transfer while it runs. Positions are payload bytes from the first one.
type sim struct {
	transfer
	tape *tape
	reno
	received
	events simEvents
	now    int64
	order  int

	written, sent, acked, cwnd, edge int // the sender's
	lineFree, left, arrives, paced   int64
	ranOut                           int // how often all that was written had been sent
	inPair                           bool
	echo                             uint32
	arrived, unread, unacked, right  int // the receiver's
	recent                           uint32
	lastPos                          int // of the last segment that arrived
	delayedAckTimer                  int
	done                             int64 // when the last byte arrived
}

// play returns the verdict on the transfer as the tap saw it, and how often all written data was sent before the end.
func (x transfer) play(t *testing.T) (g Diagnosis, d *flow.Direction, ranOut int) {
	t.Helper()
	s := x.run(t)
	g, d = s.tape.judge(t)
	return g, d, s.ranOut
}

// run plays the transfer until its last byte is acknowledged.
func (x transfer) run(t *testing.T) *sim {
	t.Helper()
	s := &sim{transfer: x, tape: newTape(x.rtt, x.loop), edge: x.window, right: x.window, echo: 7000}
	for i := range s.tape.all {
		one := &s.tape.all[i]
		if one.Options&flow.HasScale != 0 {
			one.Scale = uint8(x.scale)
		}
		if one.Flags&(flow.SYN|flow.ACK) == flow.SYN|flow.ACK {
			one.Window = uint16(min(x.window, int(one.Window)))
		}
	}
	if x.timestamps {
		for i, stamps := range [][2]uint32{{1, 0}, {7000, 1}, {1 + uint32(x.rtt/ms), 7000}} {
			s.stamp(i, stamps[0], stamps[1])
			if i < 2 {
				s.tape.all[i].Options |= flow.HasScale
			}
		}
	}
	s.cwnd = 10 * s.mss()
	s.reno.ssthresh = s.drops.ssthresh * s.mss()
	s.filled = s.bucket
	s.at(2*x.rtt, s.begin)
	const maxEvents = 1_000_000
	for n := 0; n < maxEvents && s.acked < s.bytes && len(s.events) > 0; n++ {
		e := heap.Pop(&s.events).(simEvent)
		s.now = e.at
		e.do()
	}
	if s.acked < s.bytes {
		t.Fatalf("%d of %d bytes after %d events: %+v", s.acked, s.bytes, maxEvents, x)
	}
	return s
}

func (s *sim) at(when int64, do func()) {
	s.order++
	heap.Push(&s.events, simEvent{when, s.order, do})
}

// stamp adds the timestamps option to the segment at an index of the tape.
func (s *sim) stamp(i int, value, echo uint32) {
	one := &s.tape.all[i]
	one.Options |= flow.HasTimestamps
	one.TSVal = value
	one.TSEcr = echo
}

func (s *sim) begin() {
	switch {
	case s.write > 0:
		s.writes()
	case s.block == 0 && !s.wakes:
		s.written = s.bytes
	}
	if s.read > 0 {
		s.at(s.now+s.readEvery, s.reads)
	}
	s.send()
}

// writes is the sending program with a clock of its own.
func (s *sim) writes() {
	s.written = min(s.written+s.write, s.bytes)
	s.send()
	if s.written < s.bytes {
		s.at(s.now+s.writeEvery, s.writes)
	}
}

// reads is the receiving program.
func (s *sim) reads() {
	before := s.right - s.arrived
	s.unread -= min(s.unread, s.read)
	after := s.window - s.unread
	if before < 2*s.mss() && after >= 2*s.mss() || after-before > s.window/2 {
		s.acknowledge()
	}
	s.at(s.now+s.readEvery, s.reads)
}

// limit returns the position up to which the sender may send.
func (s *sim) limit() int {
	limit := min(s.written, s.edge, s.sent+s.cwnd-s.pipe())
	if s.sendBuffer > 0 {
		limit = min(limit, s.acked+s.sendBuffer)
	}
	return limit
}

func (s *sim) send() {
	s.resend(s)
	if s.block > 0 && s.acked == s.sent {
		s.written = min(s.written+s.block, s.bytes)
	}
	if s.wakes && 3*(s.written-s.acked) <= 2*s.sendBuffer {
		s.written = min(s.acked+s.sendBuffer, s.bytes)
	}
	for s.sent < s.written {
		length := min(s.mss(), s.written-s.sent)
		limit := s.limit()
		partial := length < s.mss() && s.wakes && s.written < s.bytes
		if s.sent > s.acked && (s.sent+length > limit || partial) || s.sent+length > s.edge {
			return
		}
		if s.pacing > 0 && !s.inPair && s.paced > s.now {
			return
		}
		s.transmit(length)
	}
}

func (s *sim) transmit(length int) {
	pos := s.sent
	s.sent += length
	if s.sent == s.written && s.written < s.bytes {
		s.ranOut++
	}
	if s.pacing > 0 {
		s.paced = max(s.paced, s.now) + int64(s.size(length)*8e9/s.pacing)
		s.inPair = !s.inPair
		s.at(s.paced, s.send)
	}
	if len(s.flights) == 0 {
		s.arm(s)
	}
	s.flights = append(s.flights, flight{pos: pos, length: length})
	s.put(pos, length)
}

// size returns the length of a packet.
func (s *sim) size(length int) float64 { return float64(length + 40 + 1460 - s.mss()) }

// put sends a segment.
func (s *sim) put(pos, length int) {
	s.left = max(s.left, s.now) + 2000
	seen := s.left
	dropped := s.drop(s.left, s.size(length))
	if !dropped {
		s.lineFree = max(s.lineFree, s.left) + int64(s.size(length)*8e9/s.bps)
		s.queueEnds = append(s.queueEnds, s.lineFree)
		s.arrives = max(s.arrives, s.lineFree+s.extra())
		if !s.tapBeforeLine {
			seen = s.arrives
		}
	}
	value := 1 + uint32(s.now/ms)
	if !dropped || s.tapBeforeLine {
		var flags flow.Flags
		if pos+length == s.written {
			flags = flow.PSH
		}
		s.tape.data(seen+s.loop/2, pos, length, flags)
		if s.timestamps {
			s.stamp(len(s.tape.all)-1, value, s.echo)
		}
	}
	if !dropped {
		s.at(s.arrives+s.rtt/2, func() { s.arrive(pos, length, value) })
	}
}

func (s *sim) extra() int64 {
	if s.delay == nil {
		return 0
	}
	return s.delay()
}

func (s *sim) arrive(pos, length int, value uint32) {
	upTo := s.add(s.arrived, pos, length)
	came := upTo - s.arrived
	s.arrived = upTo
	if s.arrived == s.bytes && came > 0 {
		s.done = s.now
	}
	if s.read > 0 {
		s.unread += came
	}
	if s.unacked == 0 || came == 0 {
		s.recent = value
	}
	if came == 0 && s.noDupACKs {
		return
	}
	s.lastPos = pos
	s.unacked++
	if s.unacked >= s.ackEvery || came == 0 || came > length || len(s.blocks) > 0 {
		s.acknowledge()
		return
	}
	if s.unacked == 1 {
		s.delayedAckTimer++
		mine := s.delayedAckTimer
		s.at(s.now+s.delayedAck, func() {
			if mine == s.delayedAckTimer && s.unacked > 0 {
				s.acknowledge()
			}
		})
	}
}

func (s *sim) acknowledge() {
	s.unacked = 0
	s.delayedAckTimer++
	window := max(s.window-s.unread, s.right-s.arrived)
	if s.unread > 0 && window < 2*s.mss() && window < s.window/2 {
		window = max(s.right-s.arrived, 0)
	}
	window = window >> s.scale
	pos := s.arrived
	s.right = pos + window<<s.scale
	value := 7000 + uint32(s.now/ms)
	s.tape.ack(s.now+s.rtt/2-s.loop/2, pos, 0)
	one := &s.tape.all[len(s.tape.all)-1]
	one.Window = uint16(min(window, math.MaxUint16))
	var reported [][2]int
	if !s.noSACK {
		reported = s.sack(one, s.lastPos)
	}
	if s.timestamps {
		s.stamp(len(s.tape.all)-1, value, s.recent)
	}
	s.at(s.now+s.rtt/2, func() {
		begins := s.acknowledged(s, pos, reported)
		if begins {
			s.reduce(s)
		} else if pos > s.acked && pos >= s.recover {
			s.grow(s, pos-s.acked)
		}
		if pos > s.acked {
			s.arm(s)
		}
		s.acked = max(s.acked, pos)
		s.edge = max(s.edge, pos+window<<s.scale)
		s.echo = value
		s.send()
	})
}
