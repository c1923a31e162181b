package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked means that another process has the lock.
var ErrLocked = errors.New("locked")

// LockFile opens a file, created with mode 0600 if missing, and locks it until the file is closed or the process
// ends. It returns nil if another process has the lock.
func LockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, forOwner)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = Lock(file)
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, ErrLocked) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// maxUpdateWait is the timeout for another process's update.
const maxUpdateWait = 30 * time.Second

// Update replaces the content of a regular file by the result of change; a missing file is created with mode 0600.
// A lock excludes other processes while change reads the file. A killed process leaves the old or the new content,
// and the next Update removes its temporary file. If change fails, the file is unchanged.
func Update(ctx context.Context, name string, change func() ([]byte, error)) error {
	target, err := Target(name)
	if err != nil {
		return err
	}
	lock, err := lockAuxiliary(ctx, target)
	if err != nil {
		return err
	}
	defer removeLock(lock)
	content, err := change()
	if err != nil {
		return err
	}
	at, err := resolve(target)
	if err != nil {
		return err
	}
	temporary := auxiliaryName(target, "new")
	os.Remove(temporary) // of a killed process: only the lock's owner has one
	f, err := at.begin(name, temporary, forOwner)
	if err := f.commitText(content, plain(name, err)); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(target))
}

// auxiliaryName returns the name of an auxiliary file in target's directory.
func auxiliaryName(target, kind string) string {
	return filepath.Join(filepath.Dir(target), ".fullpipe-"+filepath.Base(target)+"."+kind)
}

// lockAuxiliary locks a file in target's directory. A lock of target itself would not survive the rename.
func lockAuxiliary(ctx context.Context, target string) (*os.File, error) {
	path := auxiliaryName(target, "lock")
	limit := time.NewTimer(maxUpdateWait)
	defer limit.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		file, err := LockFile(path)
		if err != nil {
			return nil, plain(target, err)
		}
		if file != nil {
			if hasName(file, path) {
				return file, nil
			}
			file.Close() // the previous owner removed it
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-limit.C:
			return nil, fmt.Errorf("%s: another process has been changing it for more than %v", target, maxUpdateWait)
		case <-poll.C:
		}
	}
}

// hasName reports whether path still names the open file.
func hasName(file *os.File, path string) bool {
	open, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(path)
	return err == nil && os.SameFile(open, named)
}
