package host

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/fullpipe-net/fullpipe/internal/output"
)

// writeFile replaces a file: a temporary one beside it, fsync, rename, fsync of the
// directory. What a crash left of an earlier one goes.
func writeFile(path string, text []byte, mode os.FileMode) (err error) {
	clean(path)
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
	return output.SyncDir(filepath.Dir(path))
}

// clean removes the temporary files that a crash left beside a file. The lock is held.
func clean(path string) {
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".*"))
	if err != nil {
		return
	}
	for _, name := range left {
		os.Remove(name)
	}
}

func removeFile(path string) error {
	clean(path)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return output.SyncDir(filepath.Dir(path))
}

// fileStore holds one whole file, as text. A symbolic link is followed to its file, which
// changes; the link stays. What is no regular file is not touched: a link of sysctl.d(5)
// to /dev/null is how an administrator switches a file off.
type fileStore struct{ only string }

const fileLimit = 1 << 20

func (fileStore) normal(value string) string { return value }

// place is the file behind the name: with the links followed, whether it is there or not.
func (s fileStore) place(name string) (string, error) {
	if name != s.only {
		return "", fmt.Errorf("%q is not a file that fullpipe changes", name)
	}
	return output.Target(name)
}

func (s fileStore) read(name string) (*string, error) {
	place, err := s.place(name)
	if err != nil {
		return nil, err
	}
	return readText(place)
}

// readText is a whole file; nil where there is none.
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
	place, err := s.place(name)
	if err != nil {
		return err
	}
	if value == nil {
		return removeFile(place)
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(place); err == nil {
		mode = info.Mode().Perm()
	}
	return writeFile(place, []byte(*value), mode)
}
