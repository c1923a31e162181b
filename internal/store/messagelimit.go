package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Limits of what a server may send. A URL may lead to a hostile server, and pgx buffers its messages without a
// limit.
const (
	maxMessageBytes    = record.MostBytes + 1<<16 // bytes of one message; the largest is a packed document
	maxResultBytes     = 256 << 20                // bytes of rows for one query: a list of a million results
	maxOtherBytes      = 1 << 20                  // bytes per connection outside of query results: settings, notices
	maxAuthBytes       = 4 << 10                  // bytes of one authentication message
	maxSCRAMIterations = 1_000_000                // SCRAM iterations, about 1 s of CPU time; servers ask for 4096
)

// messageLimiter reads a server's messages (type byte, 4-byte length that includes itself, body) and fails when one
// exceeds its limit.
type messageLimiter struct {
	in          io.Reader
	header      []byte // incomplete message header
	body        []byte // body of an authentication message
	kind        byte
	bodyLeft    int // bytes of the body still to come
	otherBytes  int
	resultBytes atomic.Int64 // bytes since the last query
}

// newFrontend makes pgx read a server through a messageLimiter.
func newFrontend(in io.Reader, out io.Writer) *pgproto3.Frontend {
	s := &messageLimiter{in: in}
	return pgproto3.NewFrontend(s, queryWriter{s, out})
}

// queryWriter resets the limiter's result size at each query.
type queryWriter struct {
	limiter *messageLimiter
	out     io.Writer
}

func (a queryWriter) Write(b []byte) (int, error) {
	a.limiter.resultBytes.Store(0)
	return a.out.Write(b)
}

func (s *messageLimiter) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	if bad := s.inspect(b[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

func (s *messageLimiter) inspect(b []byte) error {
	for len(b) > 0 {
		if s.bodyLeft == 0 {
			n := min(5-len(s.header), len(b))
			s.header = append(s.header, b[:n]...)
			b = b[n:]
			if len(s.header) < 5 {
				return nil
			}
			s.kind = s.header[0]
			s.bodyLeft = int(binary.BigEndian.Uint32(s.header[1:])) - 4
			s.header = s.header[:0]
			s.body = nil
			if s.bodyLeft < 0 || s.bodyLeft > maxMessageBytes || s.kind == 'R' && s.bodyLeft > maxAuthBytes {
				return fmt.Errorf("its server begins a message of %d bytes", s.bodyLeft)
			}
			if err := s.count(5); err != nil {
				return err
			}
		}
		n := min(s.bodyLeft, len(b))
		if s.kind == 'R' {
			s.body = append(s.body, b[:n]...)
		}
		s.bodyLeft = s.bodyLeft - n
		b = b[n:]
		if err := s.count(n); err != nil {
			return err
		}
		if s.kind == 'R' && s.bodyLeft == 0 {
			if err := checkIterations(s.body); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *messageLimiter) count(n int) error {
	switch s.kind {
	case 'S', 'N', 'A', 'R': // ParameterStatus, NoticeResponse, NotificationResponse, Authentication
		s.otherBytes += n
		if s.otherBytes > maxOtherBytes {
			return errors.New("its server sends too much outside of query results")
		}
	default:
		if s.resultBytes.Add(int64(n)) > maxResultBytes {
			return errors.New("its server's query result is too large")
		}
	}
	return nil
}

// checkIterations refuses an AuthenticationSASLContinue (RFC 5802: r=…,s=…,i=ROUNDS) that would occupy a core: pgx
// computes the hash without a check for cancellation.
func checkIterations(body []byte) error {
	const saslContinue = 11
	if len(body) < 4 || binary.BigEndian.Uint32(body) != saslContinue {
		return nil
	}
	for field := range bytes.SplitSeq(body[4:], []byte(",")) {
		if text, ok := bytes.CutPrefix(field, []byte("i=")); ok {
			if n, err := strconv.Atoi(string(text)); err != nil || n > maxSCRAMIterations {
				return fmt.Errorf("its server asks for %.20q SCRAM iterations", text)
			}
		}
	}
	return nil
}
