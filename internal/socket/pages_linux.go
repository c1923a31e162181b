//go:build !portable

package socket

import (
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// DropsUncopied: Discard removes bytes from a socket without copying them.
const DropsUncopied = true

// payloadFile contains BestWrite bytes of random payload whose pages sendfile(2) sends. A file in /var/tmp costs the
// kernel less than shared memory: it looks its pages up in batches.
var payloadFile = sync.OnceValues(func() (*os.File, error) {
	fd, err := unix.Open("/var/tmp", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		fd, err = unix.MemfdCreate("payload", unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, notSupported("a file of payload")
	}
	f := os.NewFile(uintptr(fd), "payload")
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	if _, err := io.CopyN(f, rand.NewChaCha8(seed), BestWrite); err != nil {
		f.Close()
		return nil, notSupported("a file of payload")
	}
	return f, nil
})

// splice passes pages of the payload's file to the socket.
func (s *stream) splice(n int) (int, error) {
	if s.pages == nil {
		f, err := payloadFile()
		if err != nil {
			return 0, err
		}
		s.pages = f
	}
	at := int64(s.page)
	wrote, err := unix.Sendfile(s.fd, int(s.pages.Fd()), &at, min(n, BestWrite-s.page))
	switch err {
	case nil:
	case unix.EAGAIN, unix.EINTR:
		return 0, nil
	case unix.EINVAL, unix.ENOSYS, unix.EPERM:
		return 0, notSupported("sendfile")
	default:
		return 0, os.NewSyscallError("sendfile", err)
	}
	s.page = (s.page + wrote) % BestWrite
	return wrote, nil
}

// read copies at most n bytes out of the socket.
func (s *stream) read(n int) (int, error) {
	if s.into == nil {
		s.into = make([]byte, readSize)
	}
	r, err := unix.Read(s.fd, s.into[:min(n, readSize)])
	switch {
	case err == unix.EAGAIN || err == unix.EINTR:
		return 0, nil
	case err != nil:
		return 0, os.NewSyscallError("read", err)
	case r == 0 && n > 0:
		return 0, io.EOF
	}
	return r, nil
}

// readSize is the most that one read copies: as much as fits a core's cache.
const readSize = 128 << 10
