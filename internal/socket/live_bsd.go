//go:build darwin || freebsd

package socket

import (
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ask reads a socket option into b and cuts it to what the kernel filled.
func ask(fd uintptr, level, option int, b []byte) ([]byte, error) {
	length := uint32(len(b))
	_, _, errno := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(unsafe.Pointer(&length)), 0)
	if errno != 0 {
		return nil, errno
	}
	return b[:min(int(length), len(b))], nil
}

func buffers(fd uintptr) (send, receive int, err error) {
	send, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err == nil {
		receive, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF)
	}
	return send, receive, err
}

// ceilings reads the largest automatic buffers and kern.ipc.maxsockbuf.
func ceilings(send, receive string) (Ceilings, error) {
	c := Ceilings{Factor: 1}
	for name, into := range map[string]*int{send: &c.AutoSend, receive: &c.AutoReceive, "kern.ipc.maxsockbuf": &c.Send} {
		n, err := number(name)
		if err != nil {
			return Ceilings{}, fmt.Errorf("buffer ceilings: %s: %w", name, err)
		}
		*into = n
	}
	c.Receive = c.Send
	return c, nil
}

// number reads a sysctl of four or eight bytes.
func number(name string) (int, error) {
	if n, err := unix.SysctlUint32(name); err == nil {
		return int(n), nil
	}
	n, err := unix.SysctlUint64(name)
	return int(n), err
}
