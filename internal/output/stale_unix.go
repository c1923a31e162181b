//go:build unix

package output

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// markUsed holds the lock of a temporary file while a process has it open. A process of another PID namespace or
// another host sees by it that the file is in use. A file system without locks leaves it unmarked.
func markUsed(file *os.File) { _ = Lock(file) }

// unused reports whether no process has a temporary file open: not the one that its name says, nor another one with
// that number in another PID namespace.
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
