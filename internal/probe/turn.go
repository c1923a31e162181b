package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
)

// Turn is the turn of a session's client with a server that takes one client at a time.
type Turn struct {
	// Await answers nil when the turn has come; tell tells the client its place until then.
	Await func(ctx context.Context, tell func(place int) error) error
	// Release gives the turn back.
	Release func()
	// Extend sets how long from now the turn lasts though others wait.
	Extend func(time.Duration)
	// Held returns how long the client has had the turn while others wait; 0: nobody does.
	Held func() time.Duration
}

// idleTurn is how long a client with the turn may ask for nothing while others wait. It is
// more than any command of fullpipe thinks between two transfers.
const idleTurn = 30 * time.Second

// ErrTurnOver ends the session of a client whose turn is over.
var ErrTurnOver = errors.New("its turn is over: others wait")

var errSpokeFirst = errors.New("it left, or spoke before its turn")

// await tells the client its place until its turn has come. One that leaves meanwhile, or
// says anything, has no place any more.
func (s *Session) await(ctx context.Context, secured *tls.Conn, messages <-chan message) error {
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
		return s.greet(secured, h)
	})
	close(stop)
	<-stopped
	if err != nil {
		s.greet(secured, s.hello(true)) // there is no place for it; one that left hears nothing
		return err
	}
	if err := context.Cause(ctx); err != nil {
		s.Turn.Release()
		return err
	}
	return nil
}

// greet writes hello within the time for an answer.
func (s *Session) greet(secured *tls.Conn, h Hello) error {
	secured.SetWriteDeadline(time.Now().Add(s.times().Answer))
	defer secured.SetWriteDeadline(time.Time{})
	return writeMessage(secured, kindHello, h)
}

// extendTurn lets the client keep its turn for so long.
func (s *Session) extendTurn(d time.Duration) {
	if s.Turn != nil {
		s.Turn.Extend(d)
	}
}

func (s *Session) turnIsOver() bool { return s.Turn != nil && s.Turn.Held() > admission.MaxTurn }

// refuseRequest answers a request that came too late.
func (s *Session) refuseRequest(secured *tls.Conn, why error) {
	secured.SetWriteDeadline(time.Now().Add(s.times().Stop))
	writeMessage(secured, kindAccept, accept{Error: why.Error()})
}

const (
	// mostWait is how long a client waits for its turn.
	mostWait = time.Hour
	// mostPlace is a longer queue than any server has.
	mostPlace = 1000
)

// awaitTurn reads the places that a busy server lets the client wait at, until it is none.
// Only a client that shows them waits.
func (c *control) awaitTurn(ctx context.Context, f Far) error {
	begun := time.Now()
	for said, last := 0, mostPlace; c.hello.Busy && c.hello.Place > 0; said++ {
		waited := time.Since(begun)
		switch {
		case f.Waiting == nil || waited > mostWait:
			return errBusy
		case c.hello.Place > last:
			return fmt.Errorf("it lets this client wait at place %d, where %d can be the last", c.hello.Place, last)
		case float64(said) > mostAtOnce+mostPerSecond*waited.Seconds():
			return errFlood
		}
		if said == 0 || c.hello.Place < last {
			last = c.hello.Place
			f.Waiting(last)
		}
		m, err := c.next(ctx, f.Times.Stall)
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
