package mcp

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// errNoFiles is the error of a file that no --files directory has. Whether it exists elsewhere is not said.
var errNoFiles = errors.New("no regular file of that name is below a directory that --files allows")

// files opens files below the allowed directories.
type files struct{ dirs []string }

// newFiles checks the directories.
func newFiles(dirs []string) (*files, error) {
	f := &files{}
	for _, dir := range dirs {
		full, err := filepath.Abs(dir)
		if err != nil {
			return nil, err
		}
		info, err := os.Stat(full)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("is not a directory")}
		}
		if err != nil {
			return nil, err
		}
		f.dirs = append(f.dirs, full)
	}
	return f, nil
}

// open opens a regular file of at most maxBytes. A name is below a directory, or a whole path there. Symbolic links
// that leave the directory are refused when the file is opened, so that no exchange in between helps.
func (f *files) open(ctx context.Context, name string, maxBytes int64) (*os.File, error) {
	if len(f.dirs) == 0 {
		return nil, errors.New("no file may be read: fullpipe mcp was started without --files DIR")
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() { // a file of a network may not respond; it is closed when it does
		file, err := f.find(name)
		done <- opened{file, err}
	}()
	var file *os.File
	select {
	case o := <-done:
		if o.err != nil {
			return nil, o.err
		}
		file = o.file
	case <-ctx.Done():
		go func() {
			if o := <-done; o.err == nil {
				o.file.Close()
			}
		}()
		return nil, ctx.Err()
	}
	info, err := file.Stat()
	switch {
	case err != nil || !info.Mode().IsRegular():
		err = errNoFiles
	case info.Size() > maxBytes:
		err = fmt.Errorf("the file has %d bytes, at most %d are read", info.Size(), maxBytes)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// find opens the first regular file of a name.
func (f *files) find(name string) (*os.File, error) {
	for _, dir := range f.dirs {
		local := filepath.FromSlash(name)
		if filepath.IsAbs(local) {
			below, err := filepath.Rel(dir, local)
			if err != nil {
				continue
			}
			local = below
		}
		if !filepath.IsLocal(local) || strings.TrimSpace(local) == "" {
			continue
		}
		// A FIFO must not be opened: that waits for its writer.
		if info, err := os.Stat(filepath.Join(dir, local)); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if file, err := os.OpenInRoot(dir, local); err == nil {
			return file, nil
		}
	}
	return nil, errNoFiles
}
