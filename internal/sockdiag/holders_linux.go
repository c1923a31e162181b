package sockdiag

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
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

// struct linux_dirent64: the next record's place at 8, the record's length at 16, its name at 19.
const (
	direntNext   = 8
	direntLength = 16
	direntName   = 19
)

// Each calls each with every socket that the process has open: its descriptor and its inode. Reading another user's
// process needs CAP_SYS_PTRACE.
func (h *Holders) Each(pid int, each func(fd int, inode uint32)) (err error) {
	for at := int64(0); at >= 0 && err == nil; {
		at, err = h.Some(pid, at, each)
	}
	return err
}

// Some is Each for some hundred descriptors, from a place that an earlier call answered; 0 is the first.
// The next place is below 0 after the last.
func (h *Holders) Some(pid int, at int64, each func(fd int, inode uint32)) (next int64, err error) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w", dir, err)
	}
	defer unix.Close(fd)
	if h.entries == nil {
		h.entries = make([]byte, 8<<10)
	}
	if at > 0 {
		if _, err := unix.Seek(fd, at, unix.SEEK_SET); err != nil {
			return -1, fmt.Errorf("read on in %s: %w", dir, err)
		}
	}
	n, err := unix.Getdents(fd, h.entries)
	for err == unix.EINTR {
		n, err = unix.Getdents(fd, h.entries)
	}
	if err != nil {
		return -1, fmt.Errorf("read %s: %w", dir, err)
	}
	next = -1
	for b := h.entries[:n]; len(b) > direntName; {
		length := min(max(int(binary.NativeEndian.Uint16(b[direntLength:])), direntName), len(b))
		switch inode, err := socketBehind(fd, b[direntName:length]); {
		case err == unix.EACCES: // and so are all the others
			return -1, fmt.Errorf("read the links in %s: %w", dir, err)
		case inode > 0:
			each(int(decimal(b[direntName:length])), inode)
		}
		next = int64(binary.NativeEndian.Uint64(b[direntNext:]))
		b = b[length:]
	}
	return next, nil
}

// socketBehind is the inode of the socket that a descriptor's link names, "socket:[INODE]"; 0 for another file.
// The name ends with a 0, as the kernel wrote it.
func socketBehind(dir int, name []byte) (uint32, error) {
	if len(name) == 0 || name[0] == '.' || bytes.IndexByte(name, 0) < 0 {
		return 0, nil
	}
	var target [32]byte
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(&name[0])),
		uintptr(unsafe.Pointer(&target[0])), uintptr(len(target)), 0, 0)
	if errno != 0 { // closed meanwhile, or refused
		return 0, errno
	}
	number, is := bytes.CutPrefix(target[:n], []byte("socket:["))
	if !is {
		return 0, nil
	}
	return uint32(decimal(number)), nil
}

// decimal is the number that b begins with.
func decimal(b []byte) (n uint64) {
	for _, digit := range b {
		if digit < '0' || digit > '9' {
			break
		}
		n = n*10 + uint64(digit-'0')
	}
	return n
}

// Processes returns the numbers of the processes of this PID namespace.
func Processes() (pids []int, err error) {
	entries, err := os.ReadDir("/proc")
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, err
}

// Borrow duplicates a process's descriptor (pidfd_getfd, Linux 5.6). The caller closes it.
func Borrow(pid, fd int) (int, error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(process)
	return unix.PidfdGetfd(process, fd, 0)
}
