package path

import (
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

func listenEcho(six, raw bool, by socket.Route) (net.PacketConn, error) {
	family := unix.AF_INET
	protocol := unix.IPPROTO_ICMP
	kind := unix.SOCK_DGRAM
	if six {
		family = unix.AF_INET6
		protocol = unix.IPPROTO_ICMPV6
	}
	if raw {
		kind = unix.SOCK_RAW
	}
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	f := os.NewFile(uintptr(fd), "icmp")
	defer f.Close()
	if err := by.Bind(uintptr(fd), six); err != nil {
		return nil, err
	}
	if by.From.IsValid() {
		var from unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte(by.From.AsSlice()[:4])}
		if six {
			link, _ := net.InterfaceByName(by.From.Zone())
			from = &unix.SockaddrInet6{Addr: by.From.As16(), ZoneId: zone(link)}
		}
		if err := unix.Bind(fd, from); err != nil {
			return nil, os.NewSyscallError("bind", err)
		}
	}
	return net.FilePacketConn(f)
}

func zone(link *net.Interface) uint32 {
	if link == nil {
		return 0
	}
	return uint32(link.Index)
}

// dontFragment sets the DF bit and ignores the cached path MTU (IP_PMTUDISC_PROBE): packets up to the first link's
// MTU leave.
func dontFragment(conn net.PacketConn, six bool) error {
	level := unix.IPPROTO_IP
	option := unix.IP_MTU_DISCOVER
	value := unix.IP_PMTUDISC_PROBE
	if six {
		level = unix.IPPROTO_IPV6
		option = unix.IPV6_MTU_DISCOVER
		value = unix.IPV6_PMTUDISC_PROBE
	}
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }); cerr != nil {
		return cerr
	}
	return os.NewSyscallError("setsockopt IP_MTU_DISCOVER", err)
}
