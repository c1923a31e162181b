package sockdiag

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel puts at most 32 KiB of a dump in one datagram.
const bufferSize = 32 << 10

// conn is a netlink socket whose datagrams are read into one buffer.
type conn struct {
	fd    int
	waits bool // receive does, where there is nothing yet
	buf   []byte
	one   Socket // receives the messages of buf
	seq   uint32
}

func open(flags int) (*conn, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|flags, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, &Error{err}
	}
	// Connected to the kernel, whose port is 0: plain reads and writes allocate nothing.
	err = unix.Connect(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	if err != nil {
		unix.Close(fd)
		return nil, &Error{err}
	}
	return &conn{fd: fd, waits: flags&unix.SOCK_NONBLOCK == 0, buf: make([]byte, bufferSize)}, nil
}

func (c *conn) close() error {
	if c.fd < 0 {
		return nil
	}
	err := unix.Close(c.fd)
	c.fd = -1
	return err
}

// receive reads one datagram, and reads again after a signal.
//
// The kernel replies within the request, so the datagram is already there: it is read without Go's scheduler, which
// would treat each call as blocking and wake up idle threads.
func (c *conn) receive() ([]byte, error) {
	for {
		n, _, errno := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(c.fd), uintptr(unsafe.Pointer(&c.buf[0])),
			uintptr(len(c.buf)), unix.MSG_DONTWAIT, 0, 0)
		if errno == unix.EAGAIN && c.waits {
			n, _, errno = unix.Syscall(unix.SYS_READ, uintptr(c.fd), uintptr(unsafe.Pointer(&c.buf[0])), uintptr(len(c.buf)))
		}
		switch errno {
		case 0:
			return c.buf[:n], nil
		case unix.EINTR:
		default:
			return nil, errno
		}
	}
}

// send asks, likewise.
func (c *conn) send(b []byte) error {
	for {
		_, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

// Conn asks for sockets of the network namespace that it was opened in. It is not safe for
// use by several goroutines.
type Conn struct {
	conn
	out    []byte
	filter []byte // the restriction of Dump
}

// Open asks this thread's network namespace.
func Open() (*Conn, error) {
	c, err := open(0)
	if err != nil {
		return nil, err
	}
	timeout := unix.NsecToTimeval(answerWithin.Nanoseconds())
	if err := unix.SetsockoptTimeval(c.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout); err != nil {
		c.close()
		return nil, &Error{err}
	}
	return &Conn{conn: *c}, nil
}

// answerWithin is how long an answer may take that the kernel makes while it is asked.
const answerWithin = time.Second

// InNamespace calls do on a thread of its own that is in the network namespace behind the
// path, and throws the thread away.
func InNamespace(path string, do func() error) error {
	done := make(chan error, 1)
	var work func()
	work = func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The main thread cannot be discarded: it waits until another thread has run do.
			released := make(chan struct{})
			go func() { work(); close(released) }()
			<-released
			runtime.UnlockOSThread()
			return
		}
		file, err := os.Open(path)
		if err != nil {
			done <- err
			return
		}
		defer file.Close()
		if err := unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter %s: %w", path, err)
			return
		}
		done <- do()
	}
	go work()
	return <-done
}

// Close ends it.
func (c *Conn) Close() error { return c.close() }

// InCgroup restricts Dump to sockets that were made in the cgroup v2 directory of that inode, or below it
// (Linux 5.8).
func (c *Conn) InCgroup(inode uint64) { c.filter = cgroupFilter(inode) }

// Dump calls each with every socket of the states. It is not one moment: a socket may be missed or be reported
// twice while it runs.
func (c *Conn) Dump(states States, ask Ask, each func(*Socket)) error {
	c.seq++
	c.out = requestAll(c.out[:0], c.seq, states, ask, c.filter)
	if c.dump(each) == nil {
		return nil
	}
	// A kernel or a filter of system calls may know the newer question alone.
	for _, family := range []byte{familyIPv4, familyIPv6} {
		c.seq++
		c.out = request(c.out[:0], flagRequest|flagDump, c.seq, ID{family: family}, states, ask, c.filter)
		err := c.dump(each)
		if family == familyIPv6 && errors.Is(err, unix.ENOENT) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return &Error{err}
		}
	}
	return nil
}

