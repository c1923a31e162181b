package probe

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func refusal(err error) accept {
	var u *transfer.Unsupported
	if errors.As(err, &u) {
		return accept{Field: u.Field, Error: u.Reason}
	}
	return accept{Error: err.Error()}
}

// Allowance is what a host lets one transfer use. Zero fields are no limits.
type Allowance struct {
	Bytes int64         // payload; the transfer is cut there
	Time  time.Duration // from its last data connection on
	// Ended, if not nil, is called once, at the end of the accepted transfer and also if the client has left. moved is the
	// payload with which it occupied the path, took the time from its last data connection on. end is nil if not all of
	// them came.
	Ended func(end *transfer.End, moved int64, took time.Duration)
}

// offered is an offer of the client and its transfer.
type offered struct {
	*Session
	conn     net.Conn
	messages <-chan message
	spec     transfer.Spec

	allowance Allowance
	expected  Expected
	arriving  <-chan *net.TCPConn
	sending   bulk.Latest
	left      error // why the session ends with this transfer; nil: it goes on
	end       *transfer.End
	unread    int64 // payload that arrived before all data connections came
	took      time.Duration
	complete  bool
	finished  bool
}

// serveOffer replies to one offer with a transfer's result or a refusal. An error ends the session.
func (s *Session) serveOffer(ctx context.Context, conn net.Conn, o offer, messages <-chan message) error {
	t := &offered{Session: s, conn: conn, messages: messages, spec: o.Spec}
	t.spec.TestID = o.TestID
	err := o.check()
	if err == nil {
		err = s.Hello.Check(t.spec)
	}
	if err != nil {
		return t.send(kindAccept, refusal(err))
	}
	s.extendTurn(admission.Lease(t.spec.Time))
	ctx, expire := Until(ctx, s.expiresAt())
	defer expire()
	answer, forget, err := t.expect(ctx, o)
	if err != nil {
		return t.send(kindAccept, refusal(err))
	}
	defer forget()
	if s.Offered != nil {
		t.allowance, err = s.Offered(t.spec)
		if err != nil {
			return t.send(kindAccept, refusal(err))
		}
	}
	defer t.finish()
	if err := t.send(kindAccept, answer); err != nil {
		return err
	}
	err = t.run(ctx)
	if t.left != nil {
		return t.left
	}
	t.complete = err == nil
	t.finish() // before the client sees the result
	r := result{End: t.end, Stopped: errors.Is(err, errStopped)}
	if err != nil {
		r.Error = err.Error()
	}
	if t.end != nil {
		downsample(t.end)
	}
	return t.send(kindResult, r)
}

func (t *offered) send(k kind, body any) error {
	t.conn.SetWriteDeadline(time.Now().Add(t.timeouts().Answer))
	return writeMessage(t.conn, k, body)
}

// finish reports the end of an accepted transfer once.
func (t *offered) finish() {
	if t.finished {
		return
	}
	t.finished = true
	if t.allowance.Ended != nil {
		moved := t.unread
		if t.end != nil {
			moved = t.end.Moved
		}
		t.allowance.Ended(t.end, moved, t.took)
	}
	if t.Event != nil {
		t.Event(&transfer.Result{Spec: t.spec, Far: t.end, Complete: t.complete})
	}
}

// expect announces the data connections to the host, and returns the reply to the offer.
func (t *offered) expect(ctx context.Context, o offer) (answer accept, forget func(), err error) {
	tokens := make([]Preface, max(t.spec.Streams, 1))
	for i := range tokens {
		tokens[i] = NewToken()
		answer.Tokens = append(answer.Tokens, string(tokens[i][:]))
	}
	t.expected = Expected{Tokens: tokens, Options: bulk.Options(t.spec.Direction == transfer.Down, t.spec.Far),
		Client: t.Remote.Addr(), Local: t.Local.Addr(), Repeated: t.spec.Requests.On()}
	// Ports are usable if no NAT changes them and each stream has one.
	if o.From == t.Remote.Port() && len(o.Ports) == len(tokens) {
		t.expected.Ports = o.Ports
	}
	t.arriving, answer.Port, forget, err = t.Host.Expect(ctx, t.expected)
	if err != nil {
		return answer, nil, err
	}
	if answer.Port != 0 {
		t.expected.Ports = nil // any port
	}
	if t.spec.Direction == transfer.Down && socket.RemembersPaths() {
		answer.Warnings = append(answer.Warnings, "the far end has cached metrics of earlier transfers to this host "+
			"(net.ipv4.tcp_no_metrics_save is 0), "+
			"which change how this one began")
	}
	return answer, forget, nil
}

// run runs the transfer while it reads the client's messages. The client may send Stop or leave.
func (t *offered) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watched := make(chan struct{})
	over := make(chan struct{})
	go func() {
		defer close(watched)
		t.left = t.watch(over)
		cancel(errStopped)
	}()
	streams, err := t.awaitStreams(ctx)
	defer func() { closeAll(streams) }()
	if err == nil {
		begin := time.Now()
		err = t.move(ctx, streams)
		if t.spec.Requests.On() && errors.Is(err, errStopped) {
			err = nil // a load of requests ends so
		}
		t.took = time.Since(begin)
	} else {
		streams = append(streams, t.arrived()...)
		t.unread = unreadBytes(streams)
	}
	close(over)
	<-watched
	return err
}

// watch reads the client's messages during a transfer until Stop. An error ends the session.
func (t *offered) watch(over <-chan struct{}) error {
	for {
		select {
		case m, open := <-t.messages:
			switch {
			case !open:
				return errLeft
			case m.kind == kindStop:
				return nil
			case m.kind != kindEcho:
				return fmt.Errorf("message %q during a transfer", m.kind)
			}
			err := answerEcho(t.conn, m, t.sending.Get(), time.Since(t.startedAt), t.timeouts().Answer)
			if err != nil {
				return err
			}
		case <-over:
			return nil
		}
	}
}

var (
	errStopped = errors.New("stopped by the client")
	errLeft    = errors.New("the client left during a transfer")
	errTime    = errors.New("longer than this transfer may take here")
	// errFarEnded ends requests whose far end sent its result first.
	errFarEnded = errors.New("the far end ended the test")
)
