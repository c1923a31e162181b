package capture

import "io"

const (
	sourceSize = 1 << 18
	// maxRecord is the longest packet that is believed. Kernels capture at most 256 KiB
	// of a packet, or 512 KiB where BIG TCP is in use.
	maxRecord = 1 << 20
)

// source is a buffered reader that shows its bytes in place. Its buffer grows with what
// arrives, never by what a file claims.
type source struct {
	r    io.Reader
	buf  []byte
	a, b int   // the unread bytes are buf[a:b]
	past int64 // bytes read before buf[0]
	err  error
}

func (s *source) offset() int64 { return s.past + int64(s.a) }

// peek returns the next n bytes; with an error, the rest of them. n is at most maxRecord plus a header.
func (s *source) peek(n int) ([]byte, error) {
	if s.b-s.a >= n {
		return s.buf[s.a : s.a+n], nil
	}
	return s.fill(n)
}

func (s *source) fill(n int) ([]byte, error) {
	if s.a > 0 {
		copy(s.buf, s.buf[s.a:s.b])
		s.past += int64(s.a)
		s.b = s.b - s.a
		s.a = 0
	}
	for empty := 0; s.b < n && s.err == nil; {
		if s.b == len(s.buf) {
			s.buf = append(s.buf, make([]byte, min(n-s.b, max(s.b, sourceSize)))...)
		}
		var got int
		got, s.err = s.r.Read(s.buf[s.b:])
		s.b += got
		empty++
		if got > 0 {
			empty = 0
		} else if empty > 100 {
			s.err = io.ErrNoProgress
		}
	}
	if s.b < n {
		return s.buf[:s.b], s.err
	}
	return s.buf[:n], nil
}

// skip passes over n bytes, which need not fit the buffer.
func (s *source) skip(n int64) error {
	for {
		if have := int64(s.b - s.a); n <= have {
			s.a += int(n)
			return nil
		} else {
			n -= have
		}
		s.past += int64(s.b)
		s.a = 0
		s.b = 0
		if _, err := s.fill(1); err != nil {
			return err
		}
	}
}
