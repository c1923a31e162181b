package socket

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func apply(fd int, o Options) error {
	if o.SharePort {
		if err := setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, "SO_REUSEPORT", 1); err != nil {
			return err
		}
	}
	if o.LocalPort > 0 { // it may be reserved by ReservePorts
		if err := setInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, "SO_REUSEADDR", 1); err != nil {
			return err
		}
	}
	if err := setBuffer(fd, "SO_SNDBUF", unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, o.SendBuffer, o.Force); err != nil {
		return err
	}
	if err := applyToSYN(fd, o); err != nil {
		return err
	}
	return applySender(fd, o)
}

// applyToSYN sets what the SYN or the SYN-ACK states.
func applyToSYN(fd int, o Options) error {
	if err := setBuffer(fd, "SO_RCVBUF", unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, o.ReceiveBuffer, o.Force); err != nil {
		return err
	}
	if o.Clamp > 0 {
		if err := setInt(fd, unix.IPPROTO_TCP, unix.TCP_WINDOW_CLAMP, "TCP_WINDOW_CLAMP", o.Clamp); err != nil {
			return err
		}
	}
	if o.MSS > 0 {
		return setInt(fd, unix.IPPROTO_TCP, unix.TCP_MAXSEG, "TCP_MAXSEG", o.MSS)
	}
	return nil
}

// applySender sets what matters to a sender only and may still change on an accepted
// connection.
func applySender(fd int, o Options) error {
	if o.Congestion != "" {
		if err := unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, o.Congestion); err != nil {
			return congestionError(o.Congestion, err)
		}
	}
	if o.TOS > 0 {
		if err := setTrafficClass(fd, o.TOS); err != nil {
			return err
		}
	}
	if o.PacingBps > 0 {
		rate := uint64(math.Ceil(o.PacingBps / 8))
		if err := setsockopt(fd, unix.SOL_SOCKET, unix.SO_MAX_PACING_RATE, unsafe.Pointer(&rate),
			unsafe.Sizeof(rate)); err != nil {
			return &OptionError{Option: fmt.Sprintf("SO_MAX_PACING_RATE %d", rate), Err: err}
		}
	}
	return nil
}

// setTrafficClass sets the byte of the socket's own family; an IPv6 socket may carry
// IPv4 and takes both.
func setTrafficClass(fd, tos int) error {
	err := setInt(fd, unix.IPPROTO_IP, unix.IP_TOS, "IP_TOS", tos)
	if unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, tos) == nil {
		return nil
	}
	return err
}

func congestionError(name string, err error) error {
	e := &OptionError{Option: "TCP_CONGESTION " + name, Err: err}
	switch {
	case errors.Is(err, unix.ENOENT):
		e.Err = unknownCongestion{}
		e.Hint = "one that this kernel has: " + readSysctl("net/ipv4/tcp_available_congestion_control")
	case errors.Is(err, unix.EPERM):
		e.Hint = "one that an ordinary user may choose: " + strings.Join(CongestionControls(), " ")
	}
	return e
}

// unknownCongestion is ENOENT of TCP_CONGESTION, in our words.
type unknownCongestion struct{}

func (unknownCongestion) Error() string { return "this kernel has no congestion control of that name" }
func (unknownCongestion) Unwrap() error { return unix.ENOENT }

// CongestionControls lists the algorithms that any user of this host may choose, the
// default first; empty where that cannot be seen.
func CongestionControls() []string {
	names := strings.Fields(readSysctl("net/ipv4/tcp_allowed_congestion_control"))
	byDefault := readSysctl("net/ipv4/tcp_congestion_control")
	ordered := make([]string, 0, len(names)+1)
	if byDefault != "" {
		ordered = append(ordered, byDefault)
	}
	for _, n := range names {
		if n != byDefault {
			ordered = append(ordered, n)
		}
	}
	return ordered
}

func readSysctl(name string) string {
	b, err := os.ReadFile("/proc/sys/" + name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// setBuffer asks plainly first. Linux doubles what it grants for its own overhead and
// clips silently at net.core.*mem_max.
func setBuffer(fd int, name string, plain, force, bytes int, mayForce bool) error {
	if bytes <= 0 {
		return nil
	}
	if err := setInt(fd, unix.SOL_SOCKET, plain, name, bytes); err != nil {
		return err
	}
	granted, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
	if err != nil || granted >= 2*bytes || !mayForce {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes); err != nil && !errors.Is(err, unix.EPERM) {
		return &OptionError{Option: fmt.Sprintf("%sFORCE %d", name, bytes), Err: err}
	}
	return nil
}

// readBuffer returns the result of a request. Plain requests beyond the system's ceiling are clipped there, so a larger
// grant was forced.
func readBuffer(fd, plain, requested int, ceiling string) transfer.Buffer {
	b := transfer.Buffer{Requested: requested}
	b.Granted, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, plain)
	if requested > 0 {
		b.Clipped = b.Granted < 2*requested
		var limit int
		if _, err := fmt.Sscan(readSysctl(ceiling), &limit); err == nil {
			b.Forced = requested > limit && b.Granted > 2*limit
		}
	}
	return b
}

func setInt(fd, level, option int, name string, value int) error {
	if err := unix.SetsockoptInt(fd, level, option, value); err != nil {
		return &OptionError{Option: fmt.Sprintf("%s %d", name, value), Err: err}
	}
	return nil
}

func setsockopt(fd, level, option int, value unsafe.Pointer, size uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option), uintptr(value), size,
		0)
	if errno != 0 {
		return errno
	}
	return nil
}
