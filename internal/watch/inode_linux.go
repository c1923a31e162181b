package watch

import (
	"io/fs"
	"syscall"
)

// inodeOf is the number by which sock_diag names a cgroup's directory.
func inodeOf(info fs.FileInfo) uint64 {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return s.Ino
	}
	return 0
}
