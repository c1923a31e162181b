// Package atomicfile writes, renames and removes files. Other processes see a regular file complete or not at all: it
// is written to a temporary file, synced and renamed. Links are followed. Devices, FIFOs and /dev/stdout are
// written to directly and never replaced or removed.
package atomicfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// File is an output that is being written. A nil *File discards everything, so that an unused output needs no
// special case.
type File struct {
	name      string // as the user gave it
	file      *os.File
	target    string // after links; "" when it is written directly
	temporary string // its name until Commit
	existed   bool   // a file was there before
	fresh     bool   // Commit replaces nothing
	clears    bool   // the first write truncates the file
	written   bool
	own       fs.FileInfo // the inode that this File created, or nil
	stop      func() bool // stops the watch of ctx
	over      io.Writer   // replaces the file
}

// Over returns an output to an open stream.
func Over(w io.Writer) *File { return &File{over: w} }

// shutdownTimeout is the longest time that a blocked write continues after ctx has ended.
const shutdownTimeout = 500 * time.Millisecond

// Permissions of new files, before the umask.
const (
	forAll   fs.FileMode = 0o666
	forOwner fs.FileMode = 0o600
)

// Create starts a file that gets its name when Commit returns nil. It waits for the reader of a FIFO until ctx
// ends.
func Create(ctx context.Context, name string) (*File, error) { return whole(ctx, name, forAll) }

// Private is Create with mode 0600 for a new file.
func Private(ctx context.Context, name string) (*File, error) { return whole(ctx, name, forOwner) }

// New is Private for a file that must not exist: New or Commit returns fs.ErrExist otherwise.
func New(name string) (*File, error) {
	at, err := resolve(name)
	switch {
	case err != nil:
		return nil, err
	case !at.regular || at.info != nil:
		return nil, plain(name, fs.ErrExist)
	}
	f, err := createTemporary(name, at, forOwner)
	if err != nil {
		return nil, plain(name, err)
	}
	f.fresh = true
	return f, nil
}

func whole(ctx context.Context, name string, perm fs.FileMode) (*File, error) {
	at, err := resolve(name)
	if err != nil {
		return nil, err
	}
	if at.regular {
		if f, err := createTemporary(name, at, perm); err == nil || at.info == nil {
			return f, plain(name, err)
		}
		// A directory without write permission may contain a writable file.
	}
	return open(ctx, name, os.O_WRONLY)
}

// Stream opens a file that others can read while it is written.
func Stream(ctx context.Context, name string) (*File, error) { return open(ctx, name, os.O_WRONLY) }

// Append opens a file for appending, such as a log.
func Append(ctx context.Context, name string) (*File, error) {
	return open(ctx, name, os.O_WRONLY|os.O_APPEND)
}

// open opens the file in a goroutine, because a FIFO waits for its other end and a network file system may not
// respond.
func open(ctx context.Context, name string, flags int) (*File, error) {
	type opened struct {
		file *File
		err  error
	}
	done := make(chan opened)
	go func() {
		f, err := openDirectly(name, flags)
		select {
		case done <- opened{f, err}:
		case <-ctx.Done():
			f.Discard()
		}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("%s: nobody opened it to read: %w", name, context.Cause(ctx))
	case o := <-done:
		if o.err == nil {
			o.file.stop = context.AfterFunc(ctx, func() { o.file.file.SetWriteDeadline(time.Now().Add(shutdownTimeout)) })
		}
		return o.file, o.err
	}
}

func openDirectly(name string, flags int) (*File, error) {
	for try := 0; ; try++ {
		at, err := resolve(name)
		if err != nil {
			return nil, err
		}
		f := &File{name: name, clears: at.info != nil && flags == os.O_WRONLY, stop: never}
		how := flags
		switch {
		case !at.regular:
			how |= os.O_APPEND
		case at.info == nil:
			how |= os.O_CREATE | os.O_EXCL
		}
		f.file, err = os.OpenFile(at.path, how, forAll)
		if errors.Is(err, fs.ErrExist) && try < maxTries { // another process created it meanwhile
			continue
		}
		if err == nil && how&os.O_CREATE != 0 {
			f.own, err = f.file.Stat()
		}
		if err != nil {
			f.file.Close()
			return nil, plain(name, err)
		}
		return f, nil
	}
}

// maxTries limits the attempts when other processes take the name first.
const maxTries = 100

// createTemporary creates a file with a unique name in the directory of the target.
func createTemporary(name string, at place, perm fs.FileMode) (*File, error) {
	removeStale(filepath.Dir(at.path))
	for try := 0; ; try++ {
		temporary := filepath.Join(filepath.Dir(at.path), ".fullpipe-"+strconv.Itoa(os.Getpid())+"-"+strconv.Itoa(try)+
			filepath.Ext(at.path))
		f, err := at.begin(name, temporary, perm)
		if errors.Is(err, fs.ErrExist) && try < maxTries {
			continue
		}
		if err == nil {
			markUsed(f.file)
		}
		return f, err
	}
}

// begin creates the temporary file that Commit renames. It keeps owner and mode of the existing file, or has perm
// less the umask.
func (at place) begin(name, temporary string, perm fs.FileMode) (*File, error) {
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	f := &File{name: name, file: file, target: at.path, temporary: temporary, existed: at.info != nil, stop: never}
	if at.info != nil {
		if err := errors.Join(keepOwner(file, at.info), file.Chmod(at.info.Mode().Perm())); err != nil {
			f.Discard()
			return nil, err
		}
	}
	return f, nil
}

func never() bool { return true }

// Write writes to the temporary file, or directly.
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

// File returns the open file, for a child process's output.
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

// Commit closes the file and renames it. On failure the old file is unchanged.
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
	info, err := file.Stat()
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if f.fresh {
		return plain(f.name, os.Link(f.temporary, f.target)) // Discard removes the other name
	}
	err = os.Rename(f.temporary, f.target)
	if err == nil {
		f.own = info
	} else if f.existed {
		err = f.overwrite() // a mount point cannot be renamed over
	}
	if err != nil {
		return plain(f.target, err)
	}
	f.file = nil
	return nil
}

// overwrite copies the temporary file into the target.
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

// Discard removes uncommitted content: an existing regular file is unchanged, a new one does not appear. After
// Commit it does nothing.
func (f *File) Discard() {
	if f == nil || f.file == nil {
		return
	}
	f.stop()
	file := f.file
	f.file = nil
	info, err := file.Stat()
	file.Close()
	if f.temporary != "" {
		os.Remove(f.temporary)
	} else if f.own != nil && err == nil && info.Size() == 0 {
		f.Remove()
	}
}

// Remove deletes the file that this File created if its name still leads to the same inode. It keeps links, their
// targets and special files.
func (f *File) Remove() error {
	if f == nil || f.own == nil {
		return nil
	}
	if f.file != nil {
		f.stop()
		f.file.Close()
		f.file = nil
	}
	now, err := os.Lstat(f.name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, f.own) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Remove(f.name)
}
