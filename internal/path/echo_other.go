//go:build !linux

package path

import (
	"fmt"
	"net"
	"runtime"

	"golang.org/x/net/icmp"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

func listenEcho(six, raw bool, by socket.Route) (net.PacketConn, error) {
	network := "udp4"
	address := "0.0.0.0"
	if raw {
		network = "ip4:icmp"
	}
	if six {
		network = "udp6"
		address = "::"
		if raw {
			network = "ip6:ipv6-icmp"
		}
	}
	if !raw && runtime.GOOS != "darwin" { // Windows may give the socket, which Go cannot use
		return nil, fmt.Errorf("ICMP without privileges: %w", socket.ErrNotSupported)
	}
	if by.Device != "" {
		return nil, fmt.Errorf("ICMP through one interface: %w", socket.ErrNotSupported)
	}
	if by.From.IsValid() {
		address = by.From.String()
	}
	return icmp.ListenPacket(network, address)
}

func dontFragment(net.PacketConn, bool) error {
	return fmt.Errorf("probing the path MTU: %w", socket.ErrNotSupported)
}
