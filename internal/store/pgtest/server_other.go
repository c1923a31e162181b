//go:build !linux

package pgtest

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// Server is not supported on this system.
type Server struct{}

func begin(t testing.TB, _ string) *Server {
	testenv.Need(t, testenv.Linux)
	return nil
}

func (s *Server) end()                          {}
func (s *Server) URL(testing.TB) string         { return "" }
func (s *Server) Stop(t testing.TB, _ string)   {}
func (s *Server) Restart(t testing.TB)          {}
func (s *Server) SQL(t testing.TB, _, _ string) {}
