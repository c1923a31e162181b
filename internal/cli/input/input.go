// Package input reads files that a user names, until the command is interrupted.
package input

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// MissingError is the error of a file that does not exist. It suggests the file of its folder with the nearest name.
type MissingError struct {
	Name  string
	Other string // suggestion if no name is near; "": none
	err   error
}

func (e *MissingError) Error() string { return e.Name + ": there is no such file" }
func (e *MissingError) Unwrap() error { return e.err }

// Try returns what to try.
func (e *MissingError) Try() string {
	dir, base := filepath.Split(e.Name)
	entries, _ := os.ReadDir(cmp.Or(dir, ".")) // without a list there is no near name
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	if near := didyoumean.Nearest(base, names); near != "" {
		return dir + near
	}
	return e.Other
}

// Missing sets the suggestion if err is a MissingError and no file has a near name. It returns err.
func Missing(err error, other string) error {
	var missing *MissingError
	if errors.As(err, &missing) {
		missing.Other = other
	}
	return err
}

// Open opens a file that a user named; "-" is standard input. Waiting for a FIFO's
// writer, for a pipe's next bytes or for a person ends with the command's context.
func Open(cmd *cobra.Command, name string) (io.ReadCloser, error) {
	if name == "-" {
		return interruptible(cmd.Context(), io.NopCloser(cmd.InOrStdin())), nil
	}
	return OpenFile(cmd.Context(), name)
}

// OpenFile opens a file, or returns when ctx ends.
func OpenFile(ctx context.Context, name string) (io.ReadCloser, error) {
	return openWith(ctx, name, os.Open, nil)
}

// OpenRegular opens a regular file that check accepts. It does not wait for a FIFO.
func OpenRegular(ctx context.Context, name string, check func(fs.FileInfo) error) (io.ReadCloser, error) {
	open := func(name string) (*os.File, error) { return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) }
	return openWith(ctx, name, open, func(info fs.FileInfo) error {
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: not a regular file", name)
		}
		return check(info)
	})
}

func openWith(ctx context.Context, name string, open func(name string) (*os.File, error),
	check func(fs.FileInfo) error) (io.ReadCloser, error) {
	// A regular file, or none, is read after an interrupt too, because results until then are kept as the
	// configuration says. But its disk or program may not respond.
	if info, err := os.Stat(name); err != nil || info.Mode().IsRegular() {
		ctx = later(ctx, afterInterrupt)
	}
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() { // after an interrupt it ends with the program
		file, err := open(name)
		done <- opened{file, err}
	}()
	var file *os.File
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case o := <-done:
		if errors.Is(o.err, fs.ErrNotExist) {
			return nil, &MissingError{Name: name, err: o.err}
		}
		if o.err != nil {
			return nil, o.err
		}
		file = o.file
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s: is a directory", name)
	}
	if err == nil && check != nil {
		err = check(info)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	if info.Mode().IsRegular() && info.Size() > 0 { // those of /proc have none, and some never end
		return file, nil
	}
	return interruptible(ctx, file), nil
}

// afterInterrupt is how long a regular file may take to be opened once there was an interrupt.
const afterInterrupt = 500 * time.Millisecond

// later returns a context that ends a time after another.
func later(ctx context.Context, by time.Duration) context.Context {
	after, end := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() { time.AfterFunc(by, end) })
	return after
}

// interruptible reads ahead in a goroutine, since a read from a terminal or an inherited
// pipe cannot be broken off.
func interruptible(ctx context.Context, in io.ReadCloser) io.ReadCloser {
	r := &ahead{ctx: ctx, in: in, chunks: make(chan chunk)}
	go r.pump()
	return r
}

// ahead is a reader that returns when a context ends. Its goroutine closes chunks.
type ahead struct {
	ctx    context.Context
	in     io.ReadCloser
	chunks chan chunk
	now    chunk
}

type chunk struct {
	data []byte
	err  error
}

// readAhead is how much is read at once: a capture comes through a pipe at its speed.
const readAhead = 256 << 10

