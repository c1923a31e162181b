package iperf3

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Intervals divides a test into report intervals while its data moves.
type Intervals struct {
	cut       transfer.IntervalSchedule
	end       time.Duration // end of a test limited by time; 0: limited by bytes
	legs      []*leg
	completed int // intervals that Add has returned
}

// leg is the streams of one direction.
type leg struct {
	sends   bool
	streams []stream
	at      time.Duration // time of the streams' last counts
	from    time.Duration // start of the current piece
	zeroAt  time.Duration // zero of the printed clock: the end of the omitted time
	pieces  []piece
}

// stream has a stream's counts at the start of the current piece and now.
type stream struct {
	socket      int
	mtu         *int
	before, now counts
}

// counts are a stream's totals: the last sample of a TCP stream, or the datagrams of a UDP flow.
type counts struct {
	sample transfer.Sample
	flow   transfer.FlowInterval
	udp    bool
}

func (c *counts) bytes() int64 {
	if c.udp {
		return c.flow.Bytes
	}
	return c.sample.Program
}

// piece is one direction in one interval.
type piece struct {
	spans []Span
	sum   Span
}

// NewIntervals returns the Intervals of a test whose streams are open. every is the length of an interval; 0: one
// interval. server is set at the end that accepted the test.
func NewIntervals(a *iperf3.TestResult, every time.Duration, server bool) *Intervals {
	p := &a.Params
	c := &Intervals{cut: transfer.IntervalSchedule{Every: every, Omit: time.Duration(p.Omit) * time.Second}}
	if p.Num == 0 && p.Blocks == 0 {
		c.end = time.Duration(p.Omit+p.Time) * time.Second
	}
	sends := []bool{p.Reverse == server}
	if p.Both {
		sends = append(sends, !sends[0])
	}
	n := max(p.Streams, 1)
	for i, sends := range sends {
		l := &leg{sends: sends}
		for k := range n {
			s := stream{socket: socketOf(i*n + k)}
			if at := i*n + k; at < len(a.Handshakes) && a.Handshakes[at] != nil {
				s.mtu = &a.Handshakes[at].PathMTU
			}
			l.streams = append(l.streams, s)
		}
		c.legs = append(c.legs, l)
	}
	return c
}

// Add adds the moved data and returns the intervals that it completes.
func (c *Intervals) Add(i transfer.Interval) []Interval {
	for _, l := range c.legs {
		if l.sends == (i.Direction == transfer.Up) {
			l.add(i)
			if next := c.cut.Next(l.from); next > 0 && l.at >= next && (c.end == 0 || next < c.end) {
				l.endPiece(c.cut.Omit, l.at)
			}
		}
	}
	from := c.completed
	for c.hasAll(c.completed) {
		c.completed++
	}
	pieces := make([][]piece, len(c.legs))
	for i, l := range c.legs {
		pieces[i] = l.pieces[from:c.completed]
	}
	return join(pieces)
}

// Completed returns the number of intervals that Add has returned. They are the first of All.
func (c *Intervals) Completed() int { return c.completed }

// hasAll reports whether all directions have their nth piece.
func (c *Intervals) hasAll(n int) bool {
	for _, l := range c.legs {
		if n >= len(l.pieces) {
			return false
		}
	}
	return true
}

// All returns all intervals, with the remainder after the last complete one as it was at the end of the legs.
func (c *Intervals) All(legs []transfer.Outcome) []Interval {
	pieces := make([][]piece, len(c.legs))
	for i, l := range c.legs {
		if i < len(legs) && legs[i].TCP != nil {
			l = l.atEnd(legs[i].TCP)
		}
		pieces[i] = l.pieces
		if last, some := l.remainder(c); some {
			pieces[i] = append(pieces[i][:len(pieces[i]):len(pieces[i])], last)
		}
	}
	return join(pieces)
}

// join combines the pieces of all directions into intervals.
func join(legs [][]piece) []Interval {
	all := []Interval{}
	for k := 0; ; k++ {
		one := Interval{Streams: []Span{}}
		some := false
		for i, pieces := range legs {
			if k >= len(pieces) {
				continue
			}
			some = true
			one.Streams = append(one.Streams, pieces[k].spans...)
			if i == 0 {
				one.Sum = &pieces[k].sum
			} else {
				one.Reverse = &pieces[k].sum
			}
		}
		if !some {
			return all
		}
		all = append(all, one)
	}
}

