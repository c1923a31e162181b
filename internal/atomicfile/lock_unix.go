//go:build unix

package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the exclusive lock of an open file until it is closed or the process ends. It returns ErrLocked if
// another process has the lock.
func Lock(file *os.File) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// removeLock removes a lock file and then releases the lock, so that it never removes another process's file.
func removeLock(file *os.File) {
	os.Remove(file.Name())
	file.Close()
}

// SyncDir flushes a directory's entries to disk.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
