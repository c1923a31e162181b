package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// place is the target of a name.
type place struct {
	path    string
	regular bool
	info    fs.FileInfo // of a regular file; nil if missing
}

// Target returns the regular file, existing or not, that a name leads to through links.
func Target(name string) (string, error) {
	at, err := resolve(name)
	if err == nil && !at.regular {
		err = notRegular(name)
	}
	return at.path, err
}

func notRegular(name string) error {
	return fmt.Errorf("%s is no regular file: it is left alone", name)
}

// maxLinks is Linux's limit (path_resolution(7)).
const maxLinks = 40

// resolve follows links, dangling ones too.
func resolve(name string) (place, error) {
	path := name
	for range maxLinks {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err != nil {
			return place{}, plain(name, err)
		}
		path = filepath.Join(dir, filepath.Base(path))
		if inProc(dir) {
			return place{path: name}, nil // links there lead to open files, not to names
		}
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return place{path: path, regular: true}, nil
		case err != nil:
			return place{}, plain(name, err)
		case info.Mode().IsRegular():
			return place{path, true, info}, nil
		case info.IsDir():
			return place{}, fmt.Errorf("%s: %w", name, syscall.EISDIR)
		case info.Mode()&fs.ModeSymlink == 0:
			if info.Mode()&(fs.ModeDevice|fs.ModeCharDevice) == fs.ModeDevice {
				return place{}, fmt.Errorf("%s: a disk, not a file", name)
			}
			return place{path: path}, nil
		}
		next, err := os.Readlink(path)
		if err != nil {
			return place{}, plain(name, err)
		}
		if !filepath.IsAbs(next) {
			next = filepath.Join(dir, next)
		}
		path = next
	}
	return place{}, fmt.Errorf("%s: too many links", name)
}

func inProc(dir string) bool {
	return strings.HasPrefix(dir, "/proc/") || dir == "/dev/fd"
}

// plain returns err with the name that the user gave.
func plain(name string, err error) error {
	if err == nil {
		return nil
	}
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		err = path.Err
	case errors.As(err, &link):
		err = link.Err
	}
	return fmt.Errorf("%s: %w", name, err)
}