func (r *ahead) pump() {
	defer close(r.chunks)
	buf := make([]byte, readAhead)
	other := make([]byte, readAhead)
	for ; ; buf, other = other, buf { // the reader of a chunk no longer uses the previous one
		n, err := r.in.Read(buf)
		select {
		case r.chunks <- chunk{buf[:n], err}:
		case <-r.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

func (r *ahead) Read(p []byte) (int, error) {
	for len(r.now.data) == 0 {
		if r.now.err != nil {
			return 0, r.now.err
		}
		select {
		case <-r.ctx.Done():
			r.now = chunk{err: r.ctx.Err()}
		case next, ok := <-r.chunks:
			if !ok {
				next.err = context.Cause(r.ctx)
			}
			r.now = next
		}
	}
	n := copy(p, r.now.data)
	r.now.data = r.now.data[n:]
	return n, nil
}

func (r *ahead) Close() error { return r.in.Close() }

// Read reads a whole text file of at most limit bytes, as UTF-8.
func Read(cmd *cobra.Command, name string, limit int64) ([]byte, error) {
	file, err := Open(cmd, name)
	if err != nil {
		return nil, err
	}
	return ReadAll(file, name, limit)
}

// ReadAll reads at most limit bytes of an open text file as UTF-8 and closes it. A longer file is an error.
func ReadAll(file io.ReadCloser, name string, limit int64) ([]byte, error) {
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(Text(file), limit+1))
	var dir *os.PathError
	switch {
	case errors.As(err, &dir):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", name, err)
	case int64(len(text)) > limit:
		return nil, fmt.Errorf("%s: longer than %s", name, units.Size(limit))
	}
	return text, nil
}

// Text returns a text as UTF-8. The input may be UTF-16 with a byte order mark, as PowerShell writes it, or without one
// if it begins with an ASCII character. Other text is not changed.
func Text(in io.Reader) io.Reader {
	r := bufio.NewReaderSize(in, 64<<10)
	begin, _ := r.Peek(3) // an error comes again with the read
	switch {
	case len(begin) == 3 && string(begin) == "\xef\xbb\xbf":
		_, _ = r.Discard(3)
	case len(begin) >= 2 && string(begin[:2]) == "\xff\xfe":
		_, _ = r.Discard(2)
		return &fromUTF16{in: r, order: binary.LittleEndian}
	case len(begin) >= 2 && string(begin[:2]) == "\xfe\xff":
		_, _ = r.Discard(2)
		return &fromUTF16{in: r, order: binary.BigEndian}
	case len(begin) >= 2 && isText(begin[0]) && begin[1] == 0:
		return &fromUTF16{in: r, order: binary.LittleEndian}
	case len(begin) >= 2 && begin[0] == 0 && isText(begin[1]):
		return &fromUTF16{in: r, order: binary.BigEndian}
	}
	return r
}

// isText reports whether a byte is a printable ASCII character or ends a line.
func isText(b byte) bool { return b >= ' ' && b <= '~' || b == '\r' || b == '\n' }

// fromUTF16 is a text of UTF-16 as one of UTF-8; half a character becomes U+FFFD.
type fromUTF16 struct {
	in    *bufio.Reader
	order binary.ByteOrder
	left  []byte // read, and not yet taken
}

func (f *fromUTF16) Read(p []byte) (n int, err error) {
	for len(f.left) == 0 {
		r, err := f.unit()
		if err != nil {
			return 0, err
		}
		if utf16.IsSurrogate(r) {
			next, _ := f.in.Peek(2)
			if len(next) == 2 {
				if both := utf16.DecodeRune(r, rune(f.order.Uint16(next))); both != utf8.RuneError {
					_, _ = f.in.Discard(2)
					r = both
				}
			}
		}
		f.left = utf8.AppendRune(f.left[:0], r)
	}
	n = copy(p, f.left)
	f.left = f.left[n:]
	return n, nil
}

func (f *fromUTF16) unit() (rune, error) {
	var b [2]byte
	if _, err := io.ReadFull(f.in, b[:]); err != nil {
		return 0, err
	}
	return rune(f.order.Uint16(b[:])), nil
}
