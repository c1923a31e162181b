// Package output writes the files that a user names. A regular file is seen by others
// whole or not at all: it is written beside its place, synced and renamed. A link is
// followed to its file. What is no regular file (a device, a FIFO, /dev/stdout) is
// written to directly and stays what it is.
package output

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// File is an output that is being written. A nil *File takes everything and keeps
// nothing, so that an output nobody asked for needs no case of its own.
type File struct {
	file      *os.File
	target    string      // where it ends; "" when it is written directly
	temporary string      // its name until then
	mode      fs.FileMode // of the file that was there; 0: none was
	made      bool        // written directly to a file that was not there before
	clears    bool        // what the file held goes with the first byte
	written   bool
	stop      func() bool // ends the watch over ctx
	over      io.Writer   // takes everything instead of a file
}

// Over is an output that goes to a stream which is open already.
func Over(w io.Writer) *File { return &File{over: w} }

// grace is how long a reader who does not read holds a write after ctx has ended.
const grace = 500 * time.Millisecond

// Create begins a file that has its name once Commit has answered nil. It waits for the
// reader of a FIFO as long as ctx allows.
func Create(ctx context.Context, name string) (*File, error) { return create(ctx, name, true) }

// Stream begins a file that others can read while it is written.
func Stream(ctx context.Context, name string) (*File, error) { return create(ctx, name, false) }

func create(ctx context.Context, name string, whole bool) (*File, error) {
	at, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if !at.regular {
		return openSpecial(ctx, name, at)
	}
	if whole {
		if f, err := beside(at); err == nil || at.mode == 0 {
			return f, plain(name, err)
		}
		// A directory that takes no new files may still hold one that can be written.
	}
	flags := os.O_WRONLY
	if at.mode == 0 {
		flags |= os.O_CREATE | os.O_EXCL
	}
	file, err := os.OpenFile(at.path, flags, 0o666)
	if err != nil {
		return nil, plain(name, err)
	}
	return &File{file: file, made: at.mode == 0, clears: at.mode != 0, stop: never}, nil
}

func never() bool { return true }

// beside begins a temporary file in the directory of its place.
func beside(at place) (*File, error) {
	for try := 0; ; try++ {
		name := filepath.Join(filepath.Dir(at.path), ".fullpipe-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(try)+
			filepath.Ext(at.path))
		f, err := at.temporary(name, 0o666)
		if errors.Is(err, fs.ErrExist) && try < 100 {
			continue
		}
		return f, err
	}
}

// temporary begins a file that Commit renames to its place. It has the owner and the mode of the
// file that is there; mode, less the umask, where none is.
func (at place) temporary(name string, mode fs.FileMode) (*File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	f := &File{file: file, target: at.path, temporary: name, mode: at.mode, stop: never}
	if at.info != nil {
		if err := errors.Join(keepOwner(file, at.info), file.Chmod(at.mode.Perm())); err != nil {
			f.Discard()
			return nil, err
		}
	}
	return f, nil
}

// openSpecial opens what is no regular file. Opening a FIFO waits for its other end, so
// it happens beside the wait for ctx; a wait that is given up ends with the program.
func openSpecial(ctx context.Context, name string, at place) (*File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.OpenFile(at.path, os.O_WRONLY|os.O_APPEND, 0)
		done <- opened{file, err}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: nobody opened it to read: %w", name, context.Cause(ctx))
	case o := <-done:
		if o.err != nil {
			return nil, plain(name, o.err)
		}
		f := &File{file: o.file}
		f.stop = context.AfterFunc(ctx, func() { o.file.SetWriteDeadline(time.Now().Add(grace)) })
		return f, nil
	}
}

// Write writes to the file that will have the name, or directly.
func (f *File) Write(p []byte) (int, error) {
	if f == nil {
		return len(p), nil
	}
	if f.over != nil {
		return f.over.Write(p)
	}
	if f.clears && !f.written {
		if err := f.file.Truncate(0); err != nil {
			return 0, err
		}
	}
	f.written = true
	return f.file.Write(p)
}

// File is what a program that is started may write to.
func (f *File) File() *os.File {
	if f == nil {
		return nil
	}
	if f.clears && !f.written {
		f.file.Truncate(0)
		f.written = true
	}
	return f.file
}

// Commit closes the file and gives it its name. A failed Commit leaves what was there
// before.
func (f *File) Commit() error {
	if f == nil || f.file == nil {
		return nil
	}
	defer f.Discard()
	file := f.file
	if f.temporary == "" {
		f.stop()
		f.file = nil
		return file.Close()
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	err := os.Rename(f.temporary, f.target)
	if err != nil && f.mode != 0 {
		err = f.overwrite() // a file that is mounted cannot be renamed over
	}
	if err != nil {
		return plain(f.target, err)
	}
	f.file = nil
	return nil
}

// overwrite copies the temporary file into the one that keeps its place.
func (f *File) overwrite() error {
	text, err := os.ReadFile(f.temporary)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(f.target, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Remove(f.temporary)
}

// Discard gives up what was not committed: a regular file is as it was before, and one
// that was not there is not there. After Commit it does nothing.
func (f *File) Discard() {
	if f == nil || f.file == nil {
		return
	}
	f.stop()
	info, err := f.file.Stat()
	f.file.Close()
	if f.temporary != "" || f.made && err == nil && info.Size() == 0 {
		os.Remove(f.file.Name())
	}
	f.file = nil
}

// place is where a name leads.
type place struct {
	path    string
	regular bool
	mode    fs.FileMode // 0: nothing is there yet
	info    fs.FileInfo
}

// Target is the regular file, there already or not, that a name leads to through links.
func Target(name string) (string, error) {
	at, err := resolve(name)
	if err == nil && !at.regular {
		err = fmt.Errorf("%s is no regular file: it is left alone", name)
	}
	return at.path, err
}

// mostLinks is as many as Linux follows (path_resolution(7)).
const mostLinks = 40

// resolve follows links, those that lead nowhere yet among them.
func resolve(name string) (place, error) {
	path := name
	for range mostLinks {
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
			return place{path, true, info.Mode(), info}, nil
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

// plain is an error about the name that the user gave, whatever name the system had.
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
