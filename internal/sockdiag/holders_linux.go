package sockdiag

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Holders reads which sockets a process has open. Its zero value is ready; it keeps its buffer, so that
// walking many processes with thousands of sockets leaves no garbage. It is not safe for use by several
// goroutines.
type Holders struct {
	entries []byte
}

// struct linux_dirent64: the record's length at 16, its name at 19.
const (
	direntLength = 16
	direntName   = 19
)

// Each calls each with the inode of every socket that the process has open. Another user's process is
// refused without CAP_SYS_PTRACE.
func (h *Holders) Each(pid int, each func(inode uint32)) error {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", dir, err)
	}
	defer unix.Close(fd)
	if h.entries == nil {
		h.entries = make([]byte, 32<<10)
	}
	for {
		n, err := unix.Getdents(fd, h.entries)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return fmt.Errorf("read %s: %w", dir, err)
		case n <= 0:
			return nil
		}
		for b := h.entries[:n]; len(b) > direntName; {
			length := min(max(int(binary.NativeEndian.Uint16(b[direntLength:])), direntName), len(b))
			if inode, ok := socketBehind(fd, b[direntName:length]); ok {
				each(inode)
			}
			b = b[length:]
		}
	}
}

// socketBehind is the inode of the socket that a descriptor's link names, "socket:[INODE]". The name ends
// with a 0, as the kernel wrote it.
func socketBehind(dir int, name []byte) (uint32, bool) {
	if len(name) == 0 || name[0] == '.' || bytes.IndexByte(name, 0) < 0 {
		return 0, false
	}
	var target [32]byte
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
		uintptr(unsafe.Pointer(&target[0])), uintptr(len(target)), 0, 0)
	if errno != 0 {
		return 0, false // closed meanwhile
	}
	number, is := bytes.CutPrefix(target[:n], []byte("socket:["))
	if !is {
		return 0, false
	}
	var inode uint64
	for _, digit := range bytes.TrimSuffix(number, []byte("]")) {
		inode = inode*10 + uint64(digit-'0')
	}
	return uint32(inode), true
}
