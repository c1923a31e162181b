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
	// streamQueue and helloQueue receive streams while the test waits for them, otherwise nil. Server.mu guards
	// them.
	streamQueue   chan acceptedConn
	helloQueue    chan udpHelloFrom
	hasKey        bool // granted to a key holder
	authenticated bool // passed the server's authentication
	entry         *admission.Entry
	result        *TestResult

	leavePending func() // removes the client from the pending ones
}

// serve runs the test. leave ends it.
func (t *test) serve(ctx context.Context, leave func(error)) ([]transfer.Outcome, error) {
	if err := t.send(ctx, ParamExchange); err != nil {
		return nil, err
	}
	text, err := t.readFrame(ctx, t.server.stepTimeout(), MaxParams, "the parameters")
	if err != nil {
		return nil, err
	}
	t.params, err = ParseParams(text)
	if err != nil {
		return nil, t.refuse(CodeParams, syscall.EINVAL, err)
	}
	if g := t.server.Auth; g != nil && !t.hasKey {
		if err := g.authenticate(ctx, t.params.Auth); err != nil {
			return nil, t.refuse(CodeAuth, 0, err)
		}
		t.authenticated = true
	}
	if code, err := t.server.checkLimits(t.params); err != nil {
		return nil, t.refuse(code, 0, err)
	}
	release, err := t.takeSlot(leave)
	if err != nil {
		return nil, err
	}
	defer release()
	directions, err := t.acceptStreams(ctx)
	if err != nil {
		return nil, err
	}
	defer closeDirections(directions)
	t.table().Extend(t.entry, time.Time{})
	if err := t.send(ctx, TestStart); err != nil {
		return nil, err
	}
	if err := t.send(ctx, TestRunning); err != nil {
		return nil, err
	}
	t.result = &TestResult{Cookie: t.cookie, Params: t.params, Streams: endpoints(directions)}
	t.result.describe(directions)
	setInterval(directions, t.server.Interval)
	var onInterval func(transfer.Interval)
	if t.server.OnStart != nil {
		onInterval = t.server.OnStart(t.from, *t.result)
	}
	if t.server.TrackConcurrent == nil {
		return t.runData(ctx, directions, onInterval)
	}
	over := t.server.TrackConcurrent("iperf3 " + string(t.cookie[:]))
	outcomes, err := t.runData(ctx, directions, onInterval)
	concurrent := over()
	for _, o := range outcomes {
		if o.TCP != nil && o.TCP.Near != nil {
			o.TCP.Near.ConcurrentTests = concurrent
		}
	}
	return outcomes, err
}

// endpoints returns the addresses of all streams in the order of their ids.
func endpoints(directions []direction) (all []Endpoints) {
	for _, dir := range directions {
		switch dir := dir.(type) {
		case *tcpStreams:
			for _, s := range dir.streams {
				d := s.Describe()
				all = append(all, Endpoints{d.Local, d.Remote})
			}
		case *udpFlows:
			for _, one := range dir.All {
				all = append(all, Endpoints{one.Socket.Local(), one.Socket.Remote()})
			}
		}
	}
	return all
}

// denyAccess sends ACCESS_DENIED.
func (t *test) denyAccess() {
	t.conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
	WriteState(t.conn, AccessDenied)
}

// refuse sends an error code and returns a RefusedError.
func (t *test) refuse(code Code, errno syscall.Errno, why error) error {
	t.conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
	writeRemoteError(t.conn, code, int32(errno))
	return &RefusedError{code, t.from, why}
}

func closeDirections(directions []direction) {
	for _, dir := range directions {
		dir.close()
	}
}

// splitTCP assigns the streams to directions. With --bidir the client sends on the first half.
func (t *test) splitTCP(conns []*net.TCPConn) (directions []direction, err error) {
	for i := 0; len(conns) > 0; i++ {
		some := conns[:t.params.Streams]
		conns = conns[len(some):]
		l, err := newTCPStreams(some, t.spec(t.params.Reverse || i == 1))
		if err != nil {
			closeDirections(directions)
			closeAll(conns)
			return nil, t.refuse(codeOf(err), errnoOf(err), err)
		}
		l.cut.Omit = t.omit()
		l.burst = t.params.Burst
		directions = append(directions, l)
	}
	return directions, nil
}

func (t *test) omit() time.Duration { return time.Duration(t.params.Omit) * time.Second }

// spec returns one direction of the test. The server is the near end.
func (t *test) spec(sending bool) transfer.Spec {
	p := t.params
	spec := transfer.Spec{Direction: transfer.Down, Streams: p.Streams,
		Near: transfer.Socket{SendBuffer: p.Window, ReceiveBuffer: p.Window, Congestion: p.Congestion, NoDelay: p.NoDelay,
			PacingBps: float64(p.FQRate), TOS: p.TOS}}
	if sending {
		spec.Bytes = p.wholeWriteBytes()
		spec.Direction = transfer.Up
		spec.Program = transfer.Program{WriteBytes: p.Len, WriteBps: float64(p.Bandwidth),
			ByReference: p.ZeroCopy}
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
