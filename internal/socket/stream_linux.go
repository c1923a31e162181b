//go:build !portable

package socket

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

type stream struct {
	fd, wake      int // the socket; an eventfd that is readable once interrupted
	options       Options
	local, remote netip.AddrPort
	payload       []byte
	at            int // where in the payload the next write starts
	pieces        [pieces]unix.Iovec
	pages         *os.File // the file that splice sends pages of; nil: not used yet
	page          int      // where in pages the next one starts
	into          []byte   // the buffer of read; nil: not used yet

	// The data loop and the sampler each poll and ask on their own.
	polled [2]unix.PollFd
	asked  tcpInfo
	queue  tcpInfo
}

// watch takes a descriptor of its own on conn's socket.
func (s *stream) watch(conn *net.TCPConn, o Options) error {
	s.fd = -1
	s.wake = -1
	s.options = o
	s.local = AddrPort(conn.LocalAddr())
	s.remote = AddrPort(conn.RemoteAddr())
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { s.fd, err = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) }); cerr != nil {
		return cerr
	}
	return os.NewSyscallError("fcntl", err)
}

func (s *stream) open(conn *net.TCPConn, o Options) (err error) {
	defer conn.Close()
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	err = s.watch(conn, o)
	if err != nil {
		return err
	}
	s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	s.payload = payload()
	return s.adopt()
}

func adopt(conn *net.TCPConn, o Options) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	if cerr := raw.Control(func(fd uintptr) { err = (&stream{fd: int(fd), options: o}).adopt() }); cerr != nil {
		return cerr
	}
	return err
}

// adopt sets the options that matter after the handshake.
func (s *stream) adopt() error {
	o := s.options
	if err := s.setNoDelay(o.NoDelay); err != nil {
		return err
	}
	if err := setBuffer(s.fd, "SO_SNDBUF", unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, o.SendBuffer, o.Force); err != nil {
		return err
	}
	return applySender(s.fd, o)
}

// payload is random, and longer than the windows of deflate (32 KiB) and LZ4 (64 KiB), so
// that nothing on the way compresses it; short, so that copying finds it in the cache.
var payload = sync.OnceValue(func() []byte {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	b := make([]byte, 128<<10)
	rand.NewChaCha8(seed).Read(b)
	return b
})

// pieces is how many pieces of the payload one system call hands over: BestWrite and
// one more where a write begins within a piece.
const pieces = BestWrite/(128<<10) + 1

func (s *stream) write(n int) (int, error) {
	count := 0
	for at := s.at; n > 0 && count < len(s.pieces); count++ {
		piece := min(n, len(s.payload)-at)
		s.pieces[count].Base = &s.payload[at]
		s.pieces[count].SetLen(piece)
		n = n - piece
		at = 0
	}
	wrote, _, errno := unix.Syscall(unix.SYS_WRITEV, uintptr(s.fd), uintptr(unsafe.Pointer(&s.pieces)), uintptr(count))
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0, nil
	case errno != 0:
		return 0, os.NewSyscallError("write", errno)
	}
	s.at = (s.at + int(wrote)) % len(s.payload)
	return int(wrote), nil
}

func (s *stream) discard(n int) (int, error) {
	// MSG_TRUNC drops the bytes of a TCP socket without copying them (tcp(7)).
	r, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(s.fd), 0, uintptr(n), unix.MSG_TRUNC|unix.MSG_DONTWAIT, 0, 0)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0, nil
	case errno != 0:
		return 0, os.NewSyscallError("read", errno)
	case r == 0 && n > 0:
		return 0, io.EOF
	}
	return int(r), nil
}

func (s *stream) batch(n int, rate float64) bool {
	buffer, err := unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF)
	if err != nil || s.queue.read(s.fd) != nil {
		return false
	}
	if inFlight := rate * float64(s.queue.Rtt) / 1e6; n > 1 && inFlight+float64(n) > float64(buffer)/4 {
		return false
	}
	return unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) == nil
}

func (s *stream) waitWrite(timeout time.Duration) error { return s.poll(unix.POLLOUT, timeout) }
func (s *stream) waitRead(timeout time.Duration) error  { return s.poll(unix.POLLIN, timeout) }

