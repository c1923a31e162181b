package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/engine"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Host is what a session needs of the server around it.
type Host interface {
	// Expect makes the connections that show the tokens arrive on the channel. They
	// connect to the port it answers (0: the server's own), where a listener was given
	// the options before listen(). Forget undoes it.
	Expect(ctx context.Context, e Expected) (streams <-chan *net.TCPConn, port int, forget func(), err error)
	// Grant makes a cookie with which an iperf3 test is admitted until revoke is called. The test ends at a time;
	// zero: whenever it wants.
	Grant(until time.Time) (cookie Preface, revoke func(), err error)
	// Begin says that a transfer of the named test begins to move data, until over, which
	// answers what other tests ran beside it; nil: none.
	Begin(test string) (over func() *transfer.Beside)
}

// Expected are the data connections of one transfer.
type Expected struct {
	Tokens  []Preface
	Options socket.Options
	// Client and Local are the two ends' addresses, Ports those that the client will
	// connect from; none: not known.
	Client, Local netip.Addr
	Ports         []uint16
}

// Session is the server's end of one control connection.
type Session struct {
	Host        Host
	Certificate tls.Certificate
	Key         Key
	// Holders, when not nil, returns who has a key of their own beside Key, each with its bounds. It is
	// asked at each request, so that a key that is gone ends its sessions. Holder is the one that
	// Admit let in, nil for who has Key.
	Holders func() []Holder
	Holder  *Holder
	// Local is where the client connected to, Remote where from.
	Local, Remote netip.AddrPort
	Hello         Hello
	Times         Times
	// Turn is how the client's turn is waited for; nil: clients need not wait.
	Turn *Turn
	// Event is told of each transfer; nil: nobody.
	Event func(*transfer.Result)

	begun  time.Time // when Serve did
	unheld *Limits   // the server's own, before a holder's narrowed them; nil: no holder did
}

// Admit answers Marker, which has been read, and has the client prove the key. Until
// then it is a stranger and gets nothing else. After an error the caller closes conn; secured
// is for Serve or Refuse.
func (s *Session) Admit(ctx context.Context, conn net.Conn) (secured *tls.Conn, err error) {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(s.times().Answer))
	if _, err = conn.Write([]byte{AnswerFullpipe}); err == nil {
		secured, err = secureServer(ctx, conn, s.Certificate, s.choose)
	}
	if err != nil {
		return nil, err
	}
	return secured, nil
}

// Refuse tells a client that has proven the key that there is no place for it, and
// closes the connection. A client that does not know Hello.Busy is told by the answer to
// its first message.
func (s *Session) Refuse(secured *tls.Conn) {
	defer secured.Close()
	secured.SetDeadline(time.Now().Add(s.times().Stop))
	if writeMessage(secured, kindHello, s.hello(true)) != nil {
		return
	}
	if _, err := readMessage(secured, mostRequest); err == nil {
		writeMessage(secured, kindAccept, accept{Error: errBusy.Error()})
	}
}

// hello is what this server tells of itself; busy says that it has no place.
func (s *Session) hello(busy bool) Hello {
	h := s.Hello
	h.KeyID = s.Key.ID().String()
	h.Version = leastVersion
	h.Versions = &speaks
	h.Busy = busy
	h.TimeNs = time.Now().UnixNano()
	return h
}

// Serve carries out what an admitted client offers until it leaves. It closes secured.
func (s *Session) Serve(ctx context.Context, secured *tls.Conn) error {
	defer secured.Close()
	s.begun = time.Now()
	defer context.AfterFunc(ctx, func() { secured.NetConn().Close() })()
	secured.SetDeadline(time.Time{}) // Admit's
	over := make(chan struct{})
	defer close(over)
	messages, gone := requests(secured, over)
	if s.Turn != nil {
		if err := s.await(ctx, secured, messages); err != nil {
			return err
		}
		defer s.Turn.Release()
	}
	if err := s.greet(secured, s.hello(false)); err != nil {
		return err
	}
	c := serving{Session: s, conn: secured, messages: messages, revoke: func() {}}
	defer func() { c.revoke() }()
	idle := time.NewTimer(s.times().Idle)
	defer idle.Stop()
	s.extendTurn(idleTurn)
	for {
		select {
		case m, open := <-messages:
			if !open {
				return <-gone
			}
			if m.kind == kindStop { // crossed our result on the way
				continue
			}
			if err := s.mayAsk(); err != nil {
				s.refuseRequest(secured, err)
				return err
			}
			if err := c.answer(ctx, m); err != nil {
				return err
			}
			s.extendTurn(idleTurn)
			if m.kind == kindGrant { // the test that it was granted is not heard of here
				s.extendTurn(max(idleTurn, s.Hello.Limits.Time))
			}
		case <-s.ended():
			return ErrKeyEnded
		case <-idle.C:
			return fmt.Errorf("idle for %v", s.times().Idle)
		}
		idle.Reset(s.times().Idle)
	}
}

// mayAsk returns why a request is refused and the session ends: nil, ErrTurnOver or ErrKeyEnded.
func (s *Session) mayAsk() error {
	switch {
	case s.turnIsOver():
		return ErrTurnOver
	case !s.stillHeld():
		return ErrKeyEnded
	}
	return nil
}

