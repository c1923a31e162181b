package turns

import (
	"container/heap"
	"math/rand/v2"
	"slices"
)

// world is a simulated connection between a client and a server: TCP with slow start, SACK, tail-loss probes and
// delayed acknowledgements, as Linux has them, on a virtual clock.
type world struct {
	path
	client, server *host
	events         events
	now            int64
	order          int
	tap            float64 // 0: at the client, 1: at the server
	rand           *rand.Rand

	packets []Packet
	truth   []truth
	number  int64
}

// path describes the path. Each direction has a line of its own.
type path struct {
	rtt  int64
	bps  float64
	loss func(w *world, fromClient bool, s *sent) bool // whether a segment is lost
	lost float64                                       // where on the way from the client
	line float64                                       // where the line is
	// queue is the additional delay of other traffic, by direction and time.
	queue func(fromClient bool, now int64) int64
	free  [2]int64
}

// truth is a turn as the client's program saw it.
type truth struct {
	start, end int64
	retried    int // segments retransmitted during the turn
	thought    int64
}

type event struct {
	at    int64
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (w *world) after(d int64, do func()) {
	w.order++
	heap.Push(&w.events, event{w.now + d, w.order, do})
}

func (w *world) run(until int64) {
	for len(w.events) > 0 && w.events[0].at <= until {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
	}
}

const (
	ms      = int64(1_000_000)
	simMSS  = 1448
	delayed = 40 * ms
)

// sent is one segment on its way or in the scoreboard.
type sent struct {
	from, to       int64
	at             int64
	syn, push      bool
	sacked, lost   bool
	again, turn, n int // retransmissions; the turn and the number of the segment in its message
}

// host is one end.
type host struct {
	w        *world
	isClient bool
	peer     *host
	isn      uint32
	id       uint16

	// sender
	written    int64
	ends       []int64 // of writes
	nagle      bool
	next       int64
	una        int64
	cwnd       int64
	ssthresh   int64
	right      int64 // of the peer's window
	board      []*sent
	recover    int64
	srtt       int64
	rttvar     int64
	timer      int // generation
	probed     bool
	backOff    uint
	lastSent   int64
	turn       int
	inTurn     int
	reordering bool

	// receiver
	expect  int64
	ooo     [][2]int64
	pending int64
	ackGen  int
	dsack   [2]int64
	buffer  int64
	unread  int64
	reads   bool // the program reads at once
	edge    int64
	onData  func()
}

func newWorld(p path, tap float64, seed uint64) *world {
	w := &world{path: p, tap: tap, rand: rand.New(rand.NewPCG(seed, 7))}
	make := func(client bool) *host {
		return &host{w: w, isClient: client, isn: w.rand.Uint32(), id: uint16(w.rand.Uint32()), cwnd: 10 * simMSS,
			ssthresh: 1 << 40, buffer: 1 << 20, reads: true, right: 64 << 10, recover: -1}
	}
	w.client = make(true)
	w.server = make(false)
	w.client.peer = w.server
	w.server.peer = w.client
	return w
}

func (h *host) rto() int64 {
	if h.srtt == 0 {
		return 1000 * ms
	}
	return h.srtt + max(200*ms, 4*h.rttvar)
}

// put puts a packet on the way. It returns whether it arrives.
func (h *host) put(p Packet, s *sent, arrive func()) {
	w := h.w
	p.FromClient = h.isClient
	p.Flags |= Timestamps | IPv4
	p.TSVal = uint32(w.now/ms) + h.isn>>1
	p.IPID = h.id
	h.id++
	half := float64(w.rtt) / 2
	// Positions along the way of this packet, from its sender.
	place := func(x float64) float64 {
		if h.isClient {
			return x
		}
		return 1 - x
	}
	tap := place(w.tap)
	line := place(w.line)
	dir := 0
	if h.isClient {
		dir = 1
	}
	atLine := w.now + int64(half*line)
	begin := max(atLine, w.free[dir])
	if w.queue != nil {
		begin = max(begin, atLine+w.queue(h.isClient, atLine))
	}
	done := begin + int64(float64(p.Payload+66)*8/w.bps*1e9)
	w.free[dir] = done
	wait := done - atLine
	when := w.now + int64(half*tap)
	if tap > line {
		when += wait
	}
	dropped := w.loss != nil && s != nil && w.loss(w, h.isClient, s)
	if !dropped || tap <= place(w.lost) {
		w.after(when-w.now, func() {
			w.number++
			p.At = w.now
			p.Number = w.number
			w.packets = append(w.packets, p)
		})
	}
	if !dropped {
		w.after(int64(half)+wait, arrive)
	}
}

func (h *host) window() int64 {
	room := max(h.buffer-h.unread, 0)
	if h.expect+room > h.edge && (h.expect+room-h.edge >= 2*simMSS || h.edge == 0) {
		h.edge = h.expect + room
	}
	return max(h.edge-h.expect, 0)
}

func (h *host) stamp(p *Packet) {
	p.Ack = h.peer.isn + 1 + uint32(h.expect)
	p.Flags |= ACK
	p.Window = h.window()
	p.SACK = uint8(min(len(h.ooo), 3))
	if h.dsack[1] > 0 {
		p.DSACK = true
		p.SACK++
		h.dsack = [2]int64{}
	}
}

// connect opens the connection and calls then at the client.
func (w *world) connect(then func()) {
	done := false
	var syn func(again int)
	answer := func() {
		s := &sent{syn: true}
		p := Packet{Flags: SYN | ACK, MSS: 1460, Seq: w.server.isn, Ack: w.client.isn + 1, Window: 64 << 10}
		w.server.put(p, s, func() {
			if done {
				return
			}
			done = true
			w.client.rtt(w.now)
			w.client.ack()
			then()
		})
	}
	syn = func(again int) {
		if done {
			return
		}
		p := Packet{Flags: SYN, MSS: 1460, Seq: w.client.isn, Window: 64 << 10}
		w.client.put(p, &sent{syn: true, again: again}, answer)
		w.after(1000*ms<<again, func() { syn(again + 1) })
	}
	syn(0)
}

func (h *host) rtt(sample int64) {
	if h.srtt == 0 {
		h.srtt = h.w.rtt
		h.rttvar = h.w.rtt / 2
		return
	}
	d := max(sample-h.srtt, h.srtt-sample)
	h.rttvar += (d - h.rttvar) / 4
	h.srtt += (sample - h.srtt) / 8
}

// write is the program's.
func (h *host) write(n int64) {
	if h.next == h.una && h.w.now-h.lastSent > h.rto() {
		h.cwnd = min(h.cwnd, 10*simMSS)
	}
	h.written += n
	h.ends = append(h.ends, h.written)
	h.send()
}

func (h *host) flight() (n int64) {
	for _, s := range h.board {
		if !s.sacked && !s.lost {
			n += s.to - s.from
		}
	}
	return n
}

func (h *host) send() {
	for _, s := range h.board {
		if s.lost && !s.sacked && h.flight() < h.cwnd {
			h.again(s)
		}
	}
	for h.next < h.written {
		n := min(simMSS, h.written-h.next)
		if h.flight()+n > h.cwnd || h.next+n > h.right {
			break
		}
		if n < simMSS && h.nagle && h.next > h.una {
			break
		}
		s := &sent{from: h.next, to: h.next + n, turn: h.turn, n: h.inTurn}
		h.inTurn++
		s.push = slices.ContainsFunc(h.ends, func(e int64) bool { return e == s.to })
		h.next = s.to
		h.board = append(h.board, s)
		h.transmit(s)
	}
	if len(h.board) == 0 && h.next < h.written && h.next+1 > h.right {
		h.persist()
	}
}

func (h *host) persist() {
	h.timer++
	gen := h.timer
	h.w.after(h.rto()<<h.backOff, func() {
		if gen != h.timer {
			return
		}
		h.backOff++
		p := Packet{Seq: h.isn + uint32(h.next)}
		h.stamp(&p)
		h.put(p, nil, func() { h.peer.ack() })
		h.persist()
	})
}

func (h *host) again(s *sent) {
	s.lost = false
	s.again++
	h.w.truth[h.turnNow()].retried++
	h.transmit(s)
}

func (h *host) turnNow() int { return max(len(h.w.truth)-1, 0) }

func (h *host) transmit(s *sent) {
	s.at = h.w.now
	h.lastSent = h.w.now
	p := Packet{Seq: h.isn + 1 + uint32(s.from), Payload: uint32(s.to - s.from)}
	if s.push {
		p.Flags |= PSH
	}
	h.stamp(&p)
	h.pending = 0
	h.ackGen++
	from := s.from
	to := s.to
	ackd := h.expect
	edge := h.edge
	blocks := slices.Clone(h.ooo)
	h.put(p, s, func() {
		h.peer.acked(ackd, edge, blocks)
		h.peer.receive(from, to)
	})
	h.arm()
}

// arm starts the timer: a tail-loss probe first, then the retransmission timer.
func (h *host) arm() {
	h.timer++
	if h.una == h.next {
		return
	}
	gen := h.timer
	wait := h.rto() << h.backOff
	probe := !h.probed && h.backOff == 0 && h.recover < 0 && h.srtt > 0
	if probe {
		pto := 2 * h.srtt
		if len(h.board) == 1 {
			pto += 200 * ms
		} else {
			pto += 8 * ms
		}
		wait = min(wait, pto)
	}
	h.w.after(wait, func() {
		if gen != h.timer || len(h.board) == 0 {
			return
		}
		if probe {
			h.probed = true
			h.again(h.board[len(h.board)-1])
			return
		}
		h.backOff++
		h.ssthresh = max(h.cwnd/2, 2*simMSS)
		h.cwnd = simMSS
		h.recover = -1
		for _, s := range h.board {
			s.lost = !s.sacked
		}
		h.send()
		h.arm()
	})
}

// receive takes data.
func (h *host) receive(from, to int64) {
	switch {
	case to <= h.expect:
		h.dsack = [2]int64{from, to}
		h.ack()
		return
	case from > h.expect:
		h.ooo = append(h.ooo, [2]int64{from, to})
		h.ack()
		return
	}
	before := h.expect
	h.expect = to
	filled := false
	for again := true; again; {
		again = false
		for i, o := range h.ooo {
			if o[0] <= h.expect {
				h.expect = max(h.expect, o[1])
				h.ooo = slices.Delete(h.ooo, i, i+1)
				again = true
				filled = true
				break
			}
		}
	}
	if !h.reads {
		h.unread += h.expect - before
	}
	h.pending += to - from
	gen := h.ackGen
	if h.pending > simMSS || filled {
		h.ack()
	} else {
		h.w.after(delayed, func() {
			if gen == h.ackGen {
				h.ack()
			}
		})
	}
	h.onData()
}

// ack sends a pure acknowledgement.
func (h *host) ack() {
	h.pending = 0
	h.ackGen++
	p := Packet{Seq: h.isn + 1 + uint32(h.next)}
	h.stamp(&p)
	ackd := h.expect
	edge := h.edge
	blocks := slices.Clone(h.ooo)
	h.put(p, nil, func() { h.peer.acked(ackd, edge, blocks) })
}

// acked takes an acknowledgement.
func (h *host) acked(pos, edge int64, blocks [][2]int64) {
	h.right = max(h.right, edge)
	advanced := pos > h.una
	acked := pos - h.una
	latest := int64(-1)
	var rest []*sent
	for _, s := range h.board {
		switch {
		case s.to <= pos:
			latest = max(latest, s.at)
			if s.again == 0 && s.to == pos {
				h.rtt(h.w.now - s.at)
			}
			continue
		case !s.sacked && slices.ContainsFunc(blocks, func(b [2]int64) bool { return b[0] <= s.from && s.to <= b[1] }):
			s.sacked = true
			latest = max(latest, s.at)
		}
		rest = append(rest, s)
	}
	h.board = rest
	h.una = max(h.una, pos)
	if advanced {
		h.probed = false
		h.backOff = 0
		if h.recover >= 0 && pos >= h.recover {
			h.recover = -1
		}
		if h.recover < 0 && h.cwnd < h.ssthresh {
			h.cwnd += acked
		}
	}
	reordered := false
	anySacked := slices.ContainsFunc(h.board, func(s *sent) bool { return s.sacked })
	for i, s := range h.board {
		above := 0
		for _, o := range h.board[i+1:] {
			if o.sacked {
				above++
			}
		}
		if !s.sacked && !s.lost && anySacked && above > 0 && (above >= 3 || latest > s.at+h.srtt/4 ||
			h.w.now-s.at > h.srtt+h.srtt/4) && h.w.now-s.at >= h.srtt {
			s.lost = true
			if h.recover < 0 {
				h.recover = h.next
				h.ssthresh = max(h.cwnd*7/10, 2*simMSS)
				h.cwnd = h.ssthresh
			}
		} else if !s.sacked && !s.lost && above > 0 {
			reordered = true
		}
	}
	h.send()
	if advanced && len(h.board) > 0 {
		h.arm()
	}
	if reordered && !h.reordering {
		h.reordering = true
		h.w.after(max(h.srtt/4, ms), func() { // RACK's reordering timer
			h.reordering = false
			h.acked(h.una, h.right, nil)
		})
	}
}
