package steer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Sizes and attributes of sock_diag(7) (include/uapi/linux/inet_diag.h, sock_diag.h).
const (
	diagRequestSize = 56
	diagMessageSize = 72

	diagByFamily = 20 // SOCK_DIAG_BY_FAMILY

	attrInfo   = 2 // INET_DIAG_INFO
	attrCong   = 4 // INET_DIAG_CONG
	attrMemory = 7 // INET_DIAG_SKMEMINFO

	requestBytecode = 1  // INET_DIAG_REQ_BYTECODE
	cgroupCondition = 13 // INET_DIAG_BC_CGROUP_COND, Linux 5.8

	groupTCPDestroy  = 1 // SKNLGRP_INET_TCP_DESTROY
	groupTCP6Destroy = 3 // SKNLGRP_INET6_TCP_DESTROY

	memReceive  = 1 // SK_MEMINFO_RCVBUF
	memSend     = 3 // SK_MEMINFO_SNDBUF
	memSendUsed = 5 // SK_MEMINFO_WMEM_QUEUED
)

// socketState is what sock_diag says of one socket.
type socketState struct {
	cookie        uint64
	inode         uint32 // 0: no process has it open
	local, remote netip.AddrPort
	unread        int64
	unacked       int64  // and unsent
	info          []byte // struct tcp_info, as long as this kernel has it
	congestion    string
	send, receive int // sk_sndbuf, sk_rcvbuf; 0: not told
}

// diag asks the kernel for the sockets of one cgroup.
type diag struct {
	fd     int
	cgroup uint64
	buf    []byte
	seq    uint32
}

func newDiag(cgroup uint64, groups ...int) (*diag, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	d := &diag{fd: fd, cgroup: cgroup, buf: make([]byte, 64<<10)}
	err = unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	for _, g := range groups {
		if err == nil {
			err = unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, g)
		}
	}
	if err == nil && len(groups) > 0 {
		// Room for a burst of closing sockets; without the privilege the default serves.
		if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 4<<20) != nil {
			_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 4<<20)
		}
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("sock_diag: %w", err)
	}
	return d, nil
}

func (d *diag) close() { unix.Close(d.fd) }

// each calls do with every TCP socket of the cgroup that is not listening.
func (d *diag) each(do func(socketState)) error {
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		d.seq++
		if err := unix.Sendto(d.fd, d.request(family), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
		for done := false; !done; {
			n, _, err := unix.Recvfrom(d.fd, d.buf, 0)
			if err != nil {
				if errors.Is(err, unix.EINTR) {
					continue
				}
				return fmt.Errorf("sock_diag: %w", err)
			}
			if done, err = messages(d.buf[:n], do); err != nil {
				return fmt.Errorf("sock_diag: %w", err)
			}
		}
	}
	return nil
}

func (d *diag) request(family byte) []byte {
	const states = ^uint32(1 << 10) // all but TCP_LISTEN
	bytecode := 4 + 12
	b := make([]byte, 0, unix.NLMSG_HDRLEN+diagRequestSize+bytecode)
	ne := binary.NativeEndian
	b = ne.AppendUint32(b, uint32(cap(b)))
	b = ne.AppendUint16(b, diagByFamily)
	b = ne.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_DUMP)
	b = ne.AppendUint32(b, d.seq)
	b = ne.AppendUint32(b, 0)
	b = append(b, family, unix.IPPROTO_TCP, 1<<(attrInfo-1)|1<<(attrCong-1)|1<<(attrMemory-1), 0)
	b = ne.AppendUint32(b, states)
	b = append(b, make([]byte, 48)...)
	b = ne.AppendUint16(b, uint16(bytecode))
	b = ne.AppendUint16(b, requestBytecode)
	// One condition: true goes past the end (accept), false four bytes further (reject).
	b = append(b, cgroupCondition, 12)
	b = ne.AppendUint16(b, 16)
	return ne.AppendUint64(b, d.cgroup)
}

// destroyed calls do with every socket that ended since the last call, without waiting.
func (d *diag) destroyed(do func(socketState)) error {
	for {
		n, _, err := unix.Recvfrom(d.fd, d.buf, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ENOBUFS): // ENOBUFS: some were lost; they count as not final
			continue
		case err != nil:
			return fmt.Errorf("sock_diag: %w", err)
		}
		if _, err := messages(d.buf[:n], do); err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
	}
}

// messages walks one datagram of netlink messages; done says that the dump has ended.
func messages(b []byte, do func(socketState)) (done bool, err error) {
	for len(b) >= unix.NLMSG_HDRLEN {
		length := int(binary.NativeEndian.Uint32(b))
		if length < unix.NLMSG_HDRLEN || length > len(b) {
			return false, errors.New("a message longer than its datagram")
		}
		body := b[unix.NLMSG_HDRLEN:length]
		switch binary.NativeEndian.Uint16(b[4:]) {
		case unix.NLMSG_DONE:
			return true, nil
		case unix.NLMSG_ERROR:
			if len(body) >= 4 {
				if errno := int32(binary.NativeEndian.Uint32(body)); errno != 0 {
					return true, unix.Errno(-errno)
				}
			}
			return true, nil
		case diagByFamily:
			if s, ok := parseSocket(body); ok {
				do(s)
			}
		}
		b = b[min(align4(length), len(b)):]
	}
	return false, nil
}

func parseSocket(b []byte) (socketState, bool) {
	if len(b) < diagMessageSize {
		return socketState{}, false
	}
	be, ne := binary.BigEndian, binary.NativeEndian
	family := b[0]
	addr := func(at int) netip.Addr {
		if family == unix.AF_INET {
			return netip.AddrFrom4([4]byte(b[at : at+4]))
		}
		return netip.AddrFrom16([16]byte(b[at : at+16])).Unmap()
	}
	s := socketState{
		local:  netip.AddrPortFrom(addr(8), be.Uint16(b[4:])),
		remote: netip.AddrPortFrom(addr(24), be.Uint16(b[6:])),
		cookie: uint64(ne.Uint32(b[44:])) | uint64(ne.Uint32(b[48:]))<<32,
		inode:  ne.Uint32(b[68:]),
		unread: int64(ne.Uint32(b[56:])), unacked: int64(ne.Uint32(b[60:])),
	}
	for b = b[diagMessageSize:]; len(b) >= 4; {
		length := int(ne.Uint16(b))
		if length < 4 || length > len(b) {
			break
		}
		value := b[4:length]
		switch ne.Uint16(b[2:]) {
		case attrInfo:
			s.info = append([]byte(nil), value...)
		case attrCong:
			s.congestion = unix.ByteSliceToString(value)
		case attrMemory:
			if len(value) >= 4*(memSendUsed+1) {
				s.receive, s.send = int(ne.Uint32(value[4*memReceive:])), int(ne.Uint32(value[4*memSend:]))
			}
		}
		b = b[min(align4(length), len(b)):]
	}
	return s, true
}

func align4(n int) int { return (n + 3) &^ 3 }
