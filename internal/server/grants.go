package server

import (
	"errors"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// Grant implements probe.Host.
func (s *Server) Grant(until time.Time) (cookie probe.Preface, revoke func(), err error) {
	if s.config.Iperf3 == nil {
		return cookie, nil, errors.New("this server carries TCP only")
	}
	cookie = probe.NewToken()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted[cookie] = until
	return cookie, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.granted, cookie)
	}, nil
}

// isGranted reports whether a cookie was granted, and until when.
func (s *Server) isGranted(cookie probe.Preface) (until time.Time, granted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, granted = s.granted[cookie]
	return until, granted
}
