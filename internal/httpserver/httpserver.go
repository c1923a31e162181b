// Package httpserver is how fullpipe serves HTTP: one constructor with the bounds that every
// server needs against clients that are slow, silent or many.
package httpserver

import (
	"context"
	"crypto/tls"
	"log"
	"net"
	"net/http"
	"sync"
	"time"
)

// Config says what a server serves. Only Handler and ErrorLog have no default.
type Config struct {
	Handler http.Handler
	// ErrorLog takes what net/http reports of requests and handshakes, one call for each.
	ErrorLog *log.Logger
	// TLS is served when it is not nil. HTTP/2 is not.
	TLS *tls.Config
	// BaseContext is that of all requests; nil is context.Background.
	BaseContext context.Context
	// ConnContext is http.Server's; nil adds nothing.
	ConnContext func(ctx context.Context, c net.Conn) context.Context
	// Wrap makes another connection of an accepted one, below TLS; it must have a method
	// NetConn that returns the accepted one. nil wraps nothing.
	Wrap func(*Conn) net.Conn
}

// Bounds on what one client may take. TLS handshakes end after headerTime too.
const (
	headerTime     = 10 * time.Second // from accept or the previous answer to the end of a request's header
	readTime       = 15 * time.Second // of a whole request
	writeTime      = 30 * time.Second // of an answer, from the end of the request's header
	idleTime       = time.Minute
	maxHeaderBytes = 16 << 10
)

// Server is a server that runs.
type Server struct {
	http   *http.Server
	ended  chan struct{} // closed when serving has ended
	failed error         // why, before ended is closed
	close  sync.Once
}

// Start serves a listener until Close, which also closes the listener.
func Start(l *net.TCPListener, c Config) *Server { return start(Listen(l, c.Wrap), c) }

func start(l *Listener, c Config) *Server {
	s := &Server{ended: make(chan struct{}), http: &http.Server{Handler: c.Handler, ErrorLog: c.ErrorLog,
		ReadHeaderTimeout: headerTime, ReadTimeout: readTime, WriteTimeout: writeTime, IdleTimeout: idleTime,
		MaxHeaderBytes: maxHeaderBytes, ConnContext: c.ConnContext, ConnState: TrackState}}
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

// Ended is closed when the server has stopped accepting connections.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// Err returns why serving ended, once Ended is closed; http.ErrServerClosed is Close.
func (s *Server) Err() error { return s.failed }

// Close ends the server and its connections and waits until it accepts no more. Connections
// that a handler has hijacked are the handler's.
func (s *Server) Close() {
	s.close.Do(func() { _ = s.http.Close() }) // its error is the listener's, which has been closed
	<-s.ended
}
