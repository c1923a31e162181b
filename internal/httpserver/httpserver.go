// Package httpserver is the only constructor of HTTP servers, with limits and timeouts against slow, silent and
// numerous clients.
package httpserver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Config configures a Server. Only Handler and Log are required.
type Config struct {
	Handler http.Handler
	// Log receives net/http's errors of requests and handshakes. Strangers cause most of them.
	Log *serverlog.Log
	// TLS, if not nil, is used. HTTP/2 is not served.
	TLS *tls.Config
	// BaseContext is the context of all requests; nil: context.Background.
	BaseContext context.Context
	// ConnContext is http.Server's; nil: none.
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	// Wrap wraps an accepted connection below TLS. The result must have a method NetConn that returns the accepted
	// one. nil: no wrapper.
	Wrap func(*Conn) net.Conn
	// MaxUnproven, if not 0, limits the connections that no handler has called Prove for, apart from MaxConns. The
	// connection of the host with most of them that was idle longest makes room.
	MaxUnproven int
	// MaxConns limits the connections, and those of a host to three quarters of them; 0: 768, less if the file limit
	// requires it.
	MaxConns int
}

// Timeouts for one client. TLS handshakes have headerTime too.
const (
	headerTime     = 10 * time.Second // from accept or the previous response to the end of a request's header
	readTime       = 15 * time.Second // of a whole request
	writeTime      = 30 * time.Second // of a response, from the end of the request's header
	idleTime       = time.Minute
	maxHeaderBytes = 16 << 10
)

// Server is a running server.
type Server struct {
	http   *http.Server
	ended  chan struct{} // closed when serving has ended
	failed error         // the cause, before ended is closed
	close  sync.Once
}

// Start serves a listener until Close, which closes the listener too.
func Start(l *net.TCPListener, c Config) *Server {
	listener := Listen(l, c.Wrap)
	if c.MaxConns > 0 {
		listener.Places.Limits = admission.Limits{Total: admission.Load{int64(c.MaxConns)},
			PerHost: admission.Load{max(int64(c.MaxConns)*3/4, 1)}}
	}
	if c.MaxUnproven > 0 {
		limit := min(int64(c.MaxUnproven), int64(socket.BoundByFiles(c.MaxUnproven)))
		listener.unproven = &admission.Table{Limits: admission.Limits{Total: admission.Load{limit}}}
	}
	return start(listener, c)
}

func start(l *Listener, c Config) *Server {
	withConn := func(ctx context.Context, conn net.Conn) context.Context {
		if c.ConnContext != nil {
			ctx = c.ConnContext(ctx, conn)
		}
		return context.WithValue(ctx, acceptedKey{}, accepted(conn))
	}
	s := &Server{ended: make(chan struct{}), http: &http.Server{Handler: c.Handler, ErrorLog: c.Log.ErrorLog(),
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeaderBytes, ConnContext: withConn, ConnState: TrackState}}
	if c.BaseContext != nil {
		s.http.BaseContext = func(net.Listener) context.Context { return c.BaseContext }
	}
	serving := net.Listener(l)
	if c.TLS != nil {
		serving = tls.NewListener(l, c.TLS)
	}
	go func() {
		defer close(s.ended)
		s.failed = s.http.Serve(serving)
	}()
	return s
}

type acceptedKey struct{}

// Prove records that the client of a request's connection has shown that it is no stranger.
func Prove(ctx context.Context) {
	if c, is := ctx.Value(acceptedKey{}).(*Conn); is && c != nil {
		c.prove()
	}
}

// Ended is closed when the server no longer accepts connections.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Err returns why serving ended, after Ended is closed. After Close it is http.ErrServerClosed.
func (s *Server) Err() error { return s.failed }

// Close closes the server and its connections and waits until it accepts no more. Handlers own the connections
// that they hijacked.
func (s *Server) Close() {
	s.close.Do(func() { _ = s.http.Close() }) // its error is the closed listener's
	<-s.ended
}
