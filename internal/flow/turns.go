package flow

import "github.com/fullpipe-net/fullpipe/internal/turns"

// maxTurns is how many turns the connections of a table keep, 288 bytes each: the first connection
// up to 2,000, the n-th one maxTurns/n, and each minTurns.
const (
	maxTurns = 20_000
	minTurns = 10
)

// requests is the state of a connection's turns.
type requests struct {
	turns    *turns.Tracker
	inBulk   bool // a bulk transfer goes by, from the side bulkSide: see turns.Tracker.Skips
	asked    bool // without a handshake: payload came, first from the side asking
	shifted  bool // shifts are set
	bulkSide int8
	asking   int8
	shifts   [2]int8 // of the windows that each side advertises; -1: not known
}

// beginTurns follows the turns of a new connection.
func (t *Table) beginTurns(c *Connection) {
	if c.turns == nil {
		c.turns = new(turns.Tracker)
	}
	c.turns.Reset(min(max(maxTurns/t.cfg.Shares/(len(t.all)+1), minTurns), 2_000))
}

// Turns are the requests and responses of the connection. The client is the sender of the SYN, or else the end that
// sent payload first.
func (c *Connection) Turns() *turns.Tracker { return c.turns }

// TurnEnds returns the client and the server of the turns.
func (c *Connection) TurnEnds() (client, server Endpoint) {
	side := c.client
	if c.ClientAssumed() && c.asked {
		side = int(c.asking)
	}
	return c.endpoint(side), c.endpoint(1 - side)
}

// ClientAssumed reports whether no packet of the handshake shows which end is the client of the turns.
func (c *Connection) ClientAssumed() bool { return !c.SYN && !c.SYNACK }

// followTurns gives a segment to the turns.
func (c *Connection) followTurns(s *Segment, side int) {
	if c.inBulk && (s.Payload == 0 || side == int(c.bulkSide)) {
		return
	}
	client := c.client
	if c.ClientAssumed() {
		if !c.asked && s.Payload == 0 {
			return
		}
		if !c.asked {
			c.asked = true
			c.asking = int8(side)
		}
		client = int(c.asking)
	}
	p := turns.Packet{At: c.now, Number: int64(s.Number), FromClient: side == client, Seq: s.Seq, Ack: s.Ack,
		Payload: s.Payload, MSS: int64(s.MSS), Window: c.windowOf(s, side), TSVal: s.TSVal, IPID: s.IPID, SACK: s.SACKs,
		DSACK: s.SACKs > 0 && int32(s.SACK[0][1]-s.Ack) <= 0, Flags: turns.Flags(s.Flags) & turns.TCPFlags}
	if s.Options&HasTimestamps != 0 {
		p.Flags |= turns.Timestamps
	}
	if s.Src.Hi == 0 && s.Src.Lo>>32 == 0xffff {
		p.Flags |= turns.IPv4
	}
	c.turns.Add(&p)
	c.inBulk = c.turns.Skips(side == client, 1)
	c.bulkSide = int8(side)
}

// windowOf returns the window of a segment in bytes. Where the scale is not known it is not what limits.
func (c *Connection) windowOf(s *Segment, side int) int64 {
	if s.Flags&SYN != 0 || s.Window == 0 {
		return int64(s.Window)
	}
	if !c.shifted {
		c.shifted = true
		for i := range c.shifts {
			shift, known := c.scale(i)
			c.shifts[i] = int8(shift)
			if !known {
				c.shifts[i] = -1
			}
		}
	}
	if c.shifts[side] < 0 {
		return 1 << 30
	}
	return int64(s.Window) << c.shifts[side]
}
