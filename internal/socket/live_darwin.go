package socket

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func account(fd uintptr, s *transfer.Sample) (*transfer.Handshake, error) {
	b, err := ask(fd, unix.IPPROTO_TCP, unix.TCP_CONNECTION_INFO, make([]byte, 256))
	if err != nil {
		return nil, fmt.Errorf("TCP_CONNECTION_INFO: %w", err)
	}
	return DecodeDarwin(b, s)
}

func setNotSentLowWater(fd uintptr, bytes int) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, bytes)
}

func readCeilings() (Ceilings, error) {
	return ceilings("net.inet.tcp.autosndbufmax", "net.inet.tcp.autorcvbufmax")
}
