package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// idleTime is how long a server keeps a client that asks for nothing.
const idleTime = 5 * time.Minute

// Host is what a session needs of the server around it.
type Host interface {
	// Expect makes the connections that show the tokens arrive on the channel. They
	// connect to the port it answers (0: the server's own), where a listener was given
	// the options before listen(). Forget undoes it.
	Expect(ctx context.Context, e Expected) (streams <-chan *net.TCPConn, port int, forget func(), err error)
	// Grant makes a cookie with which an iperf3 test is admitted until revoke is called.
	Grant() (cookie Preface, revoke func(), err error)
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
	// Local is where the client connected to, Remote where from.
	Local, Remote netip.AddrPort
	Hello         Hello
	// Event is told of each transfer; nil: nobody.
	Event func(*transfer.Result)
}

// Serve answers Marker, which has been read, and carries out what the client offers
// until it leaves. It closes conn.
func (s *Session) Serve(ctx context.Context, conn net.Conn) error {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	conn.SetDeadline(time.Now().Add(connectTime))
	if _, err := conn.Write([]byte{AnswerFullpipe}); err != nil {
		return err
	}
	secured, err := SecureServer(ctx, conn, s.Certificate, s.Key)
	if err != nil {
		return err
	}
	if err := writeMessage(secured, kindHello, s.Hello); err != nil {
		return err
	}
	conn.SetDeadline(time.Time{})

	messages := make(chan message)
	gone := make(chan error, 1)
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			m, err := readMessage(secured, 64<<10)
			if err != nil {
				gone <- err
				close(messages)
				return
			}
			select {
			case messages <- m:
			case <-over:
				return
			}
		}
	}()
	idle := time.NewTimer(idleTime)
	defer idle.Stop()
	revoke := func() {}
	defer func() { revoke() }()
	for {
		select {
		case m, open := <-messages:
			if !open {
				return <-gone
			}
			if m.kind == kindStop { // crossed our result on the way
				continue
			}
			if m.kind == kindEcho {
				if err := answerEcho(secured, m, nil); err != nil {
					return err
				}
				idle.Reset(idleTime)
				continue
			}
			if m.kind == kindGrant {
				revoke()
				if revoke, err = s.grant(secured); err != nil {
					return err
				}
				idle.Reset(idleTime)
				continue
			}
			var o offer
			if err := m.decode(kindOffer, &o); err != nil {
				return err
			}
			if err := s.carryOut(ctx, secured, o, messages); err != nil {
				return err
			}
		case <-idle.C:
			return fmt.Errorf("idle for %v", idleTime)
		}
		idle.Reset(idleTime)
	}
}

// answerEcho sends a client's question back, with how this end stands if it sends.
func answerEcho(conn net.Conn, m message, sending *transfer.Sending) error {
	var question echo
	if err := m.decode(kindEcho, &question); err != nil {
		return err
	}
	question.Sending = sending
	conn.SetWriteDeadline(time.Now().Add(connectTime))
	return writeMessage(conn, kindEcho, question)
}

// grant lets the client run iperf3 tests for what this protocol has no words for: UDP.
func (s *Session) grant(conn net.Conn) (revoke func(), err error) {
	cookie, revoke, err := s.Host.Grant()
	answer := accept{Tokens: []string{string(cookie[:])}}
	if err != nil {
		answer, revoke = refusal(err), func() {}
	}
	conn.SetWriteDeadline(time.Now().Add(connectTime))
	return revoke, writeMessage(conn, kindAccept, answer)
}

