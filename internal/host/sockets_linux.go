package host

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// sock_diag(7): include/uapi/linux/inet_diag.h and sock_diag.h.
const (
	diagByFamily      = 20 // SOCK_DIAG_BY_FAMILY
	diagMessageSize   = 72 // struct inet_diag_msg
	diagInfo          = 2  // INET_DIAG_INFO
	diagMemory        = 7  // INET_DIAG_SKMEMINFO
	memoryReceiveBuf  = 1  // SK_MEMINFO_RCVBUF
	memorySendBuf     = 3  // SK_MEMINFO_SNDBUF
	tcpListen         = 10
	tcpEstablished    = 1
	soBufLock         = 72 // SO_BUF_LOCK (5.14): which buffers setsockopt fixed
	sendLocked        = 1
	receiveLocked     = 2
	mostSockets       = 20000 // looked at
	mostSocketsListed = 200   // that have something to say
)

// readSockets lists the TCP sockets that waited for a window or a buffer, and those whose
// program fixed a buffer. The latter needs the right to look into the program (root).
func readSockets(s *audit.Snapshot) error {
	if os.Geteuid() != 0 {
		s.Unread = append(s.Unread, "sockets: other users' programs and what they fixed (needs root)")
	}
	owners := socketOwners()
	seen := 0
	for _, family := range []byte{unix.AF_INET, unix.AF_INET6} {
		request := make([]byte, 56) // struct inet_diag_req_v2
		request[0], request[1], request[2] = family, unix.IPPROTO_TCP, 1<<(diagInfo-1)|1<<(diagMemory-1)
		binary.NativeEndian.PutUint32(request[4:], 1<<tcpListen|1<<tcpEstablished)
		err := dump(unix.NETLINK_SOCK_DIAG, diagByFamily, request, func(payload []byte) {
			if seen++; seen > mostSockets || len(s.Sockets) >= mostSocketsListed {
				return
			}
			if entry, ok := look(payload, owners); ok {
				s.Sockets = append(s.Sockets, entry)
			}
		})
		if err != nil {
			return fmt.Errorf("sock_diag: %w", err)
		}
	}
	return nil
}

// look reads one socket's message; ok says that there is something to tell of it.
func look(b []byte, owners map[uint32]owner) (entry audit.Socket, ok bool) {
	if len(b) < diagMessageSize {
		return entry, false
	}
	be, ne := binary.BigEndian, binary.NativeEndian
	address := func(at int) netip.Addr {
		if b[0] == unix.AF_INET {
			return netip.AddrFrom4([4]byte(b[at : at+4]))
		}
		return netip.AddrFrom16([16]byte(b[at : at+16])).Unmap()
	}
	entry.Local = netip.AddrPortFrom(address(8), be.Uint16(b[4:])).String()
	if b[1] != tcpListen {
		entry.Remote = netip.AddrPortFrom(address(24), be.Uint16(b[6:])).String()
	}
	for _, a := range parseAttributes(b[diagMessageSize:]) {
		switch {
		case a.kind == diagMemory && len(a.data) >= 4*(memorySendBuf+1):
			entry.RecvBytes, entry.SendBytes = int64(ne.Uint32(a.data[4*memoryReceiveBuf:])), int64(ne.Uint32(a.data[4*memorySendBuf:]))
		case a.kind == diagInfo && b[1] != tcpListen:
			var sample transfer.Sample
			socket.DecodeLinux(a.data, &sample)
			entry.RTTS, entry.BusyS = sample.RTT.Seconds(), sample.Busy.Seconds()
			entry.RwndS, entry.SndbufS = sample.ReceiveLimited.Seconds(), sample.SendLimited.Seconds()
			entry.DeliveryBps = sample.DeliveryBps
		}
	}
	if o, known := owners[ne.Uint32(b[68:])]; known {
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

// socketOwners maps a socket's inode to a process, as far as this user may look.
func socketOwners() map[uint32]owner {
	owners := map[uint32]owner{}
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return owners
	}
	self := strconv.Itoa(os.Getpid())
	for _, link := range links {
		parts := strings.Split(link, "/") // "", proc, PID, fd, N
		if parts[2] == self {
			continue
		}
		target, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(target, "socket:[") {
			continue
		}
		inode, err := strconv.ParseUint(strings.Trim(target[len("socket:"):], "[]"), 10, 32)
		pid, badPID := strconv.Atoi(parts[2])
		fd, badFD := strconv.Atoi(parts[4])
		if err != nil || badPID != nil || badFD != nil {
			continue
		}
		name, err := os.ReadFile("/proc/" + parts[2] + "/comm")
		if err != nil {
			continue
		}
		owners[uint32(inode)] = owner{strings.TrimSpace(string(name)), pid, fd}
	}
	return owners
}

// fixed asks the process's own socket which buffers a setsockopt fixed. It borrows the
// descriptor for the question (pidfd_getfd, 5.6) and closes it at once.
func (o owner) fixed() (send, receive bool) {
	process, err := unix.PidfdOpen(o.pid, 0)
	if err != nil {
		return false, false
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, o.fd, 0)
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