func (s *stream) poll(events int16, timeout time.Duration) error {
	s.polled = [2]unix.PollFd{{Fd: int32(s.wake), Events: unix.POLLIN}, {Fd: int32(s.fd), Events: events}}
	return s.wait(s.polled[:], timeout)
}

func (s *stream) waitClosed(timeout time.Duration) (bool, error) {
	// Without requested events poll reports errors and closed connections.
	err := s.poll(0, timeout)
	return err == nil && s.polled[1].Revents&(unix.POLLERR|unix.POLLHUP) != 0, err
}

func (s *stream) sleep(d time.Duration) error {
	s.polled[0] = unix.PollFd{Fd: int32(s.wake), Events: unix.POLLIN}
	return s.wait(s.polled[:1], d)
}

func (s *stream) wait(on []unix.PollFd, timeout time.Duration) error {
	ts := unix.NsecToTimespec(max(timeout.Nanoseconds(), 0))
	if _, err := unix.Ppoll(on, &ts, nil); err != nil && !errors.Is(err, unix.EINTR) {
		return os.NewSyscallError("poll", err)
	}
	if on[0].Revents != 0 {
		return ErrInterrupted
	}
	return nil
}

func (s *stream) interrupt() {
	unix.Write(s.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0})
}

func (s *stream) closeWrite() error {
	return os.NewSyscallError("shutdown", unix.Shutdown(s.fd, unix.SHUT_WR))
}

func (s *stream) setNoDelay(on bool) error {
	value := 0
	if on {
		value = 1
	}
	return setInt(s.fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, "TCP_NODELAY", value)
}

func (s *stream) outstanding() (int, error) {
	n, ok := s.queue.ioctl(s.fd, unix.SIOCOUTQ)
	if !ok {
		return 0, notSupported("unacknowledged bytes (SIOCOUTQ)")
	}
	return int(n), nil
}

func (s *stream) sample(into *transfer.Sample, sender bool) error {
	*into = transfer.Sample{}
	if !sender {
		s.holdClamp()
	}
	if err := s.asked.read(s.fd); err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	s.asked.fill(into)
	request := uintptr(unix.SIOCINQ)
	if sender {
		request = unix.SIOCOUTQ
	}
	if n, ok := s.asked.ioctl(s.fd, request); ok {
		into.Have |= transfer.HaveQueue
		into.Queued = n
	}
	return nil
}

// holdClamp sets the clamp again: Linux forgets it whenever the share of payload in a
// buffer turns out otherwise than it thought (tcp_measure_rcv_mss, since 6.6) and
// whenever automatic sizing raises the buffer (tcp_rcv_space_adjust).
func (s *stream) holdClamp() {
	if s.options.Clamp > 0 {
		unix.SetsockoptInt(s.fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, s.options.Clamp)
	}
}

func (s *stream) describe() transfer.Stream {
	d := transfer.Stream{Local: s.local, Remote: s.remote,
		SendBuffer:    readBuffer(s.fd, unix.SO_SNDBUF, s.options.SendBuffer, "net/core/wmem_max"),
		ReceiveBuffer: readBuffer(s.fd, unix.SO_RCVBUF, s.options.ReceiveBuffer, "net/core/rmem_max"),
	}
	if c, err := readCeilings(); err == nil {
		if d.SendBuffer.Automatic() {
			d.SendBuffer.AutomaticMax = c.AutoSend
		}
		if d.ReceiveBuffer.Automatic() {
			d.ReceiveBuffer.AutomaticMax = c.AutoReceive
			d.ReceiveBuffer.Constant = c.AutoReceive == 0
		}
	}
	d.Congestion, _ = unix.GetsockoptString(s.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION)
	var info tcpInfo
	if info.read(s.fd) == nil {
		d.Handshake = info.handshake()
	}
	return d
}

func (s *stream) reset() {
	unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

func (s *stream) close() error {
	var errs []error
	for _, fd := range []*int{&s.fd, &s.wake} {
		if *fd >= 0 {
			errs = append(errs, unix.Close(*fd))
			*fd = -1
		}
	}
	return errors.Join(errs...)
}
