// Package server is the far end: one port for native clients with the key, and optionally for iperf3 clients.
//
// Flow of a connection:
//
// 1. accept counts it in newConns and reads its first 37 bytes (admit).
// 2. Marker: the client proves the key (session) while it is counted in handshakes.
// 3. The client takes a slot in clients, and on an exclusive server waits for its turn.
// 4. probe.Session serves its requests. Expect announces the tokens of data connections.
// 5. An expected token: deliver passes the connection to its transfer.
// 6. An iperf3 cookie: Config.Iperf3 takes the connection.
// 7. Anything else is closed.
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

// Config configures a Server. The zero value only lacks a Key.
type Config struct {
	// Address is ADDR:PORT to listen on; "": DefaultAddress.
	Address string
	Key     probe.Key
	// Holders, if not nil, returns the clients with keys of their own. It is called for each client and each of
	// its requests.
	Holders func() []probe.Holder
	// Software is this program's name and version for clients.
	Software string
	// Clients limits the concurrent sessions; 0: 64.
	Clients int
	// Streams limits the data connections of all clients; 0: 512. Each has a thread. Buffers limits their
	// requested socket buffers in bytes; 0: 1 GiB. Clients above a limit are refused.
	Streams int
	Buffers int64
	// Exclusive serves one client at a time; others wait.
	Exclusive bool
	// Limits are the limits of one client; zero: probe.DefaultLimits.
	Limits probe.Limits
	// Iperf3, if not nil, receives connections that begin with a cookie granted to a client. With
	// AllowUnauthenticated it also receives those with unknown cookies. It closes them. order counts connections
	// as accepted; keyed is set for granted cookies.
	Iperf3               func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool)
	AllowUnauthenticated bool
	// ShareWindows enables Window, if the system can share a port.
	ShareWindows bool
	// Offered, if not nil, is asked about each offer of a client before its transfer is accepted; see probe.Session.
	// holder is the name of the client's key, "" for the server's.
	Offered func(holder string, s transfer.Spec) (probe.Allowance, error)
	// Losses, if not nil, returns this host's drops of a transfer; see probe.Session.
	Losses func() func(e *transfer.End, sends bool)
	// UnreachableTimeout is how long a client's host may be unreachable; 0: socket.GoneTime.
	UnreachableTimeout time.Duration
	// Event, if not nil, receives client and transfer events from many goroutines. It must not block.
	Event func(Event)
	// Timeouts are the timeouts for authenticated clients; zero fields have probe's defaults.
	Timeouts probe.Timeouts
}

// Event is an event of a server.
type Event struct {
	Kind   string // "client" (authenticated), "gone", "refused", "transfer"
	Client netip.AddrPort
	Keyed  bool   // by a key holder
	Holder string // name of the holder's key; "": the server's key
	Err    error
	Result *transfer.Result // of "transfer"; this server is the far end
}

// DefaultAddress is transfer.DefaultPort of all addresses.
var DefaultAddress = fmt.Sprintf(":%d", transfer.DefaultPort)

// prefaceTimeout limits the time for a connection's first 37 bytes.
const prefaceTimeout = 10 * time.Second

// Server listens on one port. Serve runs it, Close ends it.
type Server struct {
	config   Config
	listener *net.TCPListener
	cert     tls.Certificate

	newConns   admission.Table // connections before their first 37 bytes
	handshakes admission.Table // connections before the proof of the key
	sessions   chan struct{}   // one per authenticated client
	turn       admission.Turn  // of an exclusive server
	windows    windows
	running    concurrentTests
	accepted   atomic.Int64 // connections so far

	mu       sync.Mutex // guards the fields below
	streams  int        // reserved by clients
	buffers  int64      // reserved bytes
	expected map[probe.Preface]expectation
	granted  map[probe.Preface]time.Time // when the test's key expires
}

// New listens.
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
		l, err = listenShared(ctx, c.Address)
		if errors.Is(err, socket.ErrNotSupported) {
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
		expected: map[probe.Preface]expectation{}, granted: map[probe.Preface]time.Time{}}
	s.newConns.Limits.Total[admission.Slots] = int64(socket.BoundByFiles(admission.MaxPending))
	s.handshakes.Limits = s.newConns.Limits
	return s, nil
}

