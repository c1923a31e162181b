package flow

// Pass is when a segment passed the tap, under a name that other taps of the connection give it too: it is made of
// fields that no router changes.
type Pass struct {
	Name Name
	At   int64 // nanoseconds since 1970, by the tap's clock
}

// Name is a hash of a segment's numbers, and in its low bits one of its timestamp.
type Name uint64

const stampBits = 24

// Unstamped returns the name that a tap gives without the timestamp: it cannot read it, or a box before it writes
// another. A retransmission then has the same name.
func (n Name) Unstamped() Name { return n &^ (1<<stampBits - 1) }

// Stamped reports whether the name contains a timestamp.
func (n Name) Stamped() bool { return n != n.Unstamped() }

// Among reports whether a name is among those that a mask drops.
func (n Name) Among(mask uint64) bool { return uint64(n)>>stampBits&mask != 0 }

// passes keeps some of one end's segments. When there are too many, it drops half of the names, and the same half at
// every tap, so that the rest can still be matched. The opening stays whole where a timestamp distinguishes
// retransmissions: the queue may never be as short later.
type passes struct {
	all   []Pass
	mask  uint64
	limit int
}

// Beyond that share of the connections which may be followed, each keeps few passes: all
// together stay within some 400 MB where 2048 are asked for.
const (
	manyConnections = 21
	fewPasses       = 64
)

// openingPart: the opening takes one part in this many of the segments kept.
const openingPart = 16

func newPasses(limit int) *passes { return &passes{limit: max(limit, 16)} }

func (p *passes) add(s *Segment) {
	name := s.Name()
	if name.Among(p.mask) {
		return
	}
	p.all = append(p.all, Pass{name, s.At})
	for len(p.all) >= p.limit && p.mask>>(64-stampBits-1) == 0 {
		p.mask = p.mask<<1 | 1
		kept := p.all[:0]
		for i, one := range p.all {
			opens := i < p.limit/openingPart && one.Name.Stamped()
			if opens || !one.Name.Among(p.mask) {
				kept = append(kept, one)
			}
		}
		p.all = kept
	}
}

// Name returns a hash of the position where a segment's data ends and of its timestamp, or of its acknowledgement
// where it has no data. Hosts cut and join segments (TSO, GRO): their last byte stays the last of a packet. A
// retransmission has another timestamp, where there are any.
func (s *Segment) Name() Name {
	h := uint64(s.Seq + s.Payload)
	if s.Payload == 0 {
		h |= uint64(s.Ack) << 32
		h ^= mix(uint64(s.Window)<<16 | uint64(s.Flags))
	}
	return Name(mix(h)).Unstamped() | Name(mix(uint64(s.TSVal))>>(64-stampBits))
}

// mix is the finalizer of MurmurHash3: every bit of the result hangs on every bit.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}

// Passes are those of the client's or of the server's segments that were kept
// (Config.Passes), in the order of the capture.
func (c *Connection) Passes(client bool) []Pass {
	side := c.client
	if !client {
		side = 1 - side
	}
	if p := c.sides[side].passes; p != nil {
		return p.all
	}
	return nil
}