// dump sends the question in c.out and reads the answer.
func (c *Conn) dump(each func(*Socket)) (failure error) {
	if err := c.send(c.out); err != nil {
		return err
	}
	ended := false
	failed := func(err error) {
		failure = err
		ended = true
	}
	for !ended {
		b, err := c.receive()
		if err != nil {
			return err
		}
		if len(b) >= headerSize && ne.Uint32(b[8:]) != c.seq {
			continue // left over from a dump that was given up
		}
		done, err := messages(b, &c.one, each, failed)
		if err != nil {
			return err
		}
		ended = ended || done
	}
	return failure
}

// maxAtOnce is a number of replies that fit the socket's receive buffer.
const maxAtOnce = 64

// Look requests single sockets and calls each with those that still exist, in the order of the requests. It returns how
// many do not exist any more.
func (c *Conn) Look(ids []ID, ask Ask, each func(*Socket)) (gone int, err error) {
	for len(ids) > 0 {
		n := min(len(ids), maxAtOnce)
		missing, err := c.look(ids[:n], ask, each)
		gone += missing
		if err != nil {
			return gone, &Error{err}
		}
		ids = ids[n:]
	}
	return gone, nil
}

func (c *Conn) look(ids []ID, ask Ask, each func(*Socket)) (gone int, failure error) {
	c.out = c.out[:0]
	first := c.seq + 1
	for _, id := range ids {
		c.seq++
		c.out = request(c.out, flagRequest, c.seq, id, 0, ask, nil)
	}
	if err := c.send(c.out); err != nil {
		return 0, err
	}
	replies := 0
	failed := func(err error) {
		replies++
		switch {
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ESTALE): // ESTALE: the ports are another socket's now
			gone++
		case failure == nil:
			failure = err
		}
	}
	known := func(s *Socket) { replies++; each(s) }
	for replies < len(ids) {
		b, err := c.receive()
		if err == unix.EAGAIN { // the kernel had no memory for an answer
			return gone, failure
		}
		if err != nil {
			return gone, err
		}
		if len(b) >= headerSize && ne.Uint32(b[8:])-first >= uint32(len(ids)) {
			continue // of an earlier question
		}
		if _, err := messages(b, &c.one, known, failed); err != nil {
			return gone, err
		}
	}
	return gone, failure
}

// Ends receives the kernel's last record of every TCP socket of its network namespace that ends: Info, addresses and
// cookie. The message has no owner, cgroup or buffers, and its state is always Closed. It needs no privilege.
type Ends struct {
	conn
	dropped uint32
	total   uint64
}

// OpenEnds listens in this thread's network namespace. room is how many bytes of messages
// may wait, at some 1,280 an end; a user without CAP_NET_ADMIN gets at most
// net.core.rmem_max.
func OpenEnds(room int) (*Ends, error) {
	c, err := open(unix.SOCK_NONBLOCK)
	if err != nil {
		return nil, err
	}
	e := &Ends{conn: *c}
	const groupTCP, groupTCP6 = 1, 3 // SKNLGRP_INET_TCP_DESTROY, SKNLGRP_INET6_TCP_DESTROY
	if unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, room/2) != nil {
		err = unix.SetsockoptInt(e.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, room/2) // the kernel doubles it
	}
	for _, group := range []int{groupTCP, groupTCP6} {
		err = errors.Join(err, unix.SetsockoptInt(e.fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group))
	}
	if err != nil {
		e.close()
		return nil, fmt.Errorf("sock_diag's destroy groups: %w", err)
	}
	return e, nil
}

// Close ends it.
func (e *Ends) Close() error { return e.close() }

// FD becomes readable when a socket has ended.
func (e *Ends) FD() int { return e.fd }

// Take calls each with every socket that ended since the last call, without waiting.
func (e *Ends) Take(each func(*Socket)) error {
	ignore := func(error) {}
	for {
		b, err := e.receive()
		switch err {
		case nil:
		case unix.EAGAIN:
			return nil
		case unix.ENOBUFS: // some were lost: Dropped counts them
			continue
		default:
			return fmt.Errorf("sock_diag's destroy groups: %w", err)
		}
		if _, err := messages(b, &e.one, each, ignore); err != nil {
			return fmt.Errorf("sock_diag's destroy groups: %w", err)
		}
	}
}

// Dropped counts the ends that found no room, exactly (SO_MEMINFO, SK_MEMINFO_DROPS).
func (e *Ends) Dropped() (uint64, error) {
	var memory [9]uint32
	length := uint32(unsafe.Sizeof(memory))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(e.fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&memory)), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return e.total, fmt.Errorf("sock_diag's destroy groups: %w", errno)
	}
	e.total += uint64(memory[8] - e.dropped) // it wraps at 32 bits
	e.dropped = memory[8]
	return e.total, nil
}
