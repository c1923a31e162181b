package link

import (
	"encoding/binary"
	"time"
)

// AckHolder delays acknowledgements as old systems did. A bare acknowledgement of less than two full segments waits
// up to Wait for a later one (RFC 1122 section 4.2.3.2). Duplicates, SACK blocks, data and flags go at once. Not
// safe for concurrent use.
type AckHolder struct {
	Wait time.Duration
	// Segment is the largest payload in bytes of a segment without options; 0 takes it from the handshake.
	Segment int
	flows   map[flowKey]*ackState
	pending []*ackState // in order of expiry
}

// flowKey is the addresses and ports of a packet.
type flowKey [36]byte

type ackState struct {
	lastAck, lastWindow    uint32 // of the last acknowledgement that left
	ackKnown               bool   // last is set
	full                   int    // payload of a full segment without options
	packet                 []byte // the waiting packet, or nil
	pendingAck, nextWindow uint32 // acknowledgement number and window of packet
	until                  int64
}

const timestampBytes = 12 // of every segment, with their padding

const maxFlows = 1 << 14 // later flows are not delayed

// Hold reports whether packet must wait; its IP header starts at offset before. Pop returns a copy later, unless a
// newer acknowledgement replaces it.
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
	if !s.ackKnown { // the third packet of a handshake
		s.ackKnown = true
		s.lastAck = number
		s.lastWindow = window
		return false
	}
	from := s.lastAck
	if s.packet != nil {
		from = s.pendingAck
	}
	step := int(int32(number - from))
	full := s.full
	if option(tcp[:n], 8) > 0 {
		full -= timestampBytes
	}
	switch {
	case len(tcp) > n, flags&fin != 0, flags&ack == 0, window == 0, s.lastWindow == 0, hasSACK(tcp[:n]):
	case step < 0, step == 0 && (s.packet == nil && window == s.lastWindow || s.packet != nil && window == s.nextWindow):
	case int(int32(number-s.lastAck)) >= 2*full && step >= 0 && number != s.lastAck:
	default:
		if s.packet == nil {
			s.until = now + int64(h.Wait)
			h.pending = append(h.pending, s)
		}
		s.packet = append(s.packet[:0], packet...)
		s.pendingAck = number
		s.nextWindow = window
		return true
	}
	h.forget(s)
	s.lastAck = number
	s.lastWindow = window
	return false
}

// begin records a flow at its handshake and removes it at its end.
func (h *AckHolder) begin(key flowKey, tcp []byte, starts bool) {
	if s := h.flows[key]; s != nil {
		h.forget(s)
		delete(h.flows, key)
	}
	if !starts || len(h.flows) >= maxFlows {
		return
	}
	if h.flows == nil {
		h.flows = map[flowKey]*ackState{}
	}
	const usual = 536 // RFC 9293 section 3.7.1
	s := &ackState{lastAck: binary.BigEndian.Uint32(tcp[8:]), ackKnown: tcp[13]&16 != 0, lastWindow: 1, full: usual}
	if at := option(tcp, 2); at > 0 && tcp[at+1] == 4 {
		s.full = int(binary.BigEndian.Uint16(tcp[at+2:]))
	}
	if h.Segment > 0 {
		s.full = min(s.full, h.Segment)
	}
	h.flows[key] = s
}

// forget drops an acknowledgement that a later packet replaces.
func (h *AckHolder) forget(s *ackState) {
	if s.packet == nil {
		return
	}
	s.packet = nil
	for i, other := range h.pending {
		if other == s {
			h.pending = append(h.pending[:i], h.pending[i+1:]...)
			return
		}
	}
}

// Next returns the time of the next packet, or Never.
func (h *AckHolder) Next() int64 {
	if h == nil || len(h.pending) == 0 {
		return Never
	}
	return h.pending[0].until
}

// Pop returns the next packet whose delay is over. The caller owns it.
func (h *AckHolder) Pop(now int64) ([]byte, bool) {
	if h.Next() > now {
		return nil, false
	}
	s := h.pending[0]
	packet := s.packet
	s.lastAck = s.pendingAck
	s.lastWindow = s.nextWindow
	s.packet = nil
	h.pending = h.pending[1:]
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

// option returns the offset of a TCP option, or 0.
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
