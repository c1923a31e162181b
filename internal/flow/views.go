package flow

import "slices"

// viewsWithin is how long after the first segment of one view the other begins at the most.
const viewsWithin = int64(1e8)

// secondView makes c the second view of old, which opened with another initial sequence number just before and has
// not ended. A firewall or a load balancer that renumbers is between the two, and the capture contains both sides of
// it.
func (c *Connection) secondView(old *Connection, s *Segment) {
	if old == nil || old.Finished || old.Reset || old.before != nil || !old.SYN ||
		s.At-old.Started < 0 || s.At-old.Started > viewsWithin {
		return
	}
	for i := range old.sides {
		if old.sides[i].dir != nil { // data in flight: that connection was given up
			return
		}
	}
	c.before = old
}

// minViewDistance is how far the numbers of two views are apart at the least where no handshake shows them. One view
// goes that far within viewsWithin at 10 Gbit/s.
const minViewDistance = 1 << 27

// isOtherView reports whether the numbers of a segment cannot be the connection's, a moment after its first ones.
func (c *Connection) isOtherView(s *Segment, side int) bool {
	return s.Flags&(SYN|RST) == 0 && s.Payload > 0 && c.sides[side].dir != nil && c.distance(s, side) > minViewDistance
}

// beginView follows the second view of old in a capture without its handshake. It returns old where the table is
// full.
func (t *Table) beginView(old *Connection, s *Segment) (*Connection, int) {
	side := old.sentBy(s)
	if len(t.all) >= t.cfg.Connections {
		return old, side
	}
	c, side := t.begin(s, hashOf(s))
	c.before = old
	t.last = c
	return c, side
}

// viewOf returns the view that a segment of a side belongs to: the one whose numbers are nearer.
func (c *Connection) viewOf(s *Segment, side int) *Connection {
	if c.before != nil && c.before.distance(s, side) < c.distance(s, side) {
		return c.before
	}
	return c
}

// distance is how far the numbers of a segment are from the connection's.
func (c *Connection) distance(s *Segment, side int) uint32 {
	far := uint32(0)
	if at, ok := c.sides[side].next(); ok {
		far = max(far, apart(s.Seq, at))
	}
	if at, ok := c.sides[1-side].next(); ok && s.Flags&ACK != 0 {
		far = max(far, apart(s.Ack, at))
	}
	return far
}

// next returns about where the side's sequence numbers are.
func (m *side) next() (uint32, bool) {
	if d := m.dir; d != nil {
		return d.base + uint32(d.high), true
	}
	return m.offer.ISN, m.offer.Seen
}

func apart(a, b uint32) uint32 { return min(a-b, b-a) }

// mergeViews drops the second views that carried what the first ones did.
func (t *Table) mergeViews() {
	t.all = slices.DeleteFunc(t.all, func(c *Connection) bool {
		first := c.before
		if first == nil || first.bytes() == 0 || c.bytes() == 0 {
			return false
		}
		c.before = nil
		first.Renumbered = true
		return true
	})
}
