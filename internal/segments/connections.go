package segments

import "github.com/fullpipe-net/fullpipe/internal/turns"

// Requests are the turns of a connection since the last call of Take.
type Requests struct {
	turns.Summary
	Client bool // this host sent the SYN
}

// Turns are the turns of this host's connections since the last call of Take.
type Turns struct {
	Of     map[uint64]*Requests // by the cookie of the socket
	Missed int64                // segments that found no room in the buffer, and connections none in memory
	OneOf  int64                // of this number of connections one is followed, a power of two
}

// pace limits the cost: above maxSegments a second half of the connections are left out, as often as needed.
type pace struct {
	mask  uint32 // of the hashes that are left out
	since int64
	n     int
}

// maxSegments a second take some 2 % of a core.
const maxSegments = 60_000

// tooFast counts a segment, and widens the mask where there are too many.
func (p *pace) tooFast(at int64) bool {
	p.n++
	if p.n < maxSegments {
		return false
	}
	fast := at-p.since < 1e9
	p.since = at
	p.n = 0
	if fast {
		p.mask = p.mask<<1 | 1
	}
	return fast
}

// maxConnections and maxTurns bound the memory: of the n-th connection at most maxTurns/n turns are kept.
const (
	maxConnections = 4_096
	maxTurns       = 20_000
	minTurns       = 10
)

// maxIdle is the time without a segment after which a connection may make room for another one, as one that closes.
const maxIdle = 10e9

// connections follows connections by their sockets.
type connections struct {
	of        map[uint64]*connection
	ended     map[uint64]*Requests // by cookie: connections whose socket's address another one has now
	forgotten int64                // connections that found no room
	latest    int64                // time of a segment
	takenAt   int64                // latest, at the last call of take
}

func newConnections() connections {
	return connections{of: map[uint64]*connection{}, ended: map[uint64]*Requests{}}
}

type connection struct {
	turns.Tracker
	cookie       uint64 // 0: not known yet
	role         role
	begin, last  int64 // the times of the first and the last segment
	segments     int64
	mss          int64
	minRTT       int64
	establishing bool // a SYN has left, and no other segment
	closing      bool // a FIN or RST was seen
}

type role uint8

const (
	unknown role = iota
	client
	server
)

// add gives a segment to its connection.
func (all *connections) add(s *segment) {
	c := all.of[s.socket]
	if c != nil && c.isAnother(s) {
		all.end(s.socket, c)
		c = nil
	}
	if c == nil {
		c = all.begin(s)
	}
	if c == nil {
		return
	}
	c.last = s.at
	all.latest = s.at
	if s.cookie != 0 {
		c.cookie = s.cookie
	}
	if c.role == unknown {
		c.learnRole(s)
	}
	if c.role == unknown {
		return
	}
	if c.segments == 0 {
		c.begin = s.at
		c.AtEnd(c.role == client, s.minRTT)
	} else if s.minRTT > 0 && s.minRTT != c.minRTT {
		c.minRTT = s.minRTT
		c.AtEnd(c.role == client, s.minRTT)
	}
	c.FullSegment(s.mss)
	c.segments++
	s.At = s.at - c.begin
	s.Number = c.segments
	s.FromClient = s.leaves == (c.role == client)
	if c.establishing && s.leaves && s.Flags&turns.SYN == 0 {
		c.establish(s)
	}
	c.Add(&s.Packet)
	c.closing = c.closing || s.Flags&(turns.FIN|turns.RST) != 0
}

// isAnother reports whether a segment belongs to a later connection than c with the same address of the
// socket.
func (c *connection) isAnother(s *segment) bool {
	return s.cookie != 0 && c.cookie != 0 && s.cookie != c.cookie ||
		s.leaves && s.Flags&(turns.SYN|turns.ACK) == turns.SYN && !c.establishing
}

// end removes a connection and keeps its turns for take.
func (all *connections) end(socket uint64, c *connection) {
	delete(all.of, socket)
	c.EndTurn()
	switch {
	case c.cookie == 0 || c.Summary.Counts == (turns.Counts{}):
	case len(all.ended) >= maxConnections:
		all.forgotten++
	default:
		all.ended[c.cookie] = &Requests{Summary: c.Summary, Client: c.role == client}
	}
}

// learnRole finds out which end sent the SYN.
func (c *connection) learnRole(s *segment) {
	switch {
	case s.leaves && s.Flags&(turns.SYN|turns.ACK) == turns.SYN:
		c.role = client
		c.establishing = true
		c.mss = s.MSS
	case !s.leaves && s.syn == 1:
		c.role = client
	case !s.leaves && s.syn == 0:
		c.role = server
	}
}

// establish adds the SYN-ACK, which the kernel does not show.
func (c *connection) establish(ack *segment) {
	c.establishing = false
	c.Add(&turns.Packet{At: ack.At, Number: ack.Number, Flags: turns.SYN | turns.ACK, Seq: ack.Ack - 1, Ack: ack.Seq,
		Window: 65535, MSS: c.mss})
}

// begin returns a new connection; nil: there is no room.
func (all *connections) begin(s *segment) *connection {
	if len(all.of) >= maxConnections {
		for socket, c := range all.of {
			if c.closing || s.at-c.last > maxIdle {
				all.end(socket, c)
			}
		}
	}
	if len(all.of) >= maxConnections {
		all.forgotten++
		return nil
	}
	c := &connection{}
	c.Reset(all.share())
	all.of[s.socket] = c
	return c
}

// share returns how many turns a connection keeps.
func (all *connections) share() int { return min(max(maxTurns/(len(all.of)+1), minTurns), 2_000) }

// take returns the turns of each connection that had any since the last call.
func (all *connections) take() map[uint64]*Requests {
	taken := all.ended
	all.ended = map[uint64]*Requests{}
	for socket, c := range all.of {
		if c.closing {
			c.EndTurn() // no later turn ends it
			if c.last <= all.takenAt {
				all.end(socket, c)
				continue
			}
		}
		if c.cookie == 0 || c.Summary.Counts == (turns.Counts{}) {
			continue
		}
		taken[c.cookie] = &Requests{Summary: c.Summary, Client: c.role == client}
		c.Summary = turns.Summary{MaxKept: all.share()}
	}
	all.takenAt = all.latest
	return taken
}
