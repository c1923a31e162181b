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

// arrival is one stream's connection; order tells which was accepted first.
type arrival struct {
	conn  *net.TCPConn
	order int64
}

// deliver hands a stream to the test that waits for it, if its cookie and its host are
// that test's.
func (s *Server) deliver(a arrival, cookie Cookie) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tests[cookie]
	if !ok || t.arrived == nil || t.from.Addr() != socket.AddrPort(a.conn.RemoteAddr()).Addr() {
		return false
	}
	select {
	case t.arrived <- a:
		return true
	default:
		return false
	}
}

// accept takes the streams in and prepares each direction.
func (t *test) accept(ctx context.Context) ([]half, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, beginTime, fmt.Errorf("%v did not begin within %v", t.from, beginTime))
	defer cancel()
	ctx, unwatch := t.whileThere(ctx)
	defer unwatch()
	shaped := t.params.Window > 0 && t.server.Window != nil
	release, err := t.server.turn(ctx, t, shaped || t.params.UDP)
	if err != nil {
		return nil, err
	}
	defer release()
	n := t.params.Streams
	if t.params.Both {
		n *= 2
	}
	if t.params.UDP {
		return t.greet(ctx, n)
	}
	if shaped {
		if close, err := t.server.Window(t.from.Addr(), t.params.Window); err == nil {
			defer close()
		}
	}
	conns, err := t.gather(ctx, n)
	if err != nil {
		return nil, err
	}
	return t.loads(conns)
}

// whileThere makes a context that ends when the client leaves: until its test begins it
// has nothing to say on its control connection.
func (t *test) whileThere(ctx context.Context) (context.Context, func()) {
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

// gather waits for n streams and answers them in the order in which they were accepted.
func (t *test) gather(ctx context.Context, n int) ([]*net.TCPConn, error) {
	arrived := make(chan arrival, n)
	t.waitFor(arrived)
	all, err := t.take(ctx, arrived, n)
	t.waitFor(nil)
	close(arrived)
	for surplus := range arrived { // came between the last that was waited for and now
		surplus.conn.Close()
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.order, b.order) })
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

// take lets the client open its streams and takes n of them.
func (t *test) take(ctx context.Context, arrived <-chan arrival, n int) (all []arrival, err error) {
	if err := t.send(ctx, CreateStreams); err != nil {
		return nil, err
	}
	patience := time.NewTimer(t.server.patience())
	defer patience.Stop()
	for len(all) < n {
		select {
		case a := <-arrived:
			all = append(all, a)
			patience.Reset(t.server.patience())
		case <-patience.C:
			return all, fmt.Errorf("%v opened %d of its %d streams", t.from, len(all), n)
		case <-ctx.Done():
			return all, context.Cause(ctx)
		}
	}
	return all, nil
}

func (t *test) waitFor(arrived chan arrival) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.arrived = arrived
}

// turn is who of one host opens streams now.
type turn struct {
	holders map[*test]bool
	alone   bool
	over    chan struct{} // closed when the last holder leaves
}

// turn waits for a test's turn to open its streams. A listener that is told windows by
// host, and UDP, which has no cookies, must know whose streams they are: such tests open
// theirs alone, the others of a host together. Strangers behind the address of a client
// with the key make room for it.
func (s *Server) turn(ctx context.Context, t *test, alone bool) (release func(), err error) {
	host := t.from.Addr()
	for {
		s.mu.Lock()
		now := s.opening[host]
		if now == nil || !alone && !now.alone {
			if now == nil {
				now = &turn{over: make(chan struct{}), holders: map[*test]bool{}}
				s.opening[host] = now
			}
			now.holders[t] = true
			now.alone = alone
			s.mu.Unlock()
			return func() { s.leave(host, now, t) }, nil
		}
		over := now.over
		for holder := range now.holders {
			if t.keyed && !holder.keyed {
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

func (s *Server) leave(host netip.Addr, now *turn, t *test) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(now.holders, t); len(now.holders) == 0 {
		delete(s.opening, host)
		close(now.over)
	}
}
