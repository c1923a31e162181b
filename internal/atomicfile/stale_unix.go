//go:build unix

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// markUsed locks an open temporary file, so that processes in other PID namespaces or on other hosts see that it is
// in use. Without file locks it does nothing.
func markUsed(file *os.File) { _ = Lock(file) }

// unused reports whether no process has a temporary file open, in any PID namespace.
func unused(path string, pid int) bool {
	if !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return false
	}
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	defer file.Close()
	return Lock(file) == nil
}

// isOurs reports whether a file is this user's.
func isOurs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
