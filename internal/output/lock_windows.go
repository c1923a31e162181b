package output

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// Lock takes the exclusive lock of an open file. The lock ends when the file is closed or the
// process ends. Lock returns ErrLocked where another process holds it.
func Lock(file *os.File) error {
	const all = ^uint32(0)
	err := windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, all, all, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

// removeLock releases the lock. The file stays: a file that others have open cannot be removed
// here.
func removeLock(file *os.File) { file.Close() }

// SyncDir does nothing: NTFS logs renames itself, and a directory cannot be flushed.
func SyncDir(string) error { return nil }
