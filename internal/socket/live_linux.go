package socket

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func account(fd uintptr, s *transfer.Sample) (*transfer.Handshake, error) {
	var i tcpInfo
	if err := i.read(int(fd)); err != nil {
		return nil, fmt.Errorf("TCP_INFO: %w", err)
	}
	i.fill(s)
	return i.handshake(), nil
}

func buffers(fd uintptr) (send, receive int, err error) {
	send, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err == nil {
		receive, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	}
	return send, receive, err
}

func setNotSentLowWater(fd uintptr, bytes int) error {
	return setInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, "TCP_NOTSENT_LOWAT", bytes)
}

func readCeilings() (Ceilings, error) {
	c := Ceilings{Factor: 2, Clamped: true}
	for _, s := range []struct {
		name  string
		field int
		times int
		into  *int
	}{
		{"net/ipv4/tcp_wmem", 2, 1, &c.AutoSend},
		{"net/ipv4/tcp_rmem", 2, 1, &c.AutoReceive},
		{"net/core/wmem_max", 0, 2, &c.Send},
		{"net/core/rmem_max", 0, 2, &c.Receive},
	} {
		fields := strings.Fields(readSysctl(s.name))
		if len(fields) <= s.field {
			return Ceilings{}, fmt.Errorf("buffer ceilings: /proc/sys/%s: %w", s.name, ErrNotSupported)
		}
		n, err := strconv.Atoi(fields[s.field])
		if err != nil {
			return Ceilings{}, fmt.Errorf("buffer ceilings: /proc/sys/%s: %w", s.name, err)
		}
		*s.into = n * s.times
	}
	if readSysctl("net/ipv4/tcp_moderate_rcvbuf") == "0" {
		c.AutoReceive = 0
	}
	return c, nil
}
