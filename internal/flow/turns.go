package flow

import "github.com/fullpipe-net/fullpipe/internal/turns"

// maxTurns is how many turns the connections of a table keep, 244 bytes each: the first connection up to 2,000, the
// n-th one maxTurns/n, and each minTurns.
const (
	maxTurns = 20_000
	minTurns = 10
)

// requests is the state of a connection's turns.
type requests struct {
	turns    *turns.Tracker
	bulkSide int  // the side that sent last
	asked    bool // without a handshake: payload came, first from asking
	asking   int
}

// beginTurns follows the turns of a new connection.
func (t *Table) beginTurns(c *Connection) {
	if c.turns == nil {
		c.turns = new(turns.Tracker)
	}
	*c.turns = turns.Tracker{}
	c.turns.MaxKept = min(max(maxTurns/t.cfg.Shares/(len(t.all)+1), minTurns), 2_000)
}

// Turns are the requests and responses of the connection. The client is the sender of the SYN, or else the end that
// sent payload first.
func (c *Connection) Turns() *turns.Tracker { return c.turns }

// ClientAssumed reports whether no packet of the handshake shows which end is the client of the turns.
func (c *Connection) ClientAssumed() bool { return !c.SYN && !c.SYNACK }

// followTurns gives a segment to the turns.
func (c *Connection) followTurns(s *Segment, side int) {
	if c.turns.Bulk() && (s.Payload == 0 || side == c.bulkSide) {
		return
	}
	client := c.client
	if c.ClientAssumed() {
		if !c.asked && s.Payload == 0 {
			return
		}
		if !c.asked {
			c.asked = true
			c.asking = side
		}
		client = c.asking
	}
	if s.Payload > 0 {
		c.bulkSide = side
	}
	p := turns.Packet{At: c.now, Number: int64(s.Number), FromClient: side == client, Seq: s.Seq, Ack: s.Ack,
		Payload: s.Payload, MSS: int64(s.MSS), Window: c.windowOf(s, side), TSVal: s.TSVal, IPID: s.IPID, SACK: s.SACKs,
		DSACK: s.SACKs > 0 && int32(s.SACK[0][1]-s.Ack) <= 0, Flags: turnFlags(s)}
	c.turns.Add(&p)
}

// windowOf returns the window of a segment in bytes. Where the scale is not known it is not what limits.
func (c *Connection) windowOf(s *Segment, side int) int64 {
	if s.Flags&SYN != 0 || s.Window == 0 {
		return int64(s.Window)
	}
	shift, known := c.scale(side)
	if !known {
		return 1 << 30
	}
	return int64(s.Window) << shift
}

func turnFlags(s *Segment) (f turns.Flags) {
	for _, one := range [...]struct {
		here  Flags
		there turns.Flags
	}{{SYN, turns.SYN}, {ACK, turns.ACK}, {FIN, turns.FIN}, {RST, turns.RST}, {PSH, turns.PSH}} {
		if s.Flags&one.here != 0 {
			f |= one.there
		}
	}
	if s.Options&HasTimestamps != 0 {
		f |= turns.Timestamps
	}
	if s.Src.Hi == 0 && s.Src.Lo>>32 == 0xffff {
		f |= turns.IPv4
	}
	return f
}
