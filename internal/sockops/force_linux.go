package sockops

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// ceilings are net.core.wmem_max and rmem_max, the limits of eBPF programs. Larger buffers stay automatic until the
// connection is established, so the window scale is the system's largest. Then they are forced.
type ceilings struct{ send, receive int }

// readCeilings reads both sysctls.
func readCeilings() ceilings {
	return ceilings{sysctl("/proc/sys/net/core/wmem_max"), sysctl("/proc/sys/net/core/rmem_max")}
}

// within leaves sizes above the ceilings automatic.
func (c ceilings) within(s transfer.Socket) transfer.Socket {
	if s.SendBuffer > c.send {
		s.SendBuffer = 0
	}
	if s.ReceiveBuffer > c.receive {
		s.ReceiveBuffer = 0
	}
	return s
}

// above returns the size that must be forced, or 0.
func (c ceilings) above(s transfer.Socket) (send, receive int) {
	within := c.within(s)
	return s.SendBuffer - within.SendBuffer, s.ReceiveBuffer - within.ReceiveBuffer
}

func sysctl(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0 // a namespace without it: everything is forced
	}
	n, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return n
}

// force sets a socket's buffers above the ceilings through a duplicate of its descriptor. found is false while no
// process has the socket open, as before accept().
func force(group string, inode uint32, send, receive int) (found bool, err error) {
	fd, err := duplicate(group, inode)
	if err != nil || fd < 0 {
		return false, err
	}
	defer unix.Close(fd)
	if send > 0 {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, send)
	}
	if receive > 0 {
		// Some kernels clamp the window to the handshake's buffer.
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receive),
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, receive))
	}
	return true, err
}

// duplicate returns a duplicate of a process's socket descriptor, or -1.
func duplicate(group string, inode uint32) (int, error) {
	pids, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		return -1, err
	}
	var holders sockdiag.Holders
	for _, text := range strings.Fields(string(pids)) {
		pid, _ := strconv.Atoi(text)
		match := -1
		_ = holders.Each(pid, func(fd int, of uint32) { // it may have ended
			if of == inode && match < 0 {
				match = fd
			}
		})
		if match >= 0 {
			return sockdiag.Borrow(pid, match)
		}
	}
	return -1, nil
}
