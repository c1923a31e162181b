package server

import (
	"errors"

	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// Grant implements probe.Host.
func (s *Server) Grant() (cookie probe.Preface, revoke func(), err error) {
	if s.config.Legacy == nil {
		return cookie, nil, errors.New("this server carries TCP only")
	}
	cookie = probe.NewToken()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.granted[cookie] = true
	return cookie, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.granted, cookie)
	}, nil
}

func (s *Server) isGranted(cookie probe.Preface) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.granted[cookie]
}
