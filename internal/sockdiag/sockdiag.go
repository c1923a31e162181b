// Package sockdiag reads the kernel's records of TCP sockets through sock_diag(7): all sockets of a network namespace
// by a dump, single ones by exact lookups, and the last records of those that end by the destroy multicast. It needs no
// privilege; each field documents where one adds something. The layouts are Linux's (include/uapi/linux/inet_diag.h,
// sock_diag.h); other systems return socket.ErrNotSupported.
package sockdiag

import (
	"net/netip"
)

// State is a socket's state (include/net/tcp_states.h).
type State uint8

const (
	Established State = 1
	SynSent     State = 2
	SynReceived State = 3
	FinWait1    State = 4
	FinWait2    State = 5
	TimeWait    State = 6
	Closed      State = 7
	CloseWait   State = 8
	LastAck     State = 9
	Listening   State = 10
	Closing     State = 11
)

// States is a set of states.
type States uint32

// Of is the set of the given states.
func Of(states ...State) (set States) {
	for _, s := range states {
		set |= 1 << s
	}
	return set
}

// Connected are the states in which a socket carries, or still has to carry, payload.
var Connected = Of(Established, FinWait1, CloseWait, Closing, LastAck)

// NotListening are all states but Listening.
const NotListening = ^States(1 << Listening)

// Ask selects the optional parts of a socket's record in a dump or a lookup.
type Ask uint8

const (
	AskInfo       Ask = 1 << (attrInfo - 1)       // Socket.Info
	AskCongestion Ask = 1 << (attrCongestion - 1) // Socket.Congestion
	AskMemory     Ask = 1 << (attrMemory - 1)     // Socket.Memory
)

// ID names one socket for an exact lookup: its family, ports, addresses, interface and cookie, as in the kernel's
// record. IDs can be compared.
type ID struct {
	family byte
	raw    [idSize]byte // struct inet_diag_sockid
}

// Cookie is the number that no other socket of this boot has had.
func (id ID) Cookie() uint64 { return cookieOf(id.raw[:]) }

// Ends are its addresses, IPv4 mapped into IPv6 as IPv4.
func (id ID) Ends() (local, remote netip.AddrPort) {
	return netip.AddrPortFrom(address(id.family, id.raw[4:20]), be.Uint16(id.raw[0:])),
		netip.AddrPortFrom(address(id.family, id.raw[20:36]), be.Uint16(id.raw[2:]))
}

// Memory is the socket's buffers, in bytes (SK_MEMINFO).
type Memory struct {
	ReceiveBuffer, SendBuffer uint32
	SendQueued                uint32 // the used part of the send buffer
}

// Socket is the kernel's record of one socket. It is valid only during the call that receives it: Info and Congestion
// share the reader's buffer. Clone copies it.
type Socket struct {
	Family        uint8 // AF_INET or AF_INET6
	State         State
	Local, Remote netip.AddrPort // IPv4 mapped into IPv6 appears as IPv4
	Cookie        uint64
	UID           uint32
	Inode         uint32 // 0: no process has it open
	// ReadQueue is what waits to be read, in bytes; of a listener the connections that wait
	// to be accepted. WriteQueue is what is not yet acknowledged or sent; of a listener how
	// many may wait.
	ReadQueue, WriteQueue uint32

	Info       []byte // struct tcp_info, as long as this kernel has it
	Congestion []byte // name of the congestion control
	Cgroup     uint64 // inode of the cgroup v2 directory in which the socket was created; 0: not known
	HasMemory  bool
	Memory     Memory

	id [idSize]byte
}

// ID is the socket's, for a later look-up.
func (s *Socket) ID() ID { return ID{s.Family, s.id} }

// Clone is a copy that stays.
func (s *Socket) Clone() *Socket {
	c := *s
	c.Info = append([]byte(nil), s.Info...)
	c.Congestion = append([]byte(nil), s.Congestion...)
	return &c
}
