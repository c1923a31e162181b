package sockdiag

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"syscall"
)

// Sizes, message types and attributes (include/uapi/linux/netlink.h, sock_diag.h,
// inet_diag.h).
const (
	headerSize  = 16 // struct nlmsghdr
	requestSize = 56 // struct inet_diag_req_v2
	oldSize     = 60 // struct inet_diag_req
	messageSize = 72 // struct inet_diag_msg
	idAt        = 4  // of struct inet_diag_sockid in the message
	idSize      = 48

	flagRequest = 0x1   // NLM_F_REQUEST
	flagDump    = 0x300 // NLM_F_DUMP

	typeError    = 2  // NLMSG_ERROR
	typeDone     = 3  // NLMSG_DONE
	typeTCP      = 18 // TCPDIAG_GETSOCK
	typeByFamily = 20

	attrInfo       = 2
	attrCongestion = 4
	attrMemory     = 7
	attrCgroup     = 21

	familyIPv4 = 2 // AF_INET; Linux's AF_INET6 is 10
	familyIPv6 = 10
	protoTCP   = 6
)

var ne, be = binary.NativeEndian, binary.BigEndian

func align4(n int) int { return (n + 3) &^ 3 }

func cookieOf(id []byte) uint64 { return uint64(ne.Uint32(id[40:])) | uint64(ne.Uint32(id[44:]))<<32 }

// messages parses one datagram of netlink messages into s. It calls each after every socket and failed with every error
// of the kernel. done reports the end of a dump.
func messages(b []byte, s *Socket, each func(*Socket), failed func(error)) (done bool, err error) {
	for len(b) >= headerSize {
		length := int(ne.Uint32(b))
		if length < headerSize || length > len(b) {
			return false, errors.New("a message longer than its datagram")
		}
		body := b[headerSize:length]
		switch ne.Uint16(b[4:]) {
		case typeDone: // with the error that ended the dump, or 0
			if len(body) >= 4 && int32(ne.Uint32(body)) < 0 {
				failed(syscall.Errno(-int32(ne.Uint32(body))))
			}
			return true, nil
		case typeError:
			if len(body) < 4 {
				return false, errors.New("an error without a number")
			}
			var answer error
			if errno := int32(ne.Uint32(body)); errno != 0 {
				answer = syscall.Errno(-errno)
			}
			failed(answer)
		case typeByFamily, typeTCP:
			if err := s.parse(body); err != nil {
				return false, err
			}
			each(s)
		}
		b = b[min(align4(length), len(b)):]
	}
	return false, nil
}

// parse reads struct inet_diag_msg and its attributes.
func (s *Socket) parse(b []byte) error {
	if len(b) < messageSize {
		return fmt.Errorf("a socket's message of %d bytes, less than %d", len(b), messageSize)
	}
	*s = Socket{
		Family: b[0], State: State(b[1]), id: [idSize]byte(b[idAt:]), Cookie: cookieOf(b[idAt:]),
		ReadQueue: ne.Uint32(b[56:]), WriteQueue: ne.Uint32(b[60:]), UID: ne.Uint32(b[64:]), Inode: ne.Uint32(b[68:]),
	}
	s.Local = netip.AddrPortFrom(address(s.Family, b[8:24]), be.Uint16(b[4:]))
	s.Remote = netip.AddrPortFrom(address(s.Family, b[24:40]), be.Uint16(b[6:]))
	for b = b[messageSize:]; len(b) >= 4; {
		length := int(ne.Uint16(b))
		if length < 4 || length > len(b) {
			return errors.New("an attribute longer than its message")
		}
		s.attribute(ne.Uint16(b[2:]), b[4:length])
		b = b[min(align4(length), len(b)):]
	}
	return nil
}

func address(family byte, b []byte) netip.Addr {
	if family == familyIPv4 {
		return netip.AddrFrom4([4]byte(b))
	}
	return netip.AddrFrom16([16]byte(b)).Unmap()
}

func (s *Socket) attribute(kind uint16, value []byte) {
	u32 := func(i int) uint32 { return ne.Uint32(value[4*i:]) }
	switch {
	case kind == attrInfo:
		s.Info = value
	case kind == attrCongestion:
		for len(value) > 0 && value[len(value)-1] == 0 {
			value = value[:len(value)-1]
		}
		s.Congestion = value
	case kind == attrMemory && len(value) >= 4*9:
		s.HasMemory = true
		s.Memory = Memory{ReceiveBuffer: u32(1), SendBuffer: u32(3), SendQueued: u32(5)}
	case kind == attrCgroup && len(value) >= 8:
		s.Cgroup = ne.Uint64(value)
	}
}

// request appends a question to b: a dump of a family, or one socket.
func request(b []byte, flags uint16, sequence uint32, id ID, states States, ask Ask, filter []byte) []byte {
	b = ne.AppendUint32(b, uint32(headerSize+requestSize+len(filter)))
	b = ne.AppendUint16(b, typeByFamily)
	b = ne.AppendUint16(b, flags)
	b = ne.AppendUint32(b, sequence)
	b = ne.AppendUint32(b, 0) // port: the kernel's
	b = append(b, id.family, protoTCP, byte(ask), 0)
	b = ne.AppendUint32(b, uint32(states))
	b = append(b, id.raw[:]...)
	return append(b, filter...)
}

// requestAll appends the question for a dump of both families at once, as Linux had it before it
// knew sockets by family. The kernel walks its table of all namespaces' sockets once for it, and
// not once for each family.
func requestAll(b []byte, sequence uint32, states States, ask Ask, filter []byte) []byte {
	b = ne.AppendUint32(b, uint32(headerSize+oldSize+len(filter)))
	b = ne.AppendUint16(b, typeTCP)
	b = ne.AppendUint16(b, flagRequest|flagDump)
	b = ne.AppendUint32(b, sequence)
	b = ne.AppendUint32(b, 0)
	b = append(b, familyIPv4, 0, 0, byte(ask)) // the family is not looked at
	b = append(b, make([]byte, idSize)...)
	b = ne.AppendUint32(b, uint32(states))
	b = ne.AppendUint32(b, 0)
	return append(b, filter...)
}

// cgroupFilter is the attribute of a request (INET_DIAG_REQ_BYTECODE) that selects the sockets of one cgroup v2: a
// program of one operation (inet_diag_bc_run, net/ipv4/inet_diag.c) whose jumps are 4 bytes beyond its end, which
// rejects, and to its end, which accepts.
func cgroupFilter(inode uint64) []byte {
	const attribute, operation, length = 1, 13, 12 // INET_DIAG_BC_CGROUP_COND, struct inet_diag_bc_op and the inode
	b := ne.AppendUint16(nil, 4+length)
	b = append(ne.AppendUint16(b, attribute), operation, length)
	b = ne.AppendUint16(b, length+4)
	return ne.AppendUint64(b, inode)
}
