package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

var errBusy = errors.New("as many data connections, or as large buffers, as this server carries at a time; try again " +
	"later, or with fewer")

// Expect implements probe.Host. A receive buffer, a clamp or an MSS, which must be set before listen(), gets a
// listener on the server's own port if the client's ports identify its connections. Otherwise the transfer gets its
// own port.
func (s *Server) Expect(ctx context.Context, e probe.Expected) (<-chan *net.TCPConn, int, func(), error) {
	tokens := e.Tokens
	o := e.Options
	waiting := len(tokens)
	if e.Repeated {
		waiting = 2*len(tokens) + 16
	}
	arriving := make(chan *net.TCPConn, waiting)
	buffers := int64(len(tokens)) * int64(o.SendBuffer+o.ReceiveBuffer)
	switch {
	case len(tokens) > s.config.Streams:
		return nil, 0, nil, &transfer.Unsupported{Field: "Streams", Reason: fmt.Sprintf("the far end carries at most %d",
			s.config.Streams)}
	case buffers > s.config.Buffers:
		return nil, 0, nil, &transfer.Unsupported{Field: "Far", Reason: fmt.Sprintf("%v of buffers, the far end "+
			"gives at most %v",
			units.Size(buffers), units.Size(s.config.Buffers))}
	}
	s.mu.Lock()
	if s.streams+len(tokens) > s.config.Streams || s.buffers+buffers > s.config.Buffers {
		s.mu.Unlock()
		return nil, 0, nil, errBusy
	}
	s.streams += len(tokens)
	s.buffers += buffers
	for _, t := range tokens {
		s.expected[t] = expectation{arriving, e.Repeated}
	}
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		s.streams -= len(tokens)
		s.buffers -= buffers
		for _, t := range tokens {
			delete(s.expected, t)
		}
		s.mu.Unlock()
		for {
			select {
			case conn := <-arriving:
				conn.Close()
			default:
				return
			}
		}
	}
	if o.ReceiveBuffer == 0 && o.Clamp == 0 && o.MSS == 0 {
		return arriving, 0, forget, nil
	}
	if len(e.Ports) > 0 {
		if release, err := s.window(socket.Choice{From: e.Client, Ports: e.Ports}, o); err == nil {
			return arriving, 0, func() { release(); forget() }, nil
		}
	}
	l, err := socket.Listen(ctx, netip.AddrPortFrom(e.Local, 0).String(), o)
	if err != nil {
		forget()
		return nil, 0, nil, &transfer.Unsupported{Field: "Far", Reason: err.Error()}
	}
	accepting, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.acceptStreams(accepting, l)
	}()
	return arriving, l.Addr().(*net.TCPAddr).Port, func() {
		cancel()
		l.Close()
		<-done
		forget()
	}, nil
}

// acceptStreams accepts known streams only. Silent connections do not delay others.
func (s *Server) acceptStreams(ctx context.Context, l *net.TCPListener) {
	var readers sync.WaitGroup
	defer readers.Wait()
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			return
		}
		readers.Go(func() {
			preface, err := s.readPreface(ctx, conn)
			if err != nil || !s.deliver(preface, conn) {
				conn.Close()
			}
		})
	}
}

// deliver passes a connection to the transfer that expects its token. A token is valid once, unless repeated.
func (s *Server) deliver(token probe.Preface, conn *net.TCPConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, known := s.expected[token]
	switch {
	case to.repeated:
		select {
		case to.conns <- conn:
		default:
			return false
		}
	case known:
		delete(s.expected, token)
		to.conns <- conn // has capacity for every token
	}
	return known
}

// expectation is where the connections with a token go.
type expectation struct {
	conns    chan<- *net.TCPConn
	repeated bool // more than one
}