// carryOut answers one offer: the transfer's result, or a refusal. An error ends the
// session.
func (s *Session) carryOut(ctx context.Context, conn net.Conn, o offer, messages <-chan message) error {
	spec := o.Spec
	send := func(k kind, body any) error {
		conn.SetWriteDeadline(time.Now().Add(connectTime))
		return writeMessage(conn, k, body)
	}
	if err := s.Hello.Check(spec); err != nil {
		return send(kindAccept, refusal(err))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	options := options(spec.Direction == transfer.Down, spec.Far, false)
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
		answer.Warnings = append(answer.Warnings, "the far end remembers earlier transfers to this host (net.ipv4.tcp_no_metrics_save is 0), "+
			"which changes how this one began")
	}
	if err := send(kindAccept, answer); err != nil {
		return err
	}

	// From here on the client may stop us, or be gone.
	watched := make(chan struct{})
	finished := make(chan struct{})
	var left error
	sending := &latest{}
	go func() {
		defer close(watched)
		for {
			select {
			case m, open := <-messages:
				switch {
				case !open:
					left = errLeft
				case m.kind == kindEcho:
					if left = answerEcho(conn, m, sending.get()); left == nil {
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
	r := result{End: end}
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

func refusal(err error) accept {
	var u *transfer.Unsupported
	if errors.As(err, &u) {
		return accept{Field: u.Field, Error: u.Why}
	}
	return accept{Error: err.Error()}
}

// transfer carries out the server's part over the streams that arrive.
func (s *Session) transfer(ctx context.Context, spec transfer.Spec, expected Expected, arriving <-chan *net.TCPConn, sending *latest,
	send func(kind, any) error) (*transfer.End, error) {
	n, ports := len(expected.Tokens), expected.Ports
	var streams []*socket.Stream
	defer func() { closeAll(streams) }()
	late := time.NewTimer(connectTime)
	defer late.Stop()
	for len(streams) < n {
		select {
		case conn := <-arriving:
			if from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Port(); len(ports) > 0 && !slices.Contains(ports, from) {
				conn.Close()
				return nil, fmt.Errorf("an address translator moved a data connection to port %d, so its window could not be set", from)
			}
			st, err := socket.NewStream(conn, expected.Options)
			if err != nil {
				return nil, err
			}
			streams = append(streams, st)
		case <-late.C:
			return nil, fmt.Errorf("%d of %d data connections arrived within %v", len(streams), n, connectTime)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var moved int64
	p := part{send: spec.Direction == transfer.Down, spec: spec, streams: streams, every: 200 * time.Millisecond, latest: sending}
	// Progress also says that this end lives, so silence is reported too. On a slow path
	// its acknowledgements would show in what is measured: it waits for some bytes.
	const worthTelling = 32 << 10
	alive := time.NewTicker(stallTime / 4)
	defer alive.Stop()
	var untold transfer.Interval
	intervals := make(chan transfer.Interval, 64)
	p.each = func(i transfer.Interval) {
		moved += i.Bytes
		if err := s.Hello.Limits.Excess(moved, i.End); err != nil {
			stop(err)
		}
		if p.send {
			return
		}
		select {
		case intervals <- i:
		default: // a client that does not listen misses intervals, never the result
		}
	}
	type outcome struct {
		end *transfer.End
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		end, err := p.carryOut(ctx)
		done <- outcome{end, err}
	}()
	for {
		select {
		case o := <-done:
			return o.end, o.err
		case i := <-intervals:
			if untold.Bytes == 0 {
				untold.Start = i.Start
			}
			untold.End, untold.Bytes = i.End, untold.Bytes+i.Bytes
			if untold.Bytes < worthTelling {
				continue
			}
			told := untold
			send(kindProgress, progressMessage{&told})
			untold = transfer.Interval{}
			alive.Reset(stallTime / 4)
		case <-alive.C:
			var m progressMessage
			if told := untold; told.Bytes > 0 {
				m.Interval, untold = &told, transfer.Interval{}
			}
			send(kindProgress, m)
		}
	}
}

// thin bounds what the samples of a result weigh by what the transfer itself moved, so
// that a slow path does not spend its time on them: one sample for each 4 kB, at least 24.
func thin(end *transfer.End) {
	var bytes int64
	for _, s := range end.Streams {
		bytes += s.Bytes
	}
	n := int(min(max(bytes/4000, 24), 4000)) / len(end.Streams)
	for i, s := range end.Streams {
		end.Streams[i].Samples = transfer.Thin(s.Samples, max(n, 2))
	}
}
