package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
)

// writeFile replaces a file: temporary file in the same directory, fsync, rename, fsync of the directory. It removes
// temporary files of an earlier crash.
func writeFile(path string, text []byte, mode os.FileMode) (err error) {
	removeTemporary(path)
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
		}
	}()
	if _, err = file.Write(text); err != nil {
		return err
	}
	if err = file.Chmod(mode); err != nil {
		return err
	}
	if err = file.Sync(); err != nil {
		return err
	}
	if err = file.Close(); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), path); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// removeTemporary removes the temporary files of an earlier crash. The caller has the lock.
func removeTemporary(path string) {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".*"))
	if err != nil {
		return
	}
	for _, name := range left {
		os.Remove(name)
	}
}

func removeFile(path string) error {
	removeTemporary(path)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(path))
}

// fileStore is the store of one file, as text. It follows a symbolic link and changes the link's target. It touches
// only regular files: administrators disable a file of sysctl.d(5) by a link to /dev/null.
type fileStore struct{ only string }

const fileLimit = 1 << 20

func (fileStore) normal(value string) string { return value }

// target returns the path with all links followed, whether it exists or not.
func (s fileStore) target(name string) (string, error) {
	if name != s.only {
		return "", fmt.Errorf("%q is not a file that fullpipe changes", name)
	}
	return atomicfile.Target(name)
}

func (s fileStore) read(name string) (*string, error) {
	path, err := s.target(name)
	if err != nil {
		return nil, err
	}
	return readText(path)
}

// readText returns the content of a file, or nil if there is none.
func readText(name string) (*string, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, fileLimit+1))
	if err != nil {
		return nil, err
	}
	if len(text) > fileLimit {
		return nil, fmt.Errorf("%s: longer than %d bytes", name, fileLimit)
	}
	value := string(text)
	return &value, nil
}

func (s fileStore) write(name string, value *string) error {
	path, err := s.target(name)
	if err != nil {
		return err
	}
	if value == nil {
		return removeFile(path)
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	return writeFile(path, []byte(*value), mode)
}
