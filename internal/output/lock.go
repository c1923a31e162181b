package output

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked says that another process holds the lock of a file.
var ErrLocked = errors.New("locked")

// LockFile opens a file, which it makes for its owner alone, and takes its lock until the
// file is closed or the process ends. It returns nil where another process holds the lock.
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

// maxUpdateWait is how long Update waits for another process to finish its own.
const maxUpdateWait = 30 * time.Second

// Update replaces the content of a regular file by what change returns. A missing file is made,
// for its owner alone. Updates of one file exclude each other, in all processes: change runs under
// a lock, and reads the file itself. A process that is killed leaves the old content or the new
// one, and the next Update removes its temporary file. An error of change leaves all as it was.
func Update(ctx context.Context, name string, change func() ([]byte, error)) error {
	target, err := Target(name)
	if err != nil {
		return err
	}
	lock, err := lockBeside(ctx, target)
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
	temporary := besideName(target, "new")
	os.Remove(temporary) // a killed process left it: only the lock's holder has one
	f, err := at.begin(name, temporary, forOwner)
	if err := f.commitText(content, plain(name, err)); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(target))
}

// besideName is the name of a file in target's directory that serves updates of target.
func besideName(target, kind string) string {
	return filepath.Join(filepath.Dir(target), ".fullpipe-"+filepath.Base(target)+"."+kind)
}

// lockBeside takes the lock of a file in target's directory. The lock of target itself would not
// survive the rename that replaces target.
func lockBeside(ctx context.Context, target string) (*os.File, error) {
	path := besideName(target, "lock")
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
			file.Close() // the holder before removed it
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
