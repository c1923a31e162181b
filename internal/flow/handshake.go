package flow

// minSYNTimeout is the minimum RTO of a SYN in nanoseconds (TCP_RTO_MIN in Linux tcp.h). A copy that arrives sooner
// comes from a second interface or a mirror port and is not a retransmission.
const minSYNTimeout = int64(2e8)

func (c *Connection) handshake(s *Segment, from int, at int64) {
	o := &c.sides[from].offer
	if o.Seen {
		if s.Flags&ACK == 0 || o.ISN == s.Seq {
			c.retransmittedSYN(s, o.ISN == s.Seq, at)
			return
		}
		// A server that starts over chooses other numbers; the client says which it took.
		if peer := &c.sides[1-from]; c.sides[from].dir != nil || peer.have && peer.ack == o.ISN+1 {
			return
		}
	}
	*o = Offer{Seen: true, Scale: -1, Window: int(s.Window), ISN: s.Seq, OptionsCut: s.Options&OptionsCut != 0,
		SACK: s.Options&HasSACKPermitted != 0, Timestamps: s.Options&HasTimestamps != 0, TTL: s.TTL,
		flags: s.Flags}
	if s.Options&HasMSS != 0 {
		o.MSS = int(s.MSS)
	}
	if s.Options&HasScale != 0 {
		o.Scale = int(s.Scale)
	}
	o.data = s.Payload
	if s.Flags&ACK == 0 {
		c.SYN = true
		c.synAt = at
		c.firstSYN = at
		c.client = from
		return
	}
	c.SYNACK = true
	c.synAckAt = at
	c.client = 1 - from
	c.marksEcho = agreeOnMarks(c.sides[c.client].offer.flags, s.Flags)
	c.fastOpen(s, at)
	if c.SYN && !c.synAgain {
		c.throughServer = max(at-c.synAt, 1)
	}
	c.synAt = at
}

// retransmittedSYN takes a SYN or SYN-ACK that was seen before. One that comes a timeout after the last one, before any
// data, shows a lost one. A SYN-ACK that passed the tap before was lost behind it, or its answer was.
func (c *Connection) retransmittedSYN(s *Segment, sameISN bool, at int64) {
	if sameISN && at-c.synAt >= minSYNTimeout && c.sides[0].dir == nil && c.sides[1].dir == nil {
		first := c.synAckAt
		if c.SYN {
			first = c.firstSYN
		}
		c.LostSYNs++
		c.SYNWait = at - first
		if c.SYNACK {
			c.LostSYNACKs++
		}
	}
	c.synAt = at
	if s.Flags&ACK == 0 {
		c.synAgain = true
	} else {
		c.synAckAgain = true
	}
}

// fastOpen takes the data that came with the SYN (RFC 7413), as far as the SYN-ACK
// acknowledges it: a server may refuse it, and that loses nothing.
func (c *Connection) fastOpen(s *Segment, at int64) {
	client := &c.sides[c.client]
	taken := s.Ack - client.offer.ISN - 1
	if client.dir != nil || taken == 0 || taken > client.offer.data {
		return
	}
	sent := Segment{Src: s.Dst, Dst: s.Src, Seq: client.offer.ISN + 1, Payload: taken}
	client.dir = c.newDirection(&sent, c.client, max(c.synAt, 0))
	client.dir.sent(&sent, at)
}

// scale returns the shift of the windows that a side advertises. known is false where the handshake does not show it.
func (c *Connection) scale(of int) (shift int, known bool) {
	client := c.sides[c.client].offer
	server := c.sides[1-c.client].offer
	switch {
	case c.unscaled():
		return 0, true
	case server.Seen && server.Scale >= 0 && of != c.client:
		return server.Scale, true
	case server.Seen && server.Scale >= 0 && client.Scale >= 0:
		return client.Scale, true
	}
	return 0, false
}

// unscaled reports whether one of both ends did not offer to scale, or a middlebox took the offer
// away.
func (c *Connection) unscaled() bool {
	client := c.sides[c.client].offer
	server := c.sides[1-c.client].offer
	return server.Seen && server.Scale < 0 && !server.OptionsCut || client.Seen && client.Scale < 0 && !client.OptionsCut
}

// BareSYNACK reports whether the SYN-ACK has none of the options that the SYN offered, but its
// MSS, as with SYN cookies without timestamps.
func (c *Connection) BareSYNACK() bool {
	client := c.ClientOffer()
	server := c.ServerOffer()
	return client.Seen && client.Scale >= 0 && client.SACK && server.Seen && !server.OptionsCut && server.Scale < 0 &&
		!server.SACK && !server.Timestamps
}

// Mismatch is a first window after the handshake that takes back much of the handshake's own.
type Mismatch struct {
	Offered int64 // the window of the SYN or SYN-ACK, bytes
	First   int64 // the next one, by the scale that was agreed on, bytes
	Scale   int   // by which the receiver counts where both are then the same window; else -1
}

// ScaleMismatch finds the Mismatch in what the receiver of d advertised. A receiver that keeps its scale never takes
// back so much of its window (RFC 7323, 2.4): unread data leave the right edge where it was, and scaling rounds it by
// less than a unit. A window that has grown beyond what a SYN can offer is not the handshake's by any scale.
func (c *Connection) ScaleMismatch(d *Direction) (m Mismatch, ok bool) {
	me := &c.sides[1-d.me]
	peer := c.sides[d.me].offer
	if !me.offer.Seen || !me.scaled || !peer.Seen || !d.ScaleKnown || me.firstWindow == 0 {
		return m, false
	}
	offered := int64(me.offer.Window)
	raw := int64(me.firstWindow)
	acked := int64(me.firstAck - peer.ISN - 1)
	if acked < 0 || acked > offered/2 || (raw+1)<<d.Scale+acked > offered*7/8 {
		return m, false
	}
	m = Mismatch{offered, raw << d.Scale, -1}
	for scale := d.Scale + 1; scale <= 14; scale++ {
		most := offered >> scale
		least := (offered - acked) >> scale
		if raw >= least-max(1, least/32) && raw <= most+max(1, most/32) {
			m.Scale = scale
			break
		}
	}
	return m, true
}