// Addr returns the server's address.
func (s *Server) Addr() netip.AddrPort { return s.listener.Addr().(*net.TCPAddr).AddrPort() }

// Serve serves clients until ctx ends and returns when all have left.
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

// accept accepts one listener's connections until ctx ends.
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
			// No descriptors left, or the client has left: continue.
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

// admit reads a connection's preface and passes the connection on.
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
	if until, keyed := s.isGranted(preface); s.config.Iperf3 != nil && (s.config.AllowUnauthenticated || keyed) {
		ctx, expire := probe.Until(ctx, until)
		defer expire()
		s.config.Iperf3(ctx, conn, preface, order, keyed)
		return
	}
	s.report(Event{Kind: "refused", Client: remote(conn), Err: errors.New("not a fullpipe client")})
	conn.Close()
}

func (s *Server) readPreface(ctx context.Context, conn *net.TCPConn) (probe.Preface, error) {
	defer pending(&s.newConns, conn)()
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
	conn.SetReadDeadline(time.Now().Add(prefaceTimeout))
	var p probe.Preface
	_, err := io.ReadFull(conn, p[:])
	conn.SetReadDeadline(time.Time{})
	return p, err
}

// pending counts an unauthenticated connection until done is called.
func pending(t *admission.Table, conn *net.TCPConn) (done func()) {
	return t.Pending(conn, admission.Host(remote(conn).Addr()), time.Now())
}

// session authenticates the client and serves it if a slot is free.
func (s *Server) session(ctx context.Context, conn *net.TCPConn) {
	client := remote(conn)
	session := probe.Session{Host: s, Certificate: s.cert, Key: s.config.Key, Holders: s.config.Holders,
		Local: local(conn), Remote: client,
		Hello: probe.Hello{Echo: true, Search: true, Requests: true, Software: s.config.Software, Kernel: socket.Kernel(),
			Congestion: socket.CongestionControls(), Limits: s.config.Limits},
		Timeouts: s.config.Timeouts, Losses: s.config.Losses,
	}
	holder := ""
	session.Event = func(r *transfer.Result) {
		s.report(Event{Kind: "transfer", Client: client, Keyed: true, Holder: holder, Result: r})
	}
	if s.config.Offered != nil {
		session.Offered = func(spec transfer.Spec) (probe.Allowance, error) { return s.config.Offered(holder, spec) }
	}
	done := pending(&s.handshakes, conn)
	secured, err := session.Admit(ctx, conn)
	done()
	if err != nil {
		var elsewhere *probe.AddressError
		switch {
		case ctx.Err() != nil:
		case errors.As(err, &elsewhere):
			s.report(Event{Kind: "refused", Client: client, Keyed: true, Holder: session.Holder.Name, Err: err})
		default: // before the client sees the end, so that no refusal is lost
			s.report(Event{Kind: "refused", Client: client, Err: fmt.Errorf("no proof of the key: %w", err)})
		}
		conn.Close()
		return
	}
	select {
	case s.sessions <- struct{}{}:
		defer func() { <-s.sessions }()
	default:
		session.Refuse(secured)
		s.report(Event{Kind: "refused", Client: client, Keyed: true, Err: errors.New("as many clients as this server takes")})
		return
	}
	socket.EndWhenGone(conn, s.config.UnreachableTimeout)
	own, end := context.WithCancelCause(ctx)
	defer end(nil)
	if s.config.Exclusive {
		session.Turn = s.claim(client.Addr(), func() { end(probe.ErrTurnOver) })
	}
	if session.Holder != nil {
		holder = session.Holder.Name
	}
	s.report(Event{Kind: "client", Client: client, Keyed: true, Holder: holder})
	err = session.Serve(own, secured)
	switch {
	case errors.Is(err, io.EOF), ctx.Err() != nil:
		err = nil
	case own.Err() != nil:
		err = context.Cause(own)
	}
	s.report(Event{Kind: "gone", Client: client, Keyed: true, Err: err})
}

func (s *Server) report(e Event) {
	if s.config.Event != nil {
		s.config.Event(e)
	}
}

func local(conn net.Conn) netip.AddrPort  { return socket.AddrPort(conn.LocalAddr()) }
func remote(conn net.Conn) netip.AddrPort { return socket.AddrPort(conn.RemoteAddr()) }
