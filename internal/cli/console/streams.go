// Package console has a command's streams, terminals, notes and logs.
package console

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/tui"
)

// Streams are a command's input and outputs.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// sink is standard output or standard error. It keeps the first error, so that lost text does not count as printed.
// A blocked write ends soon after ctx.
type sink struct {
	ctx    context.Context
	to     io.Writer
	failed atomic.Pointer[error]
	colour string // of --color; "" is auto
}

// shutdownTimeout is how long a blocked write lasts after an interrupt.
const shutdownTimeout = 500 * time.Millisecond

func (s *sink) Unwrap() io.Writer { return s.to }

func (s *sink) Write(p []byte) (int, error) {
	if err := s.Err(); err != nil {
		return 0, err
	}
	n, err := s.write(p)
	if err != nil {
		s.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

func (s *sink) write(p []byte) (int, error) {
	if _, isFile := s.to.(*os.File); !isFile {
		return s.to.Write(p)
	}
	type result struct {
		n   int
		err error
	}
	done := make(chan result, 1)
	go func(p []byte) {
		n, err := s.to.Write(p)
		done <- result{n, err}
	}(bytes.Clone(p))
	select {
	case r := <-done:
		return r.n, r.err
	case <-s.ctx.Done():
	}
	select {
	case r := <-done:
		return r.n, r.err
	case <-time.After(shutdownTimeout):
		return 0, errors.New("nobody reads it")
	}
}

// Columns returns the width of the terminal, 0 if it is none.
func (s *sink) Columns() int {
	f, ok := Raw(s.to).(*os.File)
	if !ok {
		return 0
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return columns
}

// Terminal reports whether the stream has a width.
func (s *sink) Terminal() bool { return s.Columns() > 0 }

// IsDrawable reports whether out is a terminal that is large enough for pictures.
func IsDrawable(out io.Writer) bool {
	f, ok := Raw(out).(*os.File)
	if !ok {
		return false
	}
	columns, rows, err := term.GetSize(int(f.Fd()))
	return err == nil && tui.Fits(columns, rows)
}

// Err returns the first error, without the name that the system has for the stream.
func (s *sink) Err() error {
	first := s.failed.Load()
	if first == nil {
		return nil
	}
	var path *fs.PathError
	if errors.As(*first, &path) {
		return path.Err
	}
	return *first
}

// IsGone reports whether the reader of a stream has closed it, as head does.
func IsGone(err error) bool { return errors.Is(err, syscall.EPIPE) }

// NewSinks returns streams that make foreign text harmless and keep the first failed write.
func NewSinks(ctx context.Context, std Streams) (harmless Streams, out *sink) {
	out = &sink{ctx: ctx, to: std.Out}
	return NewStreams(std.In, render.NewWriter(out), render.NewWriter(&sink{ctx: ctx, to: std.Err})), out
}

// Unescaped returns standard output for formats that are not text.
func Unescaped(cmd *cobra.Command) io.Writer {
	if w, ok := cmd.OutOrStdout().(*render.Writer); ok {
		return w.Unwrap()
	}
	return cmd.OutOrStdout()
}

// Raw returns the stream itself: for programs that are started with it, for our own control
// sequences, and for formats that are not text.
func Raw(w io.Writer) io.Writer {
	for {
		u, ok := w.(interface{ Unwrap() io.Writer })
		if !ok {
			return w
		}
		w = u.Unwrap()
	}
}

// IsTerminal reports whether one of a command's streams is a terminal.
func IsTerminal(stream any) bool {
	if w, ok := stream.(io.Writer); ok {
		stream = Raw(w)
	}
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	return os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// NewStreams returns the streams of a command.
func NewStreams(in io.Reader, out, err io.Writer) Streams { return Streams{in, out, err} }
