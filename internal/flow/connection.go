package flow

// Connection is one TCP connection as one tap saw it. The fields that every segment needs are close together, here
// and in the structs below: with thousands of connections, memory access takes most of the time.
type Connection struct {
	ends
	Started int64 // nanoseconds since 1970; all other times count from here
	now     int64

	SYN, SYNACK bool // captured
	Reset       bool
	Finished    bool // both ends closed
	InBatches   bool // several segments have one time stamp

	hasTimestamps bool
	doubled       bool // one interface shows everything twice
	opened        bool // by an acknowledgement without data

	// Grain is the shortest time between two segments that is not 0, nanoseconds: the
	// clock is no finer in a capture of many segments. Where several were stamped at once
	// (InBatches), it is for how long they had waited.
	Grain  int64
	client int // which side opened; by the lower port where no SYN was seen
	// Half of the round trip on either side of the tap, from the handshake; 0 unknown, ambiguous: it times nothing.
	throughClient, throughServer int64
	firstSYN, synAckAt           int64
	synAt                        int64 // of the last SYN or SYN-ACK
	responses                    [2]responses
	synAgain, synAckAgain        bool // sent more than once: the answer times nothing (RFC 6298, 3)

	// LostSYNs counts the SYNs and SYN-ACKs that a timer retransmitted before data came, LostSYNACKs those of them that
	// came after a SYN-ACK. SYNWait is the time from the first to the last of them.
	LostSYNs, LostSYNACKs int
	SYNWait               int64
	marksEcho             marksEcho

	sides [2]side

	requests
	table   *Table
	carried int64 // bytes before it was dropped and followed again
	Ended   int64 // the last segment's time
	// ClockSteps counts segments stamped more than a second before an earlier one.
	ClockSteps int64
	// Segments counts all segments, CutOptions those whose options the capture cut off, and Duplicates those that were
	// captured twice and are left out of all other counts.
	Segments, CutOptions, Duplicates int64

	// before is the view of the same connection from the other side of a box that renumbers
	// sequence numbers; nil where no other was seen, or it is not known yet.
	before *Connection
	// Renumbered reports whether the capture contains the connection twice: before and after a box that changes
	// sequence numbers. Only one view is kept.
	Renumbered bool

	tooBig    [2]int32
	routerMTU [2]int32
}

// Offer is what an end's SYN or SYN-ACK said.
type Offer struct {
	MSS        int // 0: the option was absent
	Scale      int // -1: absent
	Window     int
	ISN        uint32
	Seen       bool
	SACK       bool
	Timestamps bool
	OptionsCut bool // absent options are not known to be absent
	TTL        uint8

	data  uint32 // payload that came with it
	flags Flags
}

// side is what is kept of one end, whether it sends data or not.
type side struct {
	dir    *Direction // the data this side sends; nil until it does
	passes *passes
	heard  int64 // when it last sent anything
	spoke  int64 // when it last sent payload
	ack    uint32
	window uint16
	scaled bool // window is not a SYN's
	have   bool // ack and window mean something
	fin    bool
	copies
	delayed oneWay // the delay from this side to the tap
	loop    loop   // the loop from the tap through this side
	offer   Offer
	// The first window after the handshake as on the wire, and the acknowledgement number that came with it.
	firstWindow uint16
	firstAck    uint32
	alone       alone
}

func newConnection(e ends, s *Segment, t *Table) *Connection {
	c := reused(&t.spare)
	*c = Connection{ends: e, Started: s.At, table: t, requests: requests{turns: c.turns}}
	t.beginTurns(c)
	c.sides[0].offer.Scale = -1
	c.sides[1].offer.Scale = -1
	if e.a.Port < e.b.Port {
		c.client = 1
	}
	if limit := t.cfg.Passes; limit > 0 {
		if len(t.all) >= t.cfg.Connections/manyConnections {
			limit = min(limit, fewPasses)
		}
		c.sides[0].passes = newPasses(limit)
		c.sides[1].passes = newPasses(limit)
	}
	return c
}

// Client is the end that opened the connection; where no SYN was captured, the one with
// the higher port.
func (c *Connection) Client() Endpoint { return c.endpoint(c.client) }

// Server is the other end.
func (c *Connection) Server() Endpoint { return c.endpoint(1 - c.client) }

// ClientOffer and ServerOffer are the options of the SYN and of the SYN-ACK.
func (c *Connection) ClientOffer() Offer { return c.sides[c.client].offer }

// ServerOffer is what the SYN-ACK said.
func (c *Connection) ServerOffer() Offer { return c.sides[1-c.client].offer }

// OfferOf returns what the SYN or SYN-ACK of an end said.
func (c *Connection) OfferOf(end Endpoint) Offer {
	if end == c.Client() {
		return c.ClientOffer()
	}
	return c.ServerOffer()
}

// SACKPossible reports whether the ends may use SACK: no handshake in the capture shows that they do not.
func (c *Connection) SACKPossible() bool {
	for i := range c.sides {
		if o := &c.sides[i].offer; o.Seen && !o.SACK && !o.OptionsCut {
			return false
		}
	}
	return true
}

// Directions are the ones in which data was sent, the client's first.
func (c *Connection) Directions() []*Direction {
	var out []*Direction
	for _, i := range []int{c.client, 1 - c.client} {
		if d := c.sides[i].dir; d != nil && d.Bytes > 0 {
			out = append(out, d)
		}
	}
	return out
}

