package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// acceptedConn is the connection of one stream with the order in which it was accepted.
type acceptedConn struct {
	conn  *net.TCPConn
	order int64
}

// deliverStream passes a stream to the test with the same cookie and client host. It reports whether a test took
// it.
func (s *Server) deliverStream(a acceptedConn, cookie Cookie) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tests[cookie]
	if !ok || t.streamQueue == nil || t.from.Addr() != socket.AddrPort(a.conn.RemoteAddr()).Addr() {
		return false
	}
	select {
	case t.streamQueue <- a:
		return true
	default:
		return false
	}
}

// acceptStreams accepts all streams of the test and prepares each direction.
func (t *test) acceptStreams(ctx context.Context) ([]direction, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, beginTimeout,
		fmt.Errorf("%v did not begin within %v", t.from, beginTimeout))
	defer cancel()
	ctx, unwatch := t.untilClientLeaves(ctx)
	defer unwatch()
	shaped := t.params.Window > 0 && t.server.Window != nil
	release, err := t.server.waitToOpen(ctx, t, shaped || t.params.UDP)
	if err != nil {
		return nil, err
	}
	defer release()
	n := t.params.Streams
	if t.params.Both {
		n *= 2
	}
	if t.params.UDP {
		return t.acceptUDP(ctx, n)
	}
	if shaped {
		if close, err := t.server.Window(t.from.Addr(), t.params.Window); err == nil {
			defer close()
		}
	}
	conns, err := t.acceptTCP(ctx, n)
	if err != nil {
		return nil, err
	}
	return t.splitTCP(conns)
}

// untilClientLeaves returns a context that ends when the client closes the control connection. Clients send
// nothing on it until their test begins.
func (t *test) untilClientLeaves(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		var b [1]byte
		if _, err := t.conn.Read(b[:]); !errors.Is(err, os.ErrDeadlineExceeded) {
			cancel(fmt.Errorf("%v left before its test began", t.from))
		}
	}()
	return ctx, func() {
		t.conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		t.conn.SetReadDeadline(time.Time{})
		cancel(nil)
	}
}

// acceptTCP waits for n streams and returns them in the order in which they were accepted.
func (t *test) acceptTCP(ctx context.Context, n int) ([]*net.TCPConn, error) {
	arrived := make(chan acceptedConn, n)
	t.setStreamQueue(arrived)
	all, err := t.collectStreams(ctx, arrived, n)
	t.setStreamQueue(nil)
	close(arrived)
	for surplus := range arrived { // connected after the last expected stream
		surplus.conn.Close()
	}
	slices.SortFunc(all, func(a, b acceptedConn) int { return cmp.Compare(a.order, b.order) })
	var conns []*net.TCPConn
	for _, a := range all {
		conns = append(conns, a.conn)
	}
	if err != nil {
		closeAll(conns)
		return nil, err
	}
	return conns, nil
}

// collectStreams asks the client to open its streams and collects n of them.
func (t *test) collectStreams(ctx context.Context, arrived <-chan acceptedConn, n int) (all []acceptedConn, err error) {
	if err := t.send(ctx, CreateStreams); err != nil {
		return nil, err
	}
	timeout := time.NewTimer(t.server.stepTimeout())
	defer timeout.Stop()
	for len(all) < n {
		select {
		case a := <-arrived:
			all = append(all, a)
			timeout.Reset(t.server.stepTimeout())
		case <-timeout.C:
			return all, fmt.Errorf("%v opened %d of its %d streams", t.from, len(all), n)
		case <-ctx.Done():
			return all, context.Cause(ctx)
		}
	}
	return all, nil
}

func (t *test) setStreamQueue(arrived chan acceptedConn) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.streamQueue = arrived
}

// openingGroup is the set of one host's tests that are opening streams.
type openingGroup struct {
	tests     map[*test]bool
	exclusive bool
	done      chan struct{} // closed when the last test leaves the group
}

// waitToOpen waits until the test may open its streams. Exclusive tests open streams one at a time per host: UDP
// hellos have no cookie, and the listener sets windows by host. A key holder's test closes unauthenticated tests
// that it waits for.
func (s *Server) waitToOpen(ctx context.Context, t *test, exclusive bool) (release func(), err error) {
	host := t.from.Addr()
	for {
		s.mu.Lock()
		now := s.opening[host]
		if now == nil || !exclusive && !now.exclusive {
			if now == nil {
				now = &openingGroup{done: make(chan struct{}), tests: map[*test]bool{}}
				s.opening[host] = now
			}
			now.tests[t] = true
			now.exclusive = exclusive
			s.mu.Unlock()
			return func() { s.leaveOpening(host, now, t) }, nil
		}
		over := now.done
		for holder := range now.tests {
			if t.hasKey && !holder.hasKey {
				holder.conn.Close()
			}
		}
		s.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Server) leaveOpening(host netip.Addr, now *openingGroup, t *test) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(now.tests, t); len(now.tests) == 0 {
		delete(s.opening, host)
		close(now.done)
	}
}
