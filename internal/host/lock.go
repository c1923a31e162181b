package host

import (
	"errors"
	"fmt"
	"os"
)

// LockFile opens a file, which it makes for its owner alone, and takes its lock until the
// file is closed or the process ends; nil where another process holds it.
func LockFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = lockFile(file)
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, errLocked) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}
