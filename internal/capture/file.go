package capture

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/fullpipe-net/fullpipe/internal/flow"
)

// File reads the packets of one capture file.
type File struct {
	name  string
	in    source
	close []func() error

	next  func(*Packet) error
	plain func([]flow.Segment) int // decodes what is next as long as that is simple; may be nil
	first *Packet                  // read ahead by begins
	order binary.ByteOrder
	done  error // the error of Next from now on
	lost  int64 // packets that came too fast for whoever captured

	// pcap
	perTick    int64 // nanoseconds of one unit of the records' second time field
	recordSize int
	bigEndian  bool
	link       LinkType

	// pcapng
	interfaces []iface
}

// Open opens a capture file. Compression and format are found out from the content.
func Open(name string) (*File, error) {
	in, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	f, err := NewFile(name, in)
	if err != nil {
		in.Close()
		return nil, err
	}
	f.close = append(f.close, in.Close)
	return f, nil
}

// NotACapture is the error for a file in no format that is known here.
type NotACapture struct {
	File string
	Why  string
	// Convert is a command that makes a capture of it, if one is known.
	Convert string
}

func (e *NotACapture) Error() string { return e.File + ": not a capture: " + e.Why }

// Try says what would be one.
func (e *NotACapture) Try() string {
	if e.Convert != "" {
		return strings.ReplaceAll(e.Convert, "FILE", e.File)
	}
	return "tcpdump -i any -s 128 -w FILE.pcap tcp"
}

// NewFile reads a capture from in; name is for messages.
func NewFile(name string, in io.Reader) (*File, error) {
	f := &File{name: name}
	plain, err := f.decompress(in)
	if err != nil {
		return nil, err
	}
	f.in = source{r: plain, buf: make([]byte, sourceSize)}
	if err := f.begin(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Close releases the file; it does not close standard input.
func (f *File) Close() error {
	var errs []error
	for _, c := range f.close {
		errs = append(errs, c())
	}
	f.close = nil
	f.done = os.ErrClosed
	return errors.Join(errs...)
}

// Next reads the next packet into p. It returns io.EOF at the end of the file and a *Damage where the file cannot be
// read further. The packets before it are valid.
func (f *File) Next(p *Packet) error {
	if f.first != nil {
		*p = *f.first
		f.first = nil
		return nil
	}
	if f.done != nil {
		return f.done
	}
	if err := f.next(p); err != nil {
		f.done = err
		return err
	}
	return nil
}

// begins is the time of the file's first packet, which stays the next one; a file without
// packets begins last.
func (f *File) begins() int64 {
	if f.first == nil {
		var p Packet
		if f.Next(&p) != nil {
			return math.MaxInt64
		}
		p.Data = bytes.Clone(p.Data)
		f.first = &p
	}
	return f.first.At
}

const (
	magicGzip = "\x1f\x8b"
	magicZstd = "\x28\xb5\x2f\xfd"
	magicBzip = "BZh"
	// maxZstdWindow bounds what a frame header may make the decoder allocate.
	maxZstdWindow = 64 << 20
)

func (f *File) decompress(in io.Reader) (io.Reader, error) {
	head := bufio.NewReaderSize(in, 64<<10)
	magic, err := head.Peek(4)
	if err != nil && len(magic) == 0 {
		if errors.Is(err, io.EOF) {
			return nil, &NotACapture{File: f.name, Why: "the file is empty"}
		}
		return nil, fmt.Errorf("%s: %w", f.name, err)
	}
	switch {
	case bytes.HasPrefix(magic, []byte(magicGzip)):
		z, err := gzip.NewReader(head)
		if err != nil {
			return nil, &NotACapture{File: f.name, Why: "the gzip file cannot be read: " + err.Error()}
		}
		f.close = append(f.close, z.Close)
		return &unpacked{z, "gzip"}, nil
	case bytes.HasPrefix(magic, []byte(magicBzip)):
		return &unpacked{bzip2.NewReader(head), "bzip2"}, nil
	case bytes.HasPrefix(magic, []byte(magicZstd)):
		z, err := zstd.NewReader(head, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxZstdWindow))
		if err != nil {
			return nil, &NotACapture{File: f.name, Why: "the zstd file cannot be read: " + err.Error()}
		}
		f.close = append(f.close, func() error { z.Close(); return nil })
		return &unpacked{z, "zstd"}, nil
	}
	return head, nil
}

// unpacked says of a compressed file that it ends too early: the capture within it may seem
// whole until there.
type unpacked struct {
	r    io.Reader
	kind string
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the %s file itself is cut", u.kind)
	} else if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("the %s file is corrupt: %w", u.kind, err)
	}
	return n, err
}

// begin reads the file's head and chooses the format.
func (f *File) begin() error {
	head, err := f.in.peek(4)
	if err != nil {
		why := fmt.Sprintf("%d bytes are too few", len(head))
		if !errors.Is(err, io.EOF) {
			why = err.Error()
		}
		return &NotACapture{File: f.name, Why: why}
	}
	if binary.LittleEndian.Uint32(head) == blockSection {
		f.next = f.nextBlock
		f.plain = f.plainBlocks
		return nil
	}
	if whole, _ := f.in.peek(len(magicSnoop)); string(whole) == magicSnoop {
		return f.beginSnoop()
	}
	return f.beginPcap(head)
}

func (f *File) damage(err error, format string, args ...any) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return &Damage{File: f.name, Offset: f.in.offset(), Why: fmt.Sprintf(format, args...), Err: err}
}
