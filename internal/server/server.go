// Package server is the far end: one port on which native clients prove the key and
// measure, and what everybody else is refused.
package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Config says whom a server serves, and how much. Its zero value needs a Key only.
type Config struct {
	// Address is ADDR:PORT to listen on; "" is :5201 at every address.
	Address string
	Key     probe.Key
	// Holders, when not nil, is asked at each client, and at each request of a client with such a key,
	// for those with keys of their own.
	Holders func() []probe.Holder
	// Software is what clients are told that runs here.
	Software string
	// Clients bounds the sessions at a time; 0 is 64.
	Clients int
	// Streams bounds the data connections of all clients together, each of which has a
	// thread; 0 is 512. Buffers bounds the bytes of socket buffers that they asked for; 0
	// is 1 GiB. What does not fit is told so.
	Streams int
	Buffers int64
	// Exclusive has one client measure at a time; the others wait their turn.
	Exclusive bool
	// Limits bounds what one client may ask for; zero is probe.DefaultLimits.
	Limits probe.Limits
	// Legacy, when not nil, is handed connections whose 37 bytes are a cookie that was
	// granted to a client, and with Strangers everybody's whose are neither a control
	// connection's nor a known stream's. It closes them. Order counts connections as they
	// were accepted; keyed says that the cookie was granted.
	Legacy    func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool)
	Strangers bool
	// ShareWindows lets Window be called, where the system can share a port.
	ShareWindows bool
	// Silence is how long a client's host may not answer at all; 0 is socket.GoneTime.
	Silence time.Duration
	// Event, when not nil, is told of clients and transfers, by many goroutines, and must
	// not make them wait.
	Event func(Event)
	// Times bound the waits for clients that have proven the key; zero fields are probe's.
	Times probe.Times
}

// Event is something that happened at a server.
type Event struct {
	What   string // "client" (has proven the key), "gone", "refused", "transfer"
	Client netip.AddrPort
	Keyed  bool   // by a holder of the key
	Holder string // the name of a key of its own; "": the server's
	Err    error
	Result *transfer.Result // of "transfer"; Far is this server
}

// DefaultAddress is the port that fullpipe and iperf3 share.
const DefaultAddress = ":5201"

// prefaceTime is how long a connection may take over its first 37 bytes.
const prefaceTime = 10 * time.Second

// Server listens on one port. Serve runs it, Close ends it.
type Server struct {
	config   Config
	listener *net.TCPListener
	cert     tls.Certificate

	strangers  admission.Table // connections before their first 37 bytes
	handshakes admission.Table // connections before the proof of the key
	sessions   chan struct{}   // one for each client that has proven the key
	turn       admission.Turn  // of an exclusive server
	windows    windows
	running    running
	accepted   atomic.Int64 // connections so far

	mu       sync.Mutex // guards what follows
	streams  int        // promised to clients
	buffers  int64      // bytes, the same
	expected map[probe.Preface]chan<- *net.TCPConn
	granted  map[probe.Preface]time.Time // when the test's key expires
}

// New starts to listen.
func New(ctx context.Context, c Config) (*Server, error) {
	if c.Address == "" {
		c.Address = DefaultAddress
	}
	c.Clients = cmp.Or(c.Clients, 64)
	c.Streams = cmp.Or(c.Streams, 512)
	c.Buffers = cmp.Or(c.Buffers, 1<<30)
	if c.Limits == (probe.Limits{}) {
		c.Limits = probe.DefaultLimits()
	}
	cert, err := probe.NewCertificate()
	if err != nil {
		return nil, err
	}
	var l *net.TCPListener
	if c.ShareWindows {
		if l, err = listenShared(ctx, c.Address); errors.Is(err, socket.ErrNotSupported) {
			c.ShareWindows = false
		}
	}
	if !c.ShareWindows {
		l, err = socket.Listen(ctx, c.Address, socket.Options{})
	}
	if err != nil {
		return nil, err
	}
	s := &Server{config: c, listener: l, cert: cert, sessions: make(chan struct{}, c.Clients),
		expected: map[probe.Preface]chan<- *net.TCPConn{}, granted: map[probe.Preface]time.Time{}}
	s.strangers.Limits.Total[admission.Places] = int64(socket.BoundByFiles(admission.MaxPending))
	s.handshakes.Limits = s.strangers.Limits
	return s, nil
}

// Addr is where the server listens.
func (s *Server) Addr() netip.AddrPort { return s.listener.Addr().(*net.TCPAddr).AddrPort() }

