package probe

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Host is the server that a Session runs in.
type Host interface {
	// Expect passes the connections with the tokens to the channel. They connect to port (0: the server's own),
	// where a listener has had the options since before listen(). forget ends it.
	Expect(ctx context.Context, e Expected) (streams <-chan *net.TCPConn, port int, forget func(), err error)
	// Grant returns a cookie that admits iperf3 tests until revoke is called. The tests end at until; zero: no
	// limit.
	Grant(until time.Time) (cookie Preface, revoke func(), err error)
	// Begin registers a running transfer of the named test. over returns the concurrent tests or nil.
	Begin(test string) (over func() *transfer.ConcurrentTests)
}

// Expected are the data connections of one transfer.
type Expected struct {
	Tokens  []Preface
	Options socket.Options
	// Client and Local are the addresses of the two ends. Ports are the client's ports, nil if unknown.
	Client, Local netip.Addr
	Ports         []uint16
	// Repeated: any number of connections may have a token. Of those that wait at a time, as many as there are tokens
	// and a few more are kept.
	Repeated bool
}

// Session is the server's end of one control connection.
type Session struct {
	Host        Host
	Certificate tls.Certificate
	Key         Key
	// Holders, if not nil, returns the clients with keys of their own. It is called at each request, so that
	// removing a key ends its sessions. Admit sets Holder, nil for a client with Key.
	Holders func() []Holder
	Holder  *Holder
	// Local and Remote are the connection's addresses.
	Local, Remote netip.AddrPort
	Hello         Hello
	Timeouts      Timeouts
	// Turn, if not nil, is the queue of an exclusive server.
	Turn *Turn
	// Offered, if not nil, is asked about each offer within the limits before its transfer is accepted. An error refuses
	// the offer.
	Offered func(transfer.Spec) (Allowance, error)
	// Losses, if not nil, is called at the beginning of each transfer. Its result returns what the kernel dropped of
	// this end's streams, at their end. The client gets reasons and counts, and no device's name.
	Losses func() func(e *transfer.End, sends bool)
	// Event, if not nil, receives each accepted transfer at its end, also if the client has left.
	Event func(*transfer.Result)

	startedAt    time.Time // start of Serve
	elsewhere    bool      // Holder's key is not valid for the client's address
	serverLimits *Limits   // before a holder lowered them; nil: not lowered
}

// Admit replies to Marker, which the caller has read, and lets the client prove the key. Until then the client is
// unauthenticated and gets nothing else. On error the caller closes conn. secured is for Serve or Refuse.
func (s *Session) Admit(ctx context.Context, conn net.Conn) (secured *tls.Conn, err error) {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(s.timeouts().Answer))
	_, err = conn.Write([]byte{AnswerFullpipe})
	if err == nil {
		secured, err = secureServer(ctx, conn, s.Certificate, s.keyFor)
	}
	if err != nil {
		return nil, err
	}
	if s.elsewhere {
		h := s.hello(true)
		h.NotFrom = s.Remote.Addr().Unmap().String()
		_ = s.sendHello(secured, h) // a client that leaves knows less
		return nil, &AddressError{s.Remote.Addr().Unmap()}
	}
	return secured, nil
}

// Refuse reports to an authenticated client that the server is busy and closes the connection. Clients without
// Hello.Busy get the answer to their first message.
func (s *Session) Refuse(secured *tls.Conn) {
	defer secured.Close()
	secured.SetDeadline(time.Now().Add(s.timeouts().Stop))
	if writeMessage(secured, kindHello, s.hello(true)) != nil {
		return
	}
	if _, err := readMessage(secured, maxRequest); err == nil {
		writeMessage(secured, kindAccept, accept{Error: errBusy.Error()})
	}
}

// hello returns the server's hello.
func (s *Session) hello(busy bool) Hello {
	h := s.Hello
	h.KeyID = s.Key.ID().String()
	h.Version = minVersion
	h.Versions = &supportedVersions
	h.Busy = busy
	h.TimeNs = time.Now().UnixNano()
	return h
}

