package host

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/sockdiag"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	soBufLock        = 72 // SO_BUF_LOCK (5.14): which buffers setsockopt fixed
	sendLocked       = 1
	receiveLocked    = 2
	maxSockets       = 20000 // inspected
	maxListedSockets = 200   // in the snapshot
)

// readSockets lists the TCP sockets that waited for a window or a buffer, and those with a buffer that the program set.
// The latter need access to the program (root).
func readSockets(s *audit.Snapshot) error {
	if os.Geteuid() != 0 {
		s.Unread = append(s.Unread, "sockets: other users' programs and the buffers that they set (needs root)")
	}
	ask, err := sockdiag.Open()
	if err != nil {
		return err
	}
	defer ask.Close()
	owners := socketOwners()
	seen := 0
	states := sockdiag.Of(sockdiag.Listening, sockdiag.Established)
	return ask.Dump(states, sockdiag.AskInfo|sockdiag.AskMemory, func(found *sockdiag.Socket) {
		seen++
		if seen > maxSockets || len(s.Sockets) >= maxListedSockets {
			return
		}
		if entry, ok := readSocket(found, owners); ok {
			s.Sockets = append(s.Sockets, entry)
		}
	})
}

// readSocket returns a socket's state for the snapshot; ok is false if it did not wait and the system sizes its
// buffers.
func readSocket(s *sockdiag.Socket, owners map[uint32]owner) (entry audit.Socket, ok bool) {
	entry.Local = s.Local.String()
	entry.RecvBytes = int64(s.Memory.ReceiveBuffer)
	entry.SendBytes = int64(s.Memory.SendBuffer)
	if s.State != sockdiag.Listening {
		entry.Remote = s.Remote.String()
		var sample transfer.Sample
		socket.DecodeLinux(s.Info, &sample)
		entry.RTTS = sample.RTT.Seconds()
		entry.BusyS = sample.Busy.Seconds()
		entry.RwndS = sample.RwndLimited.Seconds()
		entry.SndbufS = sample.SndbufLimited.Seconds()
		entry.DeliveryBps = sample.DeliveryBps
	}
	if o, known := owners[s.Inode]; known {
		entry.Program = o.program
		entry.SendFixed, entry.RecvFixed = o.fixed()
	}
	waited := entry.RwndS > 0.5 || entry.SndbufS > 0.5
	return entry, waited || entry.SendFixed || entry.RecvFixed
}

// owner is a process that has a socket open.
type owner struct {
	program string
	pid, fd int
}

// socketOwners maps the inodes of sockets to processes, as far as this user may read them.
func socketOwners() map[uint32]owner {
	owners := map[uint32]owner{}
	pids, _ := sockdiag.Processes() // without /proc no owner is known
	var holders sockdiag.Holders
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		name, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		if err != nil {
			continue
		}
		program := strings.TrimSpace(string(name))
		_ = holders.Each(pid, func(fd int, inode uint32) { // another user's process may not be read
			owners[inode] = owner{program, pid, fd}
		})
	}
	return owners
}

// fixed returns which buffers a setsockopt fixed, from a duplicate of the process's descriptor.
func (o owner) fixed() (send, receive bool) {
	fd, err := sockdiag.Borrow(o.pid, o.fd)
	if err != nil {
		return false, false
	}
	defer unix.Close(fd)
	locks, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, soBufLock)
	if err != nil {
		return false, false
	}
	return locks&sendLocked != 0, locks&receiveLocked != 0
}
