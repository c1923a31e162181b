//go:build !portable

package socket

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var endOfRTOs = unsafe.Offsetof(unix.TCPInfo{}.Total_rto_time) + 4

func (s *stream) repairs() Repairs {
	if s.asked.read(s.fd) != nil {
		return Repairs{}
	}
	return s.asked.repairs()
}

func repairsOf(conn syscall.Conn) (r Repairs) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return r
	}
	raw.Control(func(fd uintptr) {
		var info tcpInfo
		if info.read(int(fd)) == nil {
			r = info.repairs()
		}
	})
	return r
}

func (i *tcpInfo) repairs() Repairs {
	r := Repairs{Retransmitted: int64(i.Total_retrans), Bytes: -1, RTOs: -1, RTT: micros(i.Rtt), MSS: int64(i.Snd_mss),
		Known: i.has(endOfRetrans)}
	if i.has(endOfSent) {
		r.Bytes = int64(i.Bytes_retrans)
	}
	if i.has(endOfRTOs) {
		r.RTOs = int64(i.Total_rto)
	}
	if i.has(endOfMinRTT) && i.Min_rtt != 1<<32-1 {
		r.MinRTT = micros(i.Min_rtt)
	}
	return r
}

func (s *stream) send(b []byte) (int, error) {
	n, err := unix.Write(s.fd, b)
	switch {
	case errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR):
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("write", err)
	}
	return n, nil
}

func (s *stream) redial(to netip.AddrPort, timeout time.Duration) error {
	if s.fd >= 0 {
		unix.Close(s.fd)
		s.fd = -1
	}
	family := unix.AF_INET6
	if to.Addr().Is4() {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.IPPROTO_TCP)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	s.fd = fd
	s.remote = to
	err = s.options.Route.Bind(uintptr(fd), family == unix.AF_INET6)
	if err == nil {
		err = apply(fd, s.options)
	}
	if err == nil {
		err = s.setNoDelay(s.options.NoDelay)
	}
	if from := s.options.Route.From; err == nil && from.IsValid() {
		err = os.NewSyscallError("bind", unix.Bind(fd, s.address(netip.AddrPortFrom(from, 0))))
	}
	if err != nil {
		return err
	}
	err = unix.Connect(fd, s.address(to))
	if errors.Is(err, unix.EINPROGRESS) {
		return s.connected(timeout)
	}
	return os.NewSyscallError("connect", err)
}

// connected waits for the handshake.
func (s *stream) connected(timeout time.Duration) error {
	if err := s.waitWrite(timeout); err != nil {
		return err
	}
	if s.polled[1].Revents == 0 {
		return os.NewSyscallError("connect", unix.ETIMEDOUT)
	}
	if s.polled[1].Revents&(unix.POLLERR|unix.POLLHUP) == 0 {
		return nil
	}
	errno, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && errno != 0 {
		err = unix.Errno(errno)
	}
	return os.NewSyscallError("connect", err)
}

// address returns a socket address in memory of s.
func (s *stream) address(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		s.inet4 = unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
		return &s.inet4
	}
	s.inet6 = unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16(), ZoneId: zone(a.Addr().Zone())}
	return &s.inet6
}

// zone returns the index of an interface that the address names by its number or its name.
func zone(name string) uint32 {
	if name == "" {
		return 0
	}
	if n, err := strconv.ParseUint(name, 10, 32); err == nil {
		return uint32(n)
	}
	i, err := net.InterfaceByName(name)
	if err != nil {
		return 0
	}
	return uint32(i.Index)
}
