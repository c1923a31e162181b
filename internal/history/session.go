package history

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Session is what all documents and far ends of one command line share.
type Session struct {
	TestID string // in this host's records and in those of the far ends
	Series Series // nil: the documents' series is not this command line's

	mu     sync.Mutex // guards clocks
	clocks []transfer.Clock
}

type sessionKey struct{}

// WithSession begins a session that sessionOf finds again.
func WithSession(ctx context.Context) context.Context {
	return context.WithValue(ctx, sessionKey{}, &Session{TestID: NewID(begun)})
}

// SessionOf is the session of a command's context; one of its own where there is none.
func SessionOf(ctx context.Context) *Session {
	if s, ok := ctx.Value(sessionKey{}).(*Session); ok {
		return s
	}
	return &Session{TestID: NewID(begun)}
}

// Met adds the offset of a far end's clock.
func (s *Session) Met(c transfer.Clock) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clocks = append(s.clocks, c)
}

// FarClock returns the far end's clock; nil if it is not known, or if there is more than one.
func (s *Session) FarClock() *record.FarClock {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clocks) != 1 {
		return nil
	}
	return &record.FarClock{OffsetS: s.clocks[0].Offset.Seconds(), BoundS: s.clocks[0].MaxError.Seconds()}
}

// NewID draws an identifier for a record of that time.
func NewID(at time.Time) string {
	var random [10]byte
	rand.Read(random[:])
	return record.NewID(at, random)
}
