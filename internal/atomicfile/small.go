package atomicfile

import (
	"context"
	"os"
)

// Write writes a whole file.
func Write(ctx context.Context, name string, text []byte) error {
	f, err := Create(ctx, name)
	return f.commitText(text, err)
}

// WritePrivate writes a whole file, with mode 0600 if it is new.
func WritePrivate(ctx context.Context, name string, text []byte) error {
	f, err := Private(ctx, name)
	return f.commitText(text, err)
}

// WriteNew is WritePrivate for a file that must not exist; otherwise it returns fs.ErrExist.
func WriteNew(name string, text []byte) error {
	f, err := New(name)
	return f.commitText(text, err)
}

func (f *File) commitText(text []byte, err error) error {
	if err != nil {
		return err
	}
	defer f.Discard()
	if _, err := f.Write(text); err != nil {
		return plain(f.name, err)
	}
	return f.Commit()
}

// Temporary creates a file with mode 0600 in a directory. A random string replaces the last * of pattern. The file
// stays until Remove.
func Temporary(dir, pattern string) (*File, error) {
	file, err := os.CreateTemp(dir, pattern) // 0600
	if err != nil {
		return nil, err
	}
	f := &File{name: file.Name(), file: file, stop: never}
	f.own, err = file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

// TempDir creates a directory with mode 0700. Call remove to delete it and its content.
func TempDir(prefix string) (dir string, remove func(), err error) {
	dir, err = os.MkdirTemp("", prefix) // 0700
	return dir, func() {
		if err == nil {
			os.RemoveAll(dir)
		}
	}, err
}