// Serve admits clients until ctx ends, and returns when all of them have left.
func (s *Server) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer cancel()
	defer context.AfterFunc(ctx, func() { s.listener.Close() })()
	accept := func(l *net.TCPListener) { serving.Go(func() { s.accept(ctx, l, &serving) }) }
	if s.config.ShareWindows {
		s.windows.start(s.listener, accept)
		defer s.windows.close()
	}
	return s.accept(ctx, s.listener, &serving)
}

// accept admits what comes to one listener until ctx ends.
func (s *Server) accept(ctx context.Context, l *net.TCPListener, serving *sync.WaitGroup) error {
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, net.ErrClosed) {
				return err
			}
			// Out of descriptors, or the client left already: others may still come.
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
			continue
		}
		order := s.accepted.Add(1)
		serving.Go(func() { s.admit(ctx, conn, order) })
	}
}

// Close stops listening. Sessions end with Serve's context.
func (s *Server) Close() error { return s.listener.Close() }

// admit finds out what a connection is and sees to it that it gets there.
func (s *Server) admit(ctx context.Context, conn *net.TCPConn, order int64) {
	preface, err := s.readPreface(ctx, conn)
	if err != nil {
		conn.Close()
		return
	}
	if preface == probe.Marker {
		s.session(ctx, conn)
		return
	}
	if s.deliver(preface, conn) {
		return
	}
	if until, keyed := s.isGranted(preface); s.config.Legacy != nil && (s.config.Strangers || keyed) {
		ctx, expire := probe.Until(ctx, until)
		defer expire()
		s.config.Legacy(ctx, conn, preface, order, keyed)
		return
	}
	s.tell(Event{What: "refused", Client: remote(conn), Err: errors.New("not a fullpipe client")})
	conn.Close()
}

func (s *Server) readPreface(ctx context.Context, conn *net.TCPConn) (probe.Preface, error) {
	defer pending(&s.strangers, conn)()
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
	conn.SetReadDeadline(time.Now().Add(prefaceTime))
	var p probe.Preface
	_, err := io.ReadFull(conn, p[:])
	conn.SetReadDeadline(time.Time{})
	return p, err
}

// pending counts a connection among those that have proven nothing yet, until done is called.
func pending(t *admission.Table, conn *net.TCPConn) (done func()) {
	return t.Pending(conn, admission.Host(remote(conn).Addr()), time.Now())
}

// session has the client prove the key and serves it if there is a place.
func (s *Server) session(ctx context.Context, conn *net.TCPConn) {
	client := remote(conn)
	session := probe.Session{Host: s, Certificate: s.cert, Key: s.config.Key, Holders: s.config.Holders,
		Local: local(conn), Remote: client,
		Hello: probe.Hello{Echo: true, Search: true, Software: s.config.Software, Kernel: socket.Kernel(),
			Congestion: socket.CongestionControls(), Limits: s.config.Limits},
		Times: s.config.Times,
		Event: func(r *transfer.Result) { s.tell(Event{What: "transfer", Client: client, Keyed: true, Result: r}) },
	}
	done := pending(&s.handshakes, conn)
	secured, err := session.Admit(ctx, conn)
	done()
	if err != nil {
		if ctx.Err() == nil { // before the client sees the end, so that no refusal is missed
			s.tell(Event{What: "refused", Client: client, Err: fmt.Errorf("no proof of the key: %w", err)})
		}
		conn.Close()
		return
	}
	select {
	case s.sessions <- struct{}{}:
		defer func() { <-s.sessions }()
	default:
		session.Refuse(secured)
		s.tell(Event{What: "refused", Client: client, Keyed: true, Err: errors.New("as many clients as this server takes")})
		return
	}
	socket.EndWhenGone(conn, s.config.Silence)
	own, end := context.WithCancelCause(ctx)
	defer end(nil)
	if s.config.Exclusive {
		session.Turn = s.claim(client.Addr(), func() { end(probe.ErrTurnOver) })
	}
	holder := ""
	if session.Holder != nil {
		holder = session.Holder.Name
	}
	s.tell(Event{What: "client", Client: client, Keyed: true, Holder: holder})
	err = session.Serve(own, secured)
	switch {
	case errors.Is(err, io.EOF), ctx.Err() != nil:
		err = nil
	case own.Err() != nil:
		err = context.Cause(own)
	}
	s.tell(Event{What: "gone", Client: client, Keyed: true, Err: err})
}

func (s *Server) tell(e Event) {
	if s.config.Event != nil {
		s.config.Event(e)
	}
}

func local(conn net.Conn) netip.AddrPort  { return socket.AddrPort(conn.LocalAddr()) }
func remote(conn net.Conn) netip.AddrPort { return socket.AddrPort(conn.RemoteAddr()) }
