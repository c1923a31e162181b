package link

import (
	"encoding/binary"
	"time"
)

// AckHolder delays a host's acknowledgements as old systems did: one that tells of less
// than two full segments waits, at most Wait, for one that does (RFC 1122 section
// 4.2.3.2). It sees all that the host sends, packet by packet. Only bare
// acknowledgements of new data wait: duplicates, those with SACK blocks, and whatever
// carries data or a flag go at once. Not safe for concurrent use.
type AckHolder struct {
	Wait time.Duration
	// Segment is the payload, in bytes, of the largest segments without options that the
	// path takes; 0 leaves it to the handshake.
	Segment int
	flows   map[flowKey]*ackState
	held    []*ackState // in the order of their ends
}

// flowKey is the addresses and ports of a packet.
type flowKey [36]byte

type ackState struct {
	last, window uint32 // of the acknowledgement that went last
	begun        bool   // last is the peer's number
	most         int    // payload of a full segment without options, by handshake and path
	packet       []byte // that waits, or nil
	told, size   uint32 // its number and window
	until        int64
}

const timestampBytes = 12 // of every segment, with their padding

const mostFlows = 1 << 14 // that are told apart; those beyond are not delayed

// Hold takes a packet, of which before bytes precede the IP header, and answers whether
// it is to wait: then a copy of it comes out of Pop, unless a later one tells as much.
func (h *AckHolder) Hold(now int64, before int, packet []byte, f Frame) bool {
	ip := packet[before:]
	n := tcpHeader(ip, f.Transport)
	if f.Protocol != protocolTCP || n == 0 {
		return false
	}
	tcp := ip[f.Transport:]
	key := keyOf(ip, f)
	flags := tcp[13]
	const fin, syn, rst, ack = 1, 2, 4, 16
	if flags&(syn|rst) != 0 {
		h.begin(key, tcp[:n], flags&syn != 0)
		return false
	}
	s := h.flows[key]
	if s == nil {
		return false
	}
	number := binary.BigEndian.Uint32(tcp[8:])
	window := uint32(binary.BigEndian.Uint16(tcp[14:]))
	if !s.begun { // the third packet of a handshake
		s.begun = true
		s.last = number
		s.window = window
		return false
	}
	from := s.last
	if s.packet != nil {
		from = s.told
	}
	step := int(int32(number - from))
	full := s.most
	if option(tcp[:n], 8) > 0 {
		full -= timestampBytes
	}
	switch {
	case len(tcp) > n, flags&fin != 0, flags&ack == 0, window == 0, s.window == 0, hasSACK(tcp[:n]):
	case step < 0, step == 0 && (s.packet == nil && window == s.window || s.packet != nil && window == s.size):
	case int(int32(number-s.last)) >= 2*full && step >= 0 && number != s.last:
	default:
		if s.packet == nil {
			s.until = now + int64(h.Wait)
			h.held = append(h.held, s)
		}
		s.packet = append(s.packet[:0], packet...)
		s.told = number
		s.size = window
		return true
	}
	h.forget(s)
	s.last = number
	s.window = window
	return false
}

// begin notes a flow by its handshake, or its end.
func (h *AckHolder) begin(key flowKey, tcp []byte, starts bool) {
	if s := h.flows[key]; s != nil {
		h.forget(s)
		delete(h.flows, key)
	}
	if !starts || len(h.flows) >= mostFlows {
		return
	}
	if h.flows == nil {
		h.flows = map[flowKey]*ackState{}
	}
	const usual = 536 // RFC 9293 section 3.7.1
	s := &ackState{last: binary.BigEndian.Uint32(tcp[8:]), begun: tcp[13]&16 != 0, window: 1, most: usual}
	if at := option(tcp, 2); at > 0 && tcp[at+1] == 4 {
		s.most = int(binary.BigEndian.Uint16(tcp[at+2:]))
	}
	if h.Segment > 0 {
		s.most = min(s.most, h.Segment)
	}
	h.flows[key] = s
}

// forget drops what a later packet tells as well.
func (h *AckHolder) forget(s *ackState) {
	if s.packet == nil {
		return
	}
	s.packet = nil
	for i, other := range h.held {
		if other == s {
			h.held = append(h.held[:i], h.held[i+1:]...)
			return
		}
	}
}

// Next is when Pop has something, or Never.
func (h *AckHolder) Next() int64 {
	if h == nil || len(h.held) == 0 {
		return Never
	}
	return h.held[0].until
}

// Pop answers the next packet that has waited its time; it is the caller's.
func (h *AckHolder) Pop(now int64) ([]byte, bool) {
	if h.Next() > now {
		return nil, false
	}
	s := h.held[0]
	packet := s.packet
	s.last = s.told
	s.window = s.size
	s.packet = nil
	h.held = h.held[1:]
	return packet, true
}

func keyOf(ip []byte, f Frame) (key flowKey) {
	if f.Version == 4 {
		copy(key[:8], ip[12:20])
	} else {
		copy(key[:32], ip[8:40])
	}
	copy(key[32:], ip[f.Transport:f.Transport+4])
	return key
}

func hasSACK(tcp []byte) bool { return option(tcp, 5) > 0 }

// option is where a TCP header has an option of a kind; 0: nowhere.
func option(tcp []byte, kind byte) int {
	for at := 20; at < len(tcp) && tcp[at] != 0; {
		if tcp[at] == 1 {
			at++
			continue
		}
		if at+1 >= len(tcp) || tcp[at+1] < 2 || at+int(tcp[at+1]) > len(tcp) {
			return 0
		}
		if tcp[at] == kind {
			return at
		}
		at += int(tcp[at+1])
	}
	return 0
}
