//go:build !linux || portable

package socket

import (
	"net"
	"net/netip"
)

// reservePorts finds ports. Nothing keeps other programs from getting them first.
func reservePorts(family netip.Addr, n int) (ports []uint16, release func(), err error) {
	for range n {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(family, 0)))
		if err != nil {
			return nil, nil, err
		}
		defer l.Close() // after the last one is found, so that none is found twice
		ports = append(ports, l.Addr().(*net.TCPAddr).AddrPort().Port())
	}
	return ports, func() {}, nil
}