// Serve handles the requests of an admitted client until it leaves, then closes secured.
func (s *Session) Serve(ctx context.Context, secured *tls.Conn) error {
	defer secured.Close()
	s.startedAt = time.Now()
	defer context.AfterFunc(ctx, func() { secured.NetConn().Close() })()
	secured.SetDeadline(time.Time{}) // clears Admit's deadline
	over := make(chan struct{})
	defer close(over)
	messages, gone := readRequests(secured, over)
	if s.Turn != nil {
		if err := s.awaitTurn(ctx, secured, messages); err != nil {
			return err
		}
		defer s.Turn.Release()
	}
	if err := s.sendHello(secured, s.hello(false)); err != nil {
		return err
	}
	c := clientSession{Session: s, conn: secured, messages: messages, revoke: func() {}}
	defer func() { c.revoke() }()
	idle := time.NewTimer(s.timeouts().Idle)
	defer idle.Stop()
	s.extendTurn(idleTurnTimeout)
	for {
		select {
		case m, open := <-messages:
			if !open {
				return <-gone
			}
			if m.kind == kindStop { // crossed our result on the way
				continue
			}
			if err := s.checkRequest(); err != nil {
				s.refuseRequest(secured, err)
				return err
			}
			if err := c.handle(ctx, m); err != nil {
				return err
			}
			s.extendTurn(idleTurnTimeout)
			if m.kind == kindGrant { // the granted test is not visible here
				s.extendTurn(max(idleTurnTimeout, s.Hello.Limits.Time))
			}
		case <-s.keyExpired():
			return ErrKeyEnded
		case <-idle.C:
			return fmt.Errorf("idle for %v", s.timeouts().Idle)
		}
		idle.Reset(s.timeouts().Idle)
	}
}

// checkRequest returns ErrTurnOver or ErrKeyEnded if the session must end.
func (s *Session) checkRequest() error {
	switch {
	case s.turnIsOver():
		return ErrTurnOver
	case !s.keyIsValid():
		return ErrKeyEnded
	}
	return nil
}

// readRequests returns a client's messages. The channel closes after the last one; gone then receives the error.
func readRequests(secured *tls.Conn, over <-chan struct{}) (<-chan message, <-chan error) {
	messages := make(chan message)
	gone := make(chan error, 1)
	startedAt := time.Now()
	go func() {
		defer close(messages)
		for read := 0; ; read++ {
			m, err := readMessage(secured, maxRequest)
			if err == nil && float64(read) > maxBurstMessages+maxMessagesPerSecond*time.Since(startedAt).Seconds() {
				err = errFlood
			}
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

// clientSession is a Session with an admitted client.
type clientSession struct {
	*Session
	conn     *tls.Conn
	messages <-chan message
	revoke   func() // revokes the last granted cookie
}

// handle executes one message.
func (s *clientSession) handle(ctx context.Context, m message) (err error) {
	switch m.kind {
	case kindEcho:
		return answerEcho(s.conn, m, nil, time.Since(s.startedAt), s.timeouts().Answer)
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

func (s *Session) timeouts() Timeouts { return s.Timeouts.withDefaults() }

// answerEcho returns a client's echo with this end's sending state and the session's clock.
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

// grant admits iperf3 tests of the client, for UDP.
func (s *Session) grant(conn net.Conn) (revoke func(), err error) {
	var cookie Preface
	revoke = func() {}
	err = errLimitedGrant
	if s.Holder == nil || !s.Holder.hasLimits() {
		cookie, revoke, err = s.Host.Grant(s.expiresAt())
	}
	answer := accept{Tokens: []string{string(cookie[:])}}
	if err != nil {
		answer = refusal(err)
		revoke = func() {}
	}
	conn.SetWriteDeadline(time.Now().Add(s.timeouts().Answer))
	return revoke, writeMessage(conn, kindAccept, answer)
}
