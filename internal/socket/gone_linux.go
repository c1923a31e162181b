package socket

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// endUnacknowledged bounds how long data may wait for its acknowledgement (tcp(7),
// TCP_USER_TIMEOUT; Linux 2.6.37): without it the kernel asks nothing while any does.
func endUnacknowledged(conn *net.TCPConn, silence time.Duration) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	cerr := raw.Control(func(fd uintptr) {
		err = setInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, "TCP_USER_TIMEOUT", int(silence.Milliseconds()))
	})
	if cerr != nil {
		return cerr
	}
	return err
}
