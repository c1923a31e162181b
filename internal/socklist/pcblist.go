package socklist

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// macOS's sysctl net.inet.tcp.pcblist_n, which netstat reads and any user may, is a header and, for each connection,
// some records of different kinds. Each starts with its length and kind and is padded to eight bytes; TCP's is the
// last. The layouts (bsd/netinet/in_pcb.h, bsd/netinet/tcp_var.h, bsd/sys/socketvar.h, packed to four bytes) are the
// same from xnu-6153 (macOS 10.15) to xnu-11417 (macOS 15). Numbers are little-endian, which every Mac of those is,
// addresses and ports in the network's order.
const (
	headerSize = 24 // struct xinpgen; another one ends the list

	kindSocket  = 0x01
	kindReceive = 0x02
	kindSend    = 0x04
	kindAddress = 0x10 // struct xinpcb_n
	kindTCP     = 0x20

	sizeSocket  = 84
	sizeBuffer  = 24
	sizeAddress = 80
	sizeTCP     = 170
)

// States of a connection (bsd/netinet/tcp_fsm.h).
const (
	stateEstablished = 4
	stateCloseWait   = 5
	stateFinWait1    = 6
	stateClosing     = 7
	stateLastAck     = 8
	stateFinWait2    = 9
)

// scaled are the flags of a connection whose ends agreed to scale windows (TF_REQ_SCALE, TF_RCVD_SCALE).
const scaled = 0x20 | 0x40

var errCutShort = errors.New("the list of connections is cut short")

// pcb is what the records of one connection said.
type pcb struct {
	Socket
	state, flags       uint32
	una, max, iss      uint32 // sequence numbers of what is sent
	next, irs, granted uint32 // and of what comes: granted is up to where the peer may send
}

// parse calls each with every connection that carries payload, or may. Its argument is valid only during the call.
func parse(list []byte, each func(*pcb)) error {
	le := binary.LittleEndian
	if len(list) < headerSize || le.Uint32(list) < headerSize {
		return errCutShort
	}
	if le.Uint32(list[4:]) == 0 { // nothing follows then
		return nil
	}
	list = list[min(padded(le.Uint32(list)), len(list)):]
	var p pcb
	for have := 0; len(list) >= 8; {
		size := le.Uint32(list)
		kind := le.Uint32(list[4:])
		if size <= headerSize { // the list's end
			return nil
		}
		if uint64(size) > uint64(len(list)) {
			return errCutShort
		}
		record := list[:size]
		list = list[min(padded(size), len(list)):]
		if kind == kindAddress {
			p = pcb{}
			have = 0
		}
		if p.take(kind, record) {
			have |= int(kind)
		}
		const whole = kindSocket | kindReceive | kindSend | kindAddress | kindTCP
		if kind == kindTCP && have == whole && p.finish() {
			each(&p)
		}
	}
	return errCutShort
}

func padded(size uint32) int { return int((uint64(size) + 7) &^ 7) }

// take reads one record; false: it is of no use.
func (p *pcb) take(kind uint32, b []byte) bool {
	le := binary.LittleEndian
	switch {
	case kind == kindAddress && len(b) >= sizeAddress:
		v4 := b[44]&1 != 0
		p.Remote = netip.AddrPortFrom(address(b[48:64], v4), binary.BigEndian.Uint16(b[16:]))
		p.Local = netip.AddrPortFrom(address(b[64:80], v4), binary.BigEndian.Uint16(b[18:]))
	case kind == kindSocket && len(b) >= sizeSocket:
		p.UID = le.Uint32(b[64:])
		p.PID = int(int32(le.Uint32(b[68:])))
		p.Key = le.Uint64(b[76:])
	case kind == kindReceive && len(b) >= sizeBuffer:
		p.Unread = int64(le.Uint32(b[8:]))
		p.ReceiveBuffer = int64(le.Uint32(b[12:]))
	case kind == kindSend && len(b) >= sizeBuffer:
		p.Unacked = int64(le.Uint32(b[8:]))
		p.SendBuffer = int64(le.Uint32(b[12:]))
		p.SendQueued = p.Unacked // or what the memory that it lies in takes, of what such memory may take
		if most := int64(le.Uint32(b[20:])); most > 0 {
			p.SendQueued = max(p.SendQueued, p.SendBuffer*int64(le.Uint32(b[16:]))/most)
		}
	case kind == kindTCP && len(b) >= sizeTCP:
		p.takeTCP(b)
	default:
		return false
	}
	return true
}

