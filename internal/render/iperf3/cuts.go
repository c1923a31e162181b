package iperf3

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Cuts cuts a test into intervals while its data moves.
type Cuts struct {
	cut  transfer.Cut
	end  time.Duration // when a test that is bounded by time ends; 0: its bytes end it
	legs []*leg
	told int // intervals that Add answered
}

// leg is one direction's streams.
type leg struct {
	sends   bool
	streams []stream
	at      time.Duration // of the streams' last counts
	from    time.Duration // the last cut
	zero    time.Duration // where the clock of what counts begins: the omitted time's end
	pieces  []cutPiece
}

// stream is what one stream had moved at the last cut, and has moved by now.
type stream struct {
	socket      int
	mtu         *int
	before, now counts
}

// counts are what a stream has moved in all: a TCP stream's last sample, or of a UDP flow
// its datagrams.
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

// cutPiece is one direction between two cuts.
type cutPiece struct {
	spans []Span
	sum   Span
}

// NewCuts prepares for a test whose streams are open, in intervals of about every; 0 is one
// interval. A server is the end that accepted it.
func NewCuts(a *iperf3.Account, every time.Duration, server bool) *Cuts {
	p := &a.Params
	c := &Cuts{cut: transfer.Cut{Every: every, Omit: time.Duration(p.Omit) * time.Second}}
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

// Add takes what moved and answers the intervals that it completes.
func (c *Cuts) Add(i transfer.Interval) []Interval {
	for _, l := range c.legs {
		if l.sends == (i.Direction == transfer.Up) {
			l.add(i)
			if next := c.cut.Next(l.from); next > 0 && l.at >= next && (c.end == 0 || next < c.end) {
				l.close(c.cut.Omit, l.at)
			}
		}
	}
	from := c.told
	for c.complete(c.told) {
		c.told++
	}
	pieces := make([][]cutPiece, len(c.legs))
	for i, l := range c.legs {
		pieces[i] = l.pieces[from:c.told]
	}
	return join(pieces)
}

// Told is how many intervals Add has answered; they are the first of All.
func (c *Cuts) Told() int { return c.told }

// complete says whether all directions have their nth piece.
func (c *Cuts) complete(n int) bool {
	for _, l := range c.legs {
		if n >= len(l.pieces) {
			return false
		}
	}
	return true
}

// All are the intervals until now and what remains after the last of them, as it stood when
// the legs ended.
func (c *Cuts) All(legs []transfer.Outcome) []Interval {
	pieces := make([][]cutPiece, len(c.legs))
	for i, l := range c.legs {
		if i < len(legs) && legs[i].TCP != nil {
			l = l.ended(legs[i].TCP)
		}
		pieces[i] = l.pieces
		if last, some := l.rest(c); some {
			pieces[i] = append(pieces[i][:len(pieces[i]):len(pieces[i])], last)
		}
	}
	return join(pieces)
}

// join puts the directions' pieces beside each other.
func join(legs [][]cutPiece) []Interval {
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

// ended is a copy of a leg as it stood at the end.
func (l *leg) ended(r *transfer.Result) *leg {
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

// least is the part of an interval below which a last piece without data is left out, as
// iperf3 does.
const least = 10

// rest is what came after the last cut.
func (l *leg) rest(c *Cuts) (cutPiece, bool) {
	to := l.at
	if l.sends && c.end > l.from {
		to = min(to, c.end) // it may wait for acknowledgements longer
	}
	moved := false
	for i := range l.streams {
		moved = moved || l.streams[i].now.bytes() > l.streams[i].before.bytes()
	}
	if to <= l.from || len(l.pieces) > 0 && !moved && to-l.from < c.cut.Every/least {
		return cutPiece{}, false
	}
	return l.piece(c.cut.Omit, to), true
}

// close cuts at a moment.
func (l *leg) close(omit, to time.Duration) {
	l.pieces = append(l.pieces, l.piece(omit, to))
	if l.from < omit && to >= omit {
		l.zero = to
	}
	l.from = to
	for i := range l.streams {
		l.streams[i].before = l.streams[i].now
	}
}

// piece is what moved since the last cut.
func (l *leg) piece(omit, to time.Duration) cutPiece {
	omitted := l.from < omit
	p := cutPiece{}
	for i := range l.streams {
		p.spans = append(p.spans, l.span(&l.streams[i], l.from-l.zero, to-l.zero, omitted))
	}
	p.sum = total(p.spans)
	return p
}

// span is what one stream moved since the last cut.
func (l *leg) span(s *stream, from, to time.Duration, omitted bool) Span {
	span := rated(from, to, s.now.bytes()-s.before.bytes())
	span.Socket = s.socket
	span.Omitted = &omitted
	span.Sender = l.sends
	switch {
	case s.now.udp && l.sends:
		packets := s.now.flow.Packets - s.before.flow.Packets
		span.Packets = &packets
	case s.now.udp:
		counted(&span, s.now.flow.Jitter.Seconds(), max(s.now.flow.Lost-s.before.flow.Lost, 0),
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
	}
	return span
}

// total sums streams over the time of the first; of jitter it is the mean.
func total(spans []Span) Span {
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
		counted(&sum, jitter, lost, packets)
	}
	return sum
}
