package steer

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

// ceilings are net.core.wmem_max and rmem_max, which bound what an eBPF program can ask
// for. Requests above them are left automatic until the connection stands, so that its
// window scale is the system's largest, and are then forced from outside.
type ceilings struct{ send, receive int }

func readCeilings() ceilings {
	return ceilings{sysctl("/proc/sys/net/core/wmem_max"), sysctl("/proc/sys/net/core/rmem_max")}
}

// within leaves to the system what is above the ceilings.
func (c ceilings) within(s transfer.Socket) transfer.Socket {
	if s.SendBuffer > c.send {
		s.SendBuffer = 0
	}
	if s.ReceiveBuffer > c.receive {
		s.ReceiveBuffer = 0
	}
	return s
}

// above is the part of the request that has to be forced; 0: none.
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

// force gives a socket of the cgroup's processes buffers beyond the ceilings, through a
// duplicate of its descriptor. found is false while no process has the socket open: a
// connection that was not accepted yet.
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
		// Some kernels clamp the window to the buffer of the handshake.
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, receive),
			unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, receive))
	}
	return true, err
}

// duplicate returns a descriptor of a socket that a process of the cgroup has open; -1 when none has.
func duplicate(group string, inode uint32) (int, error) {
	pids, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
	if err != nil {
		return -1, err
	}
	var holders sockdiag.Holders
	for _, text := range strings.Fields(string(pids)) {
		pid, _ := strconv.Atoi(text)
		held := -1
		_ = holders.Each(pid, func(fd int, of uint32) { // it may have ended
			if of == inode && held < 0 {
				held = fd
			}
		})
		if held >= 0 {
			return sockdiag.Borrow(pid, held)
		}
	}
	return -1, nil
}