func address(b []byte, v4 bool) netip.Addr {
	if v4 {
		return netip.AddrFrom4([4]byte(b[12:16]))
	}
	whole := [16]byte(b)
	if whole[0] == 0xfe && whole[1]&0xc0 == 0x80 { // of a link-local one the kernel keeps the interface's number within
		whole[2] = 0
		whole[3] = 0
	}
	return netip.AddrFrom16(whole).Unmap()
}

// takeTCP reads struct xtcpcb_n.
func (p *pcb) takeTCP(b []byte) {
	at := func(offset int) uint32 { return binary.LittleEndian.Uint32(b[offset:]) }
	p.state = at(36)
	p.flags = at(40)
	p.una = at(48)
	p.max = at(52)
	p.iss = at(72)
	p.irs = at(76)
	p.next = at(80)
	p.granted = at(84)
	s := &p.Sample
	s.SendWnd = int64(at(96))
	s.Cwnd = int64(at(100))
	s.Ssthresh = int64(at(104))
	// Smoothed times are milliseconds with five bits behind the point, their deviation has four (TCP_RTT_SHIFT,
	// TCP_RTTVAR_SHIFT).
	s.RTT = time.Duration(at(136)) * time.Millisecond >> 5
	s.RTTVar = time.Duration(at(140)) * time.Millisecond >> 4
	whole := int(at(108))
	payload := int(at(132)) // of the largest segment; timestamps are 12 bytes of it
	p.Handshake = transfer.Handshake{MSS: payload, Timestamps: whole-payload >= 12, SendScale: -1, ReceiveScale: -1}
	if p.flags&scaled == scaled {
		p.Handshake.SendScale = int(b[166])
		p.Handshake.ReceiveScale = int(b[167])
	}
}

// finish computes the counters from sequence numbers. It returns false where no payload can move or the system does not
// report it (of programs with a TCP of their own it lists addresses only).
func (p *pcb) finish() bool {
	switch p.state {
	case stateEstablished, stateCloseWait, stateFinWait1, stateFinWait2, stateClosing, stateLastAck:
	default:
		return false
	}
	if p.iss == 0 && p.una == 0 && p.irs == 0 && p.next == 0 {
		return false
	}
	p.Established = p.state == stateEstablished
	p.PeerClosed = p.state == stateCloseWait || p.state == stateClosing || p.state == stateLastAck
	if p.PeerClosed {
		p.next-- // its FIN
	}
	s := &p.Sample
	s.InFlight = min(int64(p.max-p.una), p.Unacked) // a FIN is none
	s.NotSent = p.Unacked - s.InFlight
	s.Acked = int64(p.una - p.iss - 1)
	s.Received = int64(p.next - p.irs - 1)
	if p.state == stateFinWait2 { // our FIN was acknowledged
		s.Acked--
	}
	s.Acked = max(s.Acked, 0)
	if s.Acked == 1<<32-1 { // not even the SYN was acknowledged
		s.Acked = 0
	}
	s.Sent = s.Acked + s.InFlight
	if open := int32(p.granted - p.next); open > 0 {
		s.ReceiveWnd = int64(open)
	}
	s.Have = transfer.HaveRTT | transfer.HaveCwnd | transfer.HaveSendWnd | transfer.HaveInFlight | transfer.HaveNotSent |
		transfer.HaveAcked | transfer.HaveReceived | transfer.HaveReceiveWnd
	return true
}

// wrapped has a connection's last sequence numbers as whole numbers: the numbers themselves begin again after 4 GiB.
type wrapped struct {
	known           bool
	acked, received int64
}

// unwrap extends a connection's sequence numbers. Between two lists less than 2 GiB may move, which in a quarter of a
// second takes 64 Gbit/s.
func (p *pcb) unwrap(was *wrapped) {
	s := &p.Sample
	if !was.known {
		*was = wrapped{true, s.Acked, s.Received}
	}
	was.acked += max(int64(int32(uint32(s.Acked)-uint32(was.acked))), 0)
	was.received += max(int64(int32(uint32(s.Received)-uint32(was.received))), 0)
	s.Sent += was.acked - s.Acked
	s.Acked = was.acked
	s.Received = was.received
}
