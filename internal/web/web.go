// Package web is the page of `fullpipe ui`: the history and the live view as pages and as
// JSON, for those who may. Nothing that it serves asks another host for anything.
package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Config says what is served and to whom. Without any token nobody gets in.
type Config struct {
	History *store.Store
	Version string // of the program
	// Ours says whether a request's Host names this server: another name may be that of a
	// web page that was made to lead here (DNS rebinding).
	Ours func(host string) bool
	// Opening is the token in the address that its own user is sent to: an operator's.
	Opening string
	// Viewer and Operator are bearer tokens; "" is none.
	Viewer, Operator string
	// Encrypted says that it is served over TLS.
	Encrypted bool
	// Watch follows this host's connections and calls each once a period; nil: it cannot.
	Watch func(ctx context.Context, each func(*record.Watch)) error
	// Tests tests paths again; nil: that is not offered.
	Tests *Tests
	// Speed is the test from a browser; nil: there is none.
	Speed *Speed
	// Fleet is a hub's fleet; nil: this is no hub.
	Fleet *Fleet
	// Note stands on every page; "" is none.
	Note string
}

// Server answers requests.
type Server struct {
	cfg       Config
	inside    *inside
	cross     *http.CrossOriginProtection
	failures  limiter // wrong tokens, by address
	strangers limiter // requests without a session, by address
	requests  limiter // of who is in, by session or address
	live      *live
	retests   *retests

	mu       sync.Mutex // guards sessions
	sessions map[string]*session
}

// New makes a server of a configuration. Close it.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, cross: http.NewCrossOriginProtection(), sessions: map[string]*session{},
		failures:  limiter{every: 6 * time.Second, burst: 10},
		strangers: limiter{every: 10 * time.Millisecond, burst: 400},
		requests:  limiter{every: 20 * time.Millisecond, burst: 200}}
	s.live = newLive(cfg.Watch)
	s.retests = newRetests(cfg.Tests, s.header("retest"))
	s.inside = newInside(s)
	return s
}

// Close ends the live view, whoever follows it, and a test that runs.
func (s *Server) Close() {
	s.live.close()
	s.retests.close()
}
