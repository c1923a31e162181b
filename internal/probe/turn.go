package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
)

// Turn is a client's turn at an exclusive server, which serves one client at a time.
type Turn struct {
	// Await returns nil when the turn has come. Until then report sends the client its place.
	Await func(ctx context.Context, report func(place int) error) error
	// Release ends the turn.
	Release func()
	// Extend sets how long the turn lasts from now if others wait.
	Extend func(time.Duration)
	// ContendedTime returns how long the client has had the turn while others wait; 0: nobody waits.
	ContendedTime func() time.Duration
}

// idleTurnTimeout is how long a client with the turn may be idle while others wait. It exceeds fullpipe's pauses
// between two transfers.
const idleTurnTimeout = 30 * time.Second

// ErrTurnOver ends the session of a client whose turn is over.
var ErrTurnOver = errors.New("its turn is over: other clients wait")

var errSpokeFirst = errors.New("it left or sent a message before its turn")

// awaitTurn sends the client its place until its turn. A client that leaves or sends a message loses its place.
func (s *Session) awaitTurn(ctx context.Context, secured *tls.Conn, messages <-chan message) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-messages:
			cancel(errSpokeFirst)
		case <-stop:
		}
	}()
	err := s.Turn.Await(ctx, func(place int) error {
		h := s.hello(true)
		h.Place = place
		return s.sendHello(secured, h)
	})
	close(stop)
	<-stopped
	if err != nil {
		s.sendHello(secured, s.hello(true)) // refused; has no effect on a closed connection
		return err
	}
	if err := context.Cause(ctx); err != nil {
		s.Turn.Release()
		return err
	}
	return nil
}

// sendHello writes hello within the answer timeout.
func (s *Session) sendHello(secured *tls.Conn, h Hello) error {
	secured.SetWriteDeadline(time.Now().Add(s.timeouts().Answer))
	defer secured.SetWriteDeadline(time.Time{})
	return writeMessage(secured, kindHello, h)
}

// extendTurn extends the client's turn.
func (s *Session) extendTurn(d time.Duration) {
	if s.Turn != nil {
		s.Turn.Extend(d)
	}
}

func (s *Session) turnIsOver() bool {
	return s.Turn != nil && s.Turn.ContendedTime() > admission.MaxTurn
}

// refuseRequest refuses a request after the end of the turn.
func (s *Session) refuseRequest(secured *tls.Conn, why error) {
	secured.SetWriteDeadline(time.Now().Add(s.timeouts().Stop))
	writeMessage(secured, kindAccept, accept{Error: why.Error()})
}

const (
	// maxWait is the longest wait of a client for its turn.
	maxWait = time.Hour
	// maxPlace exceeds the queue length of any server.
	maxPlace = 1000
)

// awaitTurn reads the client's places in a busy server's queue until its turn. Only clients with OnQueued wait.
func (c *control) awaitTurn(ctx context.Context, f Far) error {
	startedAt := time.Now()
	for said, last := 0, maxPlace; c.hello.Busy && c.hello.Place > 0; said++ {
		waited := time.Since(startedAt)
		switch {
		case f.OnQueued == nil || waited > maxWait:
			return errBusy
		case c.hello.Place > last:
			return fmt.Errorf("it queues this client at place %d; the last possible place is %d", c.hello.Place, last)
		case float64(said) > maxBurstMessages+maxMessagesPerSecond*waited.Seconds():
			return errFlood
		}
		if said == 0 || c.hello.Place < last {
			last = c.hello.Place
			f.OnQueued(last)
		}
		m, err := c.readNext(ctx, f.Timeouts.Stall)
		if err != nil {
			return err
		}
		c.hello = Hello{}
		if err := m.decode(kindHello, &c.hello); err != nil {
			return err
		}
		if err := c.hello.check(); err != nil {
			return err
		}
	}
	if c.hello.Busy {
		return errBusy
	}
	return nil
}
