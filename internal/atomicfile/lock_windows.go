package atomicfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Lock takes the exclusive lock of an open file until it is closed or the process ends. It returns ErrLocked if
// another process has the lock.
func Lock(file *os.File) error {
	const all = ^uint32(0)
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, all, all, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// removeLock releases the lock. The file stays, because an open file cannot be removed on Windows.
func removeLock(file *os.File) { file.Close() }

// SyncDir does nothing: NTFS logs renames, and a directory cannot be flushed.
func SyncDir(string) error { return nil }
