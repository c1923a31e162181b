package transfer

import (
	"fmt"
	"time"
)

// DropCounter is a counter of dropped packets that moved during a transfer. It counts the packets
// of all connections of an end's network namespace, or host.
type DropCounter struct {
	Name  string `json:"name"`  // as nstat, ip, tc or ethtool print it
	Place string `json:"place"` // a kind of package lost
	// Device, Qdisc and Rule, of nftables, stay on their host. Empty: none.
	Device  string `json:"-"`
	Qdisc   string `json:"-"`
	Rule    string `json:"-"`
	Packets int64  `json:"packets"`
	Bytes   int64  `json:"bytes,omitempty"` // with the IP header; 0: not counted
	// Merged reports that one counted packet may be several segments (GSO, GRO).
	Merged bool `json:"merged,omitempty"`
	// Moves are the times at which it moved; nil: not known.
	Moves []Move `json:"moves,omitempty"`
}

// Move is how far a counter moved until a time on its end's transfer clock.
type Move struct {
	At      time.Duration `json:"at_ns"`
	Packets int64         `json:"packets"`
}

// The most counters of an end, moves of a counter and bytes of a packet (IP's).
const (
	maxDropCounters = 256
	MaxMoves        = 1024
	maxPacket       = 65535
	maxMoveHours    = 1e4 // before or after the transfer's beginning
)

// dropCounters checks what a far end reports of its counters.
func (b *validator) dropCounters(all []DropCounter) {
	b.within("drop_counters", float64(len(all)), 0, maxDropCounters)
	if b.err != nil {
		return
	}
	for i := range all {
		c := &all[i]
		name := fmt.Sprintf("drop_counters[%d].", i)
		b.text(name+"name", c.Name)
		b.text(name+"place", c.Place)
		b.bytes(name+"packets", c.Packets)
		b.within(name+"bytes", float64(c.Bytes), 0, maxPacket*float64(max(c.Packets, 0)))
		b.within(name+"moves", float64(len(c.Moves)), 0, MaxMoves)
		for _, m := range c.Moves {
			b.within(name+"moves[].packets", float64(m.Packets), 0, float64(max(c.Packets, 0)))
			b.within(name+"moves[].at_ns", m.At.Hours(), -maxMoveHours, maxMoveHours)
		}
		if b.err != nil {
			return
		}
	}
}

// Retransmissions returns when a sending end retransmitted how many segments, by its samples. It
// is nil if they do not count them.
func (e *End) Retransmissions() (all []Move) {
	for i := range e.Streams {
		before := int64(0)
		for j := range e.Streams[i].Samples {
			s := &e.Streams[i].Samples[j]
			if s.Have&HaveRetrans != 0 && s.Retransmitted > before {
				all = append(all, Move{At: s.At, Packets: s.Retransmitted - before})
				before = s.Retransmitted
			}
		}
	}
	return all
}
