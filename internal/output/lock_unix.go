//go:build unix

package output

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the exclusive lock of an open file. The lock ends when the file is closed or the
// process ends. Lock returns ErrLocked where another process holds it.
func Lock(file *os.File) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// removeLock removes a lock file while its lock is held, so that it never removes the file of
// another holder, and releases the lock.
func removeLock(file *os.File) {
	os.Remove(file.Name())
	file.Close()
}

// SyncDir writes the names in a directory to its disk.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
