package socket

import (
	"net"

	"golang.org/x/sys/unix"
)

// bindDevice is ip(4)'s IP_BOUND_IF and ip6(4)'s IPV6_BOUND_IF.
func bindDevice(fd uintptr, device string, six bool) error {
	i, err := net.InterfaceByName(device)
	if err != nil {
		return err
	}
	if six {
		return unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_BOUND_IF, i.Index)
	}
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_BOUND_IF, i.Index)
}
