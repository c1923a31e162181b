// Package web is the page of `fullpipe ui`: the history and the live view as pages and as
// JSON, for those who may. Nothing that it serves asks another host for anything.
package web

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Config configures a Server. Without any token no client gets access.
type Config struct {
	History *store.Store
	Version string // of the program
	// Ours reports whether a request's Host names this server. Another name may be DNS rebinding: the name of a hostile
	// page that resolves to this host.
	Ours func(*http.Request) bool
	// Opening is the operator token in the address that fullpipe ui prints and opens.
	Opening string
	// Viewer and Operator are bearer tokens; "" is none.
	Viewer, Operator string
	// Watch watches this host's connections and calls each once a period; nil: not supported.
	Watch func(ctx context.Context, each func(*record.Watch)) error
	// Tests runs tests of known paths; nil: the pages offer none.
	Tests *Tests
	// Speed is the browser speed test; nil: there is none.
	Speed *Speed
	// Fleet is the fleet of a hub; nil: this is not a hub.
	Fleet *Fleet
	// Record receives each request with an unsafe method, before its client gets the response; nil: nobody.
	Record func(context.Context, Change)
	// Note is shown on every page; "": none.
	Note string
}

// Server serves the pages and the JSON API.
type Server struct {
	cfg             Config
	inside          *inside
	cross           *http.CrossOriginProtection
	failures        admission.Limiter // wrong tokens, by address
	unauthenticated admission.Limiter // unauthenticated requests, by address
	requests        admission.Limiter // authenticated requests, by session, or by token and address
	live            *live
	grids           *live // changes of the grid of a fleet
	retests         *retests
	troubles        troubles
	refusedChanges  atomic.Int64

	mu       sync.Mutex // guards sessions
	sessions map[string]*session
}

// New returns a Server. The caller has to close it.
func New(cfg Config) *Server {
	s := &Server{cfg: cfg, cross: http.NewCrossOriginProtection(), sessions: map[string]*session{},
		troubles:        troubles{seen: map[string]standingTrouble{}},
		failures:        admission.Limiter{Every: 6 * time.Second, Burst: 10},
		unauthenticated: admission.Limiter{Every: 10 * time.Millisecond, Burst: 400},
		requests:        admission.Limiter{Every: 20 * time.Millisecond, Burst: 200}}
	s.live = newWatchLive(cfg.Watch)
	s.grids = newLive(cfg.Fleet.watchGrid())
	s.retests = newRetests(cfg.Tests, s.header("retest"))
	s.inside = newInside(s)
	return s
}

// Close ends the live view with its followers and the running test.
func (s *Server) Close() {
	s.live.close()
	s.grids.close()
	s.retests.close()
}
