package iperf3

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// test is one client's test, from its cookie to its last state.
type test struct {
	control
	server *Server
	from   netip.AddrPort
	cookie Cookie
	params Params
	// arrived and greeted take the streams while the test waits for them; nil before and
	// after (guarded by Server.mu).
	arrived chan arrival
	greeted chan greeting
	keyed   bool // it was granted to a holder of the key
	proven  bool // the client has proven what the server demands
	entry   *admission.Entry
	account *Account

	leavePending func() // ends its time among those that have proven nothing
}

// serve carries a test through its states. leave ends it.
func (t *test) serve(ctx context.Context, leave func(error)) ([]transfer.Outcome, error) {
	if err := t.send(ctx, ParamExchange); err != nil {
		return nil, err
	}
	text, err := t.readFrame(ctx, t.server.patience(), MaxParams, "the parameters")
	if err != nil {
		return nil, err
	}
	if t.params, err = ParseParams(text); err != nil {
		return nil, t.refuse(CodeParams, syscall.EINVAL, err)
	}
	if g := t.server.Gate; g != nil && !t.keyed {
		if err := g.passes(ctx, t.params.Auth); err != nil {
			return nil, t.refuse(CodeAuth, 0, err)
		}
		t.proven = true
	}
	if code, err := t.server.allows(t.params); err != nil {
		return nil, t.refuse(code, 0, err)
	}
	release, err := t.takePlace(leave)
	if err != nil {
		return nil, err
	}
	defer release()
	halves, err := t.accept(ctx)
	if err != nil {
		return nil, err
	}
	defer closeHalves(halves)
	t.table().Extend(t.entry, time.Time{})
	if err := t.send(ctx, TestStart); err != nil {
		return nil, err
	}
	if err := t.send(ctx, TestRunning); err != nil {
		return nil, err
	}
	t.account = &Account{Cookie: t.cookie, Params: t.params, Streams: endpoints(halves)}
	t.account.describe(halves)
	every(halves, t.server.Every)
	var each func(transfer.Interval)
	if t.server.Begun != nil {
		each = t.server.Begun(t.from, *t.account)
	}
	if t.server.Running == nil {
		return t.run(ctx, halves, each)
	}
	over := t.server.Running("iperf3 " + string(t.cookie[:]))
	outcomes, err := t.run(ctx, halves, each)
	beside := over()
	for _, o := range outcomes {
		if o.TCP != nil && o.TCP.Near != nil {
			o.TCP.Near.Beside = beside
		}
	}
	return outcomes, err
}

// endpoints are the addresses of all streams in the order of their numbers.
func endpoints(halves []half) (all []Endpoints) {
	for _, h := range halves {
		switch h := h.(type) {
		case *load:
			for _, s := range h.streams {
				d := s.Describe()
				all = append(all, Endpoints{d.Local, d.Remote})
			}
		case *flows:
			for _, one := range h.All {
				all = append(all, Endpoints{one.Socket.Local(), one.Socket.Remote()})
			}
		}
	}
	return all
}

// turnAway tells the client that the server is busy.
func (t *test) turnAway() {
	t.conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
	WriteState(t.conn, AccessDenied)
}

// refuse tells the client a code and answers why.
func (t *test) refuse(code Code, errno syscall.Errno, why error) error {
	t.conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
	writeRemoteError(t.conn, code, int32(errno))
	return &RefusedError{code, t.from, why}
}

func closeHalves(halves []half) {
	for _, h := range halves {
		h.close()
	}
}

// loads divides the streams into directions: with --bidir the client's first half sends.
func (t *test) loads(conns []*net.TCPConn) (halves []half, err error) {
	for i := 0; len(conns) > 0; i++ {
		some := conns[:t.params.Streams]
		conns = conns[len(some):]
		l, err := newLoad(some, t.spec(t.params.Reverse || i == 1))
		if err != nil {
			closeHalves(halves)
			closeAll(conns)
			return nil, t.refuse(codeOf(err), errnoOf(err), err)
		}
		l.cut.Omit = t.omit()
		l.burst = t.params.Burst
		halves = append(halves, l)
	}
	return halves, nil
}

func (t *test) omit() time.Duration { return time.Duration(t.params.Omit) * time.Second }

// spec is one direction of the test as the server sees it: it is the near end.
func (t *test) spec(sending bool) transfer.Spec {
	p := t.params
	spec := transfer.Spec{Direction: transfer.Down, Streams: p.Streams,
		Near: transfer.Socket{SendBuffer: p.Window, ReceiveBuffer: p.Window, Congestion: p.Congestion, NoDelay: p.NoDelay,
			PacingBps: float64(p.FQRate), TOS: p.TOS}}
	if sending {
		spec.Bytes = p.written()
		spec.Direction = transfer.Up
		spec.Program = transfer.Program{WriteBytes: p.Len, WriteBps: float64(p.Bandwidth)}
	}
	return spec
}

func codeOf(err error) Code {
	var option *socket.OptionError
	if errors.As(err, &option) && strings.HasPrefix(option.Option, "TCP_CONGESTION") {
		return CodeCongestion
	}
	return CodeBuffer
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}