// requests are a client's messages, closed when there are no more; gone then says why.
func requests(secured *tls.Conn, over <-chan struct{}) (<-chan message, <-chan error) {
	messages := make(chan message)
	gone := make(chan error, 1)
	go func() {
		defer close(messages)
		for {
			m, err := readMessage(secured, mostRequest)
			if err != nil {
				gone <- err
				return
			}
			select {
			case messages <- m:
			case <-over:
				return
			}
		}
	}()
	return messages, gone
}

// serving is a session with an admitted client.
type serving struct {
	*Session
	conn     *tls.Conn
	messages <-chan message
	revoke   func() // takes the cookie back that was granted last
}

// answer does what one message asks for.
func (s *serving) answer(ctx context.Context, m message) (err error) {
	switch m.kind {
	case kindEcho:
		return answerEcho(s.conn, m, nil, time.Since(s.begun), s.times().Answer)
	case kindGrant:
		s.revoke()
		s.revoke, err = s.grant(s.conn)
		return err
	}
	var o offer
	if err := m.decode(kindOffer, &o); err != nil {
		return err
	}
	return s.serveOffer(ctx, s.conn, o, s.messages)
}

func (s *Session) times() Times { return s.Times.complete() }

// answerEcho sends a client's question back, with how this end stands if it sends and how
// long ago the session began.
func answerEcho(conn net.Conn, m message, sending *transfer.Sending, since, within time.Duration) error {
	var question echo
	if err := m.decode(kindEcho, &question); err != nil {
		return err
	}
	question.Sending = sending
	question.ClockNs = max(int64(since), 1)
	conn.SetWriteDeadline(time.Now().Add(within))
	return writeMessage(conn, kindEcho, question)
}

// grant lets the client run iperf3 tests for what this protocol has no words for: UDP.
func (s *Session) grant(conn net.Conn) (revoke func(), err error) {
	var cookie Preface
	revoke = func() {}
	if err = errBoundedGrant; s.Holder == nil || !s.Holder.bounded() {
		cookie, revoke, err = s.Host.Grant(s.until())
	}
	answer := accept{Tokens: []string{string(cookie[:])}}
	if err != nil {
		answer = refusal(err)
		revoke = func() {}
	}
	conn.SetWriteDeadline(time.Now().Add(s.times().Answer))
	return revoke, writeMessage(conn, kindAccept, answer)
}

// serveOffer answers one offer: the transfer's result, or a refusal. An error ends the
// session.
func (s *Session) serveOffer(ctx context.Context, conn net.Conn, o offer, messages <-chan message) error {
	spec := o.Spec
	spec.TestID = o.TestID
	send := func(k kind, body any) error {
		conn.SetWriteDeadline(time.Now().Add(s.times().Answer))
		return writeMessage(conn, k, body)
	}
	err := o.check()
	if err == nil {
		err = s.Hello.Check(spec)
	}
	if err != nil {
		return send(kindAccept, refusal(err))
	}
	s.extendTurn(admission.Lease(spec.Time))
	ctx, expire := Until(ctx, s.until())
	defer expire()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := engine.Options(spec.Direction == transfer.Down, spec.Far)
	tokens := make([]Preface, max(spec.Streams, 1))
	answer := accept{}
	for i := range tokens {
		tokens[i] = NewToken()
		answer.Tokens = append(answer.Tokens, string(tokens[i][:]))
	}
	expected := Expected{Tokens: tokens, Options: options, Client: s.Remote.Addr(), Local: s.Local.Addr()}
	// Without an address translator that changes ports, and as many as there are streams.
	if o.From == s.Remote.Port() && len(o.Ports) == len(tokens) {
		expected.Ports = o.Ports
	}
	arriving, port, forget, err := s.Host.Expect(ctx, expected)
	if err != nil {
		return send(kindAccept, refusal(err))
	}
	defer forget()
	answer.Port = port
	if spec.Direction == transfer.Down && socket.RemembersPaths() {
		answer.Warnings = append(answer.Warnings, "the far end remembers earlier transfers to this host "+
			"(net.ipv4.tcp_no_metrics_save is 0), "+
			"which changes how this one began")
	}
	if err := send(kindAccept, answer); err != nil {
		return err
	}

	// From here on the client may stop us, or be gone.
	watched := make(chan struct{})
	finished := make(chan struct{})
	var left error
	sending := &engine.Latest{}
	go func() {
		defer close(watched)
		for {
			select {
			case m, open := <-messages:
				switch {
				case !open:
					left = errLeft
				case m.kind == kindEcho:
					left = answerEcho(conn, m, sending.Get(), time.Since(s.begun), s.times().Answer)
					if left == nil {
						continue
					}
				case m.kind != kindStop:
					left = fmt.Errorf("message %q during a transfer", m.kind)
				}
				cancel(errStopped)
			case <-finished:
			}
			return
		}
	}()
	if port != 0 {
		expected.Ports = nil // any will do
	}
	end, err := s.transfer(ctx, spec, expected, arriving, sending, send)
	close(finished)
	<-watched
	if left != nil {
		return left
	}
	r := result{End: end, Stopped: errors.Is(err, errStopped)}
	if err != nil {
		r.Error = err.Error()
	}
	if s.Event != nil {
		s.Event(&transfer.Result{Spec: spec, Far: end, Complete: err == nil})
	}
	if end != nil {
		thin(end)
	}
	return send(kindResult, r)
}

var (
	errStopped = errors.New("stopped by the client")
	errLeft    = errors.New("the client left during a transfer")
)
