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

// What a server may say, whatever it says: who reads a history may be led to another server than he means, and
// pgx keeps what that says without a bound.
const (
	mostOfOne    = record.MostBytes + 1<<16 // bytes of one message: the largest is a document, packed
	mostAnswer   = 256 << 20                // bytes of rows in answer to one question: a list of a million results
	mostBeside   = 1 << 20                  // bytes of a connection's life that answer nothing: settings, notices
	mostProof    = 4 << 10                  // bytes of one message about who we are
	mostHardened = 1_000_000                // rounds of SCRAM's hash, about a second of a processor; servers ask 4096
)

// sieve reads a server's messages (a byte for the kind, four for the length with themselves, the body) and ends
// where it says more than one may.
type sieve struct {
	in     io.Reader
	head   []byte // of a message whose header has not come whole
	body   []byte // of one about who we are
	kind   byte
	left   int // bytes of the body that have not come
	beside int
	answer atomic.Int64 // bytes since the last question
}

// newFrontend has pgx read a server through a sieve.
func newFrontend(in io.Reader, out io.Writer) *pgproto3.Frontend {
	s := &sieve{in: in}
	return pgproto3.NewFrontend(s, asking{s, out})
}

// asking notes that a question is asked.
type asking struct {
	sieve *sieve
	out   io.Writer
}

func (a asking) Write(b []byte) (int, error) {
	a.sieve.answer.Store(0)
	return a.out.Write(b)
}

func (s *sieve) Read(b []byte) (int, error) {
	n, err := s.in.Read(b)
	if bad := s.look(b[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

func (s *sieve) look(b []byte) error {
	for len(b) > 0 {
		if s.left == 0 {
			n := min(5-len(s.head), len(b))
			s.head = append(s.head, b[:n]...)
			b = b[n:]
			if len(s.head) < 5 {
				return nil
			}
			s.kind = s.head[0]
			s.left = int(binary.BigEndian.Uint32(s.head[1:])) - 4
			s.head = s.head[:0]
			s.body = nil
			if s.left < 0 || s.left > mostOfOne || s.kind == 'R' && s.left > mostProof {
				return fmt.Errorf("its server begins a message of %d bytes", s.left)
			}
			if err := s.count(5); err != nil {
				return err
			}
		}
		n := min(s.left, len(b))
		if s.kind == 'R' {
			s.body = append(s.body, b[:n]...)
		}
		s.left = s.left - n
		b = b[n:]
		if err := s.count(n); err != nil {
			return err
		}
		if s.kind == 'R' && s.left == 0 {
			if err := hardened(s.body); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sieve) count(n int) error {
	switch s.kind {
	case 'S', 'N', 'A', 'R': // ParameterStatus, NoticeResponse, NotificationResponse, Authentication
		s.beside += n
		if s.beside > mostBeside {
			return errors.New("its server says more than answers")
		}
	default:
		if s.answer.Add(int64(n)) > mostAnswer {
			return errors.New("its server's answer does not end")
		}
	}
	return nil
}

// hardened refuses AuthenticationSASLContinue (RFC 5802: r=…,s=…,i=ROUNDS) that would keep a processor busy, which
// no interrupt ends.
func hardened(body []byte) error {
	const saslContinue = 11
	if len(body) < 4 || binary.BigEndian.Uint32(body) != saslContinue {
		return nil
	}
	for field := range bytes.SplitSeq(body[4:], []byte(",")) {
		if text, ok := bytes.CutPrefix(field, []byte("i=")); ok {
			if n, err := strconv.Atoi(string(text)); err != nil || n > mostHardened {
				return fmt.Errorf("its server asks for %.20q rounds of a hash", text)
			}
		}
	}
	return nil
}
