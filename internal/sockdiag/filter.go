package sockdiag

import (
	"fmt"
	"net/netip"
)

// Filter is what the kernel holds every socket of a dump against before it tells it; the
// zero Filter passes all. It is the kernel's bytecode (inet_diag_bc_run in
// net/ipv4/inet_diag.c), which knows no queue, no byte count and no rate.
type Filter struct {
	conditions []condition
}

// condition is one operation without its jumps, and whether it shall not hold.
type condition struct {
	code   byte
	body   []byte
	negate bool
}

// Operations (INET_DIAG_BC_*).
const (
	opJump       = 1
	opLocalFrom  = 2 // S_GE
	opLocalTo    = 3 // S_LE
	opRemoteFrom = 4 // D_GE
	opRemoteTo   = 5 // D_LE
	opLocalHost  = 7 // S_COND
	opRemoteHost = 8 // D_COND
	opCgroup     = 13

	opSize     = 4 // struct inet_diag_bc_op
	filterAttr = 1 // INET_DIAG_REQ_BYTECODE
	anyPort    = 0xffffffff
	mostFilter = 1 << 15 // bytes: jumps are of 16 bits
)

func (f Filter) and(conditions ...condition) Filter {
	return Filter{append(append([]condition(nil), f.conditions...), conditions...)}
}

func portOperand(port uint16) []byte {
	b := make([]byte, opSize) // a second operation, of which only "no" is read
	ne.PutUint16(b[2:], port)
	return b
}

// LocalPorts passes sockets whose local port lies between first and last, both included.
func (f Filter) LocalPorts(first, last uint16) Filter {
	return f.and(condition{code: opLocalFrom, body: portOperand(first)}, condition{code: opLocalTo,
		body: portOperand(last)})
}

// RemotePorts passes sockets whose remote port lies between first and last, both included.
func (f Filter) RemotePorts(first, last uint16) Filter {
	return f.and(condition{code: opRemoteFrom, body: portOperand(first)}, condition{code: opRemoteTo,
		body: portOperand(last)})
}

func hostOperand(p netip.Prefix) []byte {
	family := byte(familyIPv4)
	if p.Addr().Is6() {
		family = familyIPv6
	}
	// struct inet_diag_hostcond
	b := append([]byte{family, byte(p.Bits()), 0, 0}, ne.AppendUint32(nil, anyPort)...)
	return append(b, p.Masked().Addr().AsSlice()...)
}

// Remote passes sockets whose far end lies in the prefix.
func (f Filter) Remote(p netip.Prefix) Filter {
	return f.and(condition{code: opRemoteHost, body: hostOperand(p)})
}

// NotRemote passes sockets whose far end does not lie in the prefix.
func (f Filter) NotRemote(p netip.Prefix) Filter {
	return f.and(condition{code: opRemoteHost, body: hostOperand(p), negate: true})
}

// Local passes sockets whose own address lies in the prefix.
func (f Filter) Local(p netip.Prefix) Filter {
	return f.and(condition{code: opLocalHost, body: hostOperand(p)})
}

// Cgroup passes sockets that were made in the cgroup v2 directory of that inode, or below
// it (Linux 5.8).
func (f Filter) Cgroup(inode uint64) Filter {
	return f.and(condition{code: opCgroup, body: ne.AppendUint64(nil, inode)})
}

// attribute is the filter as the attribute of a request; nil for the one that passes all.
func (f Filter) attribute() ([]byte, error) {
	if len(f.conditions) == 0 {
		return nil, nil
	}
	size := 0
	for _, c := range f.conditions {
		size += c.size()
	}
	if size > mostFilter {
		return nil, fmt.Errorf("sock_diag: a filter of %d bytes, more than %d", size, mostFilter)
	}
	b := ne.AppendUint16(make([]byte, 0, 4+size), uint16(4+size))
	b = ne.AppendUint16(b, filterAttr)
	// A jump to the end passes, one four bytes behind it rejects.
	for left := size; len(f.conditions) > 0; f.conditions = f.conditions[1:] {
		c := f.conditions[0]
		length := opSize + len(c.body)
		reject := uint16(left + 4)
		if c.negate {
			b = append(b, c.code, byte(length)) // to the jump that rejects
			b = ne.AppendUint16(b, uint16(length+opSize))
			b = append(b, c.body...)
			b = append(b, opJump, opSize)
			b = ne.AppendUint16(b, reject-uint16(length))
		} else {
			b = append(b, c.code, byte(length))
			b = ne.AppendUint16(b, reject)
			b = append(b, c.body...)
		}
		left -= c.size()
	}
	return b, nil
}

// sameFilter says whether two filters are one and the same value.
func sameFilter(a, b Filter) bool {
	return len(a.conditions) == len(b.conditions) && (len(a.conditions) == 0 || &a.conditions[0] == &b.conditions[0])
}

func (c condition) size() int {
	if c.negate {
		return opSize + len(c.body) + opSize
	}
	return opSize + len(c.body)
}