func (l *leg) add(i transfer.Interval) {
	for k := range min(len(l.streams), len(i.Samples)) {
		if sample := i.Samples[k]; sample.At > 0 {
			l.streams[k].now.sample = sample
			l.at = max(l.at, sample.At)
		}
	}
	for k := range min(len(l.streams), len(i.Flows)) {
		now := &l.streams[k].now
		more := i.Flows[k]
		now.udp = true
		now.flow.Bytes = now.flow.Bytes + more.Bytes
		now.flow.Packets = now.flow.Packets + more.Packets
		now.flow.Lost = now.flow.Lost + more.Lost
		now.flow.Jitter = more.Jitter
		l.at = i.End
	}
}

// atEnd returns a copy of a leg with its final counts.
func (l *leg) atEnd(r *transfer.Result) *leg {
	last := *l
	last.streams = append([]stream{}, l.streams...)
	if r.Near == nil {
		return &last
	}
	for k := range min(len(last.streams), len(r.Near.Streams)) {
		if n := len(r.Near.Streams[k].Samples); n > 0 {
			sample := r.Near.Streams[k].Samples[n-1]
			last.streams[k].now.sample = sample
			last.at = max(last.at, sample.At)
		}
	}
	return &last
}

// A remainder without data shorter than a tenth of an interval is left out, as in iperf3.
const minRemainderDivisor = 10

// remainder returns the piece after the last complete one.
func (l *leg) remainder(c *Intervals) (piece, bool) {
	to := l.at
	if l.sends && c.end > l.from {
		to = min(to, c.end) // the sender may wait longer for ACKs
	}
	moved := false
	for i := range l.streams {
		moved = moved || l.streams[i].now.bytes() > l.streams[i].before.bytes()
	}
	if to <= l.from || len(l.pieces) > 0 && !moved && to-l.from < c.cut.Every/minRemainderDivisor {
		return piece{}, false
	}
	return l.piece(c.cut.Omit, to), true
}

// endPiece ends the current piece.
func (l *leg) endPiece(omit, to time.Duration) {
	l.pieces = append(l.pieces, l.piece(omit, to))
	if l.from < omit && to >= omit {
		l.zeroAt = to
	}
	l.from = to
	for i := range l.streams {
		l.streams[i].before = l.streams[i].now
	}
}

// piece returns the data moved since the start of the current piece.
func (l *leg) piece(omit, to time.Duration) piece {
	omitted := l.from < omit
	p := piece{}
	for i := range l.streams {
		p.spans = append(p.spans, l.span(&l.streams[i], l.from-l.zeroAt, to-l.zeroAt, omitted))
	}
	p.sum = sumOf(p.spans)
	return p
}

// span returns what one stream moved since the start of the current piece.
func (l *leg) span(s *stream, from, to time.Duration, omitted bool) Span {
	span := newSpan(from, to, s.now.bytes()-s.before.bytes())
	span.Socket = s.socket
	span.Omitted = &omitted
	span.Sender = l.sends
	switch {
	case s.now.udp && l.sends:
		packets := s.now.flow.Packets - s.before.flow.Packets
		span.Packets = &packets
	case s.now.udp:
		setDatagrams(&span, s.now.flow.Jitter.Seconds(), max(s.now.flow.Lost-s.before.flow.Lost, 0),
			s.now.flow.Packets-s.before.flow.Packets)
	case l.sends:
		now := &s.now.sample
		resent := now.Retransmitted - s.before.sample.Retransmitted
		cwnd := now.Cwnd
		window := now.SendWnd
		rtt := now.RTT.Microseconds()
		variance := now.RTTVar.Microseconds()
		span.Retransmits = &resent
		span.Cwnd = &cwnd
		span.SendWnd = &window
		span.RTT = &rtt
		span.RTTVar = &variance
		span.PMTU = s.mtu
		reordered := int64(-1)
		if now.Have&transfer.HaveDSACKDups != 0 {
			reordered = now.ReordSeen
		}
		span.Reorder = &reordered
	}
	return span
}

// sumOf adds the streams' counts over the first stream's time. Jitter is the mean.
func sumOf(spans []Span) Span {
	sum := Span{Start: spans[0].Start, End: spans[0].End, Seconds: spans[0].Seconds, Omitted: spans[0].Omitted,
		Sender: spans[0].Sender}
	var jitter float64
	var lost, packets int64
	for _, s := range spans {
		sum.Bytes += s.Bytes
		sum.Bps += s.Bps
		if s.Retransmits != nil {
			resent := *s.Retransmits
			if sum.Retransmits != nil {
				resent += *sum.Retransmits
			}
			sum.Retransmits = &resent
		}
		if s.Packets != nil {
			packets += *s.Packets
			sum.Packets = &packets
		}
		if s.JitterMs != nil {
			jitter = jitter + *s.JitterMs/1000/float64(len(spans))
			lost = lost + *s.Lost
		}
	}
	if spans[0].JitterMs != nil {
		setDatagrams(&sum, jitter, lost, packets)
	}
	return sum
}
