//go:build !portable

package socket

import (
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// reservePorts binds sockets to the ports. The connections share these by SO_REUSEADDR, which is possible where no
// socket listens.
func reservePorts(family netip.Addr, n int) (ports []uint16, release func(), err error) {
	var bound []int
	release = func() {
		for _, fd := range bound {
			unix.Close(fd)
		}
	}
	for len(bound) < n && err == nil {
		var fd int
		var port uint16
		fd, port, err = reservePort(family)
		if err == nil {
			bound = append(bound, fd)
			ports = append(ports, port)
		}
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return ports, release, nil
}

func reservePort(family netip.Addr) (fd int, port uint16, err error) {
	domain := unix.AF_INET
	var any unix.Sockaddr = &unix.SockaddrInet4{}
	if family.Is6() && !family.Is4In6() {
		domain = unix.AF_INET6
		any = &unix.SockaddrInet6{}
	}
	fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, 0, os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	if err := setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, "SO_REUSEADDR", 1); err != nil {
		return -1, 0, err
	}
	if err := unix.Bind(fd, any); err != nil {
		return -1, 0, os.NewSyscallError("bind", err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		return -1, 0, os.NewSyscallError("getsockname", err)
	}
	switch at := name.(type) {
	case *unix.SockaddrInet4:
		return fd, uint16(at.Port), nil
	case *unix.SockaddrInet6:
		return fd, uint16(at.Port), nil
	}
	return -1, 0, notSupported("ports of this family")
}
