package socket

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func account(fd uintptr, s *transfer.Sample) (*transfer.Handshake, error) {
	b, err := ask(fd, unix.IPPROTO_TCP, unix.TCP_INFO, make([]byte, 512))
	if err != nil {
		return nil, fmt.Errorf("TCP_INFO: %w", err)
	}
	return DecodeFreeBSD(b, s)
}

func setNotSentLowWater(uintptr, int) error { return notSupported("TCP_NOTSENT_LOWAT") }

// FreeBSD can use 2048 of every 2304 bytes of kern.ipc.maxsockbuf.
func readCeilings() (Ceilings, error) {
	c, err := ceilings("net.inet.tcp.sendbuf_max", "net.inet.tcp.recvbuf_max")
	c.Send = c.Send / 2304 * 2048
	c.Receive = c.Send
	return c, err
}