// OnlyWithData reports whether no acknowledgement was captured but with data: that from where
// the capture was taken, or by its filter, none could be seen.
func (c *Connection) OnlyWithData() bool {
	for i := range c.sides {
		if d := c.sides[i].dir; d != nil && d.Acks > 0 {
			return false
		}
	}
	return !c.opened
}

func (c *Connection) endpoint(side int) Endpoint {
	if side == 0 {
		return c.a
	}
	return c.b
}

func (c *Connection) sideOf(m *side) int {
	if m == &c.sides[0] {
		return 0
	}
	return 1
}

// sentBy returns the side that sent s, -1 where s is of another connection. c may be nil.
func (c *Connection) sentBy(s *Segment) int {
	switch {
	case c == nil:
		return -1
	case c.a.is(&s.Src) && c.b.is(&s.Dst):
		return 0
	case c.a.is(&s.Dst) && c.b.is(&s.Src):
		return 1
	}
	return -1
}

// ended reports whether s opens a new connection between the same ends.
func (c *Connection) ended(s *Segment, side int) bool {
	if s.Flags&(SYN|ACK) != SYN {
		return false
	}
	if o := &c.sides[side].offer; o.Seen {
		return o.ISN != s.Seq
	}
	return c.sides[side].have || c.sides[side].dir != nil
}

const second = int64(1e9)

// ambiguous is a round trip that a retransmission makes uncertain (Karn's algorithm).
const ambiguous = -1

// add takes a segment that me sent. It returns false for a duplicate.
func (c *Connection) add(s *Segment, me, peer *side) bool {
	at := s.At - c.Started
	step := at - c.now
	if step < 0 {
		if step < -second {
			c.ClockSteps++
		}
		at = c.now
		step = 0
	}
	if me.resembles(s) && me.has(s, at, c) {
		return false
	}
	if (me.wide != nil || s.TTL != me.ttl || s.Interface != me.iface) && c.byOtherWay(s, me, at) {
		return false
	}
	me.note(s, at)
	c.Segments++
	if s.Options&OptionsCut != 0 {
		c.CutOptions++
	}
	if step > 0 && (step < c.Grain || c.Grain == 0) {
		c.Grain = step
	}
	c.now = at
	me.heard = at
	if me.passes != nil {
		me.passes.add(s)
	}
	if s.Flags&(SYN|RST|FIN) != 0 {
		if s.Flags&SYN != 0 {
			c.handshake(s, c.sideOf(me), at)
		}
		if s.Flags&RST != 0 {
			c.Reset = true
			return true
		}
		if s.Flags&FIN != 0 {
			me.fin = true
			c.Finished = peer.fin
		}
	}
	if s.Options&HasTimestamps != 0 {
		c.timestamps(s, me, peer, at)
	}
	if s.Flags&ACK != 0 {
		c.acknowledge(s, me, peer, at)
	}
	if s.Payload == 0 || s.Flags&SYN != 0 {
		if d := me.dir; d != nil && d.shutAt > 0 && s.pure() && d.position(s.Seq) < d.high {
			d.probed(at)
		}
		return true
	}
	if me.dir == nil {
		me.dir = c.newDirection(s, c.sideOf(me), at)
	}
	me.spoke = at
	me.dir.sent(s, at)
	if peer.dir != nil {
		peer.dir.answered = true
		peer.dir.answeredInRound = true
		peer.dir.messaged = true
	}
	return true
}

// timestamps follows delays by the timestamps option (RFC 7323). The option of a SYN may be something else, such as 0
// or a cookie.
func (c *Connection) timestamps(s *Segment, me, peer *side, at int64) {
	c.hasTimestamps = true
	if s.TSVal != 0 {
		peer.loop.mark(s.TSVal, at)
	}
	if me.loop.awaits(s.TSEcr) && me.loop.echo(s.TSEcr, at, me.longestLoop(s)) {
		me.delayed.level(me.loop.old - me.loop.min)
	}
	if s.Flags&SYN != 0 {
		return
	}
	if o := &me.delayed; o.steady || o.begin(s.TSVal, at) {
		o.follow(s.TSVal, at)
	}
}

// leastRTT is the round trip of either direction, 0 unknown.
func (c *Connection) leastRTT() int64 {
	for i := range c.sides {
		if d := c.sides[i].dir; d != nil && d.RTTMin > 0 {
			return d.RTTMin
		}
	}
	return 0
}

func (c *Connection) acknowledge(s *Segment, me, peer *side, at int64) {
	if c.throughClient == 0 && c.SYNACK && s.Flags&SYN == 0 && me == &c.sides[c.client] && s.Ack == c.ServerOffer().ISN+1 {
		c.throughClient = max(at-c.synAckAt, 1)
		if c.synAckAgain {
			c.throughClient = ambiguous
		}
		c.opened = s.pure()
	}
	if peer.dir != nil {
		peer.dir.acknowledged(s, at)
	} else {
		me.alone.add(s, at, me.have, me.ack)
	}
	if !me.scaled && s.Flags&(SYN|RST) == 0 {
		me.firstWindow = s.Window
		me.firstAck = s.Ack
	}
	me.have = true
	me.ack = s.Ack
	me.window = s.Window
	me.scaled = s.Flags&SYN == 0
}

func (c *Connection) finish() {
	c.Ended = c.now
	c.turns.Finish()
	if late := inBatches(&c.sides[0].delayed, &c.sides[1].delayed); late > 0 {
		c.InBatches = true
		c.Grain = max(c.Grain, late)
	}
	for i := range c.sides {
		if d := c.sides[i].dir; d != nil {
			d.finish()
			continue
		}
		c.sides[i].dir = c.acknowledgedAlone(i)
	}
}
