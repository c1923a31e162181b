package input

import (
	"bufio"
	"encoding/binary"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// Text reads a text as UTF-8 that may be UTF-16 or begin with a mark of its order: what
// PowerShell's > writes. Without a mark it is as it came.
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
	}
	return r
}

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
