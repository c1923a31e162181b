// Package pgtest runs a PostgreSQL server for tests: the distribution's programs in a temporary directory, without
// privileges, on a Unix socket.
package pgtest

import (
	"os"
	"sync"
	"testing"
)

// Main runs a package's tests and stops their shared server.
func Main(m *testing.M) {
	status := m.Run()
	if shared.server != nil {
		shared.server.end()
	}
	os.Exit(status)
}

var shared struct {
	sync.Mutex // guards server
	server     *Server
}

// Shared returns the server of all tests of a package that has Main. The first call starts it.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		shared.server = begin(t, "")
	}
	return shared.server
}

// Start starts a server for one test.
func Start(t testing.TB) *Server {
	t.Helper()
	return start(t, "")
}

// StartDurable starts a server whose commits are on the disk when they return, for benchmarks.
func StartDurable(t testing.TB) *Server {
	t.Helper()
	return start(t, " -c fsync=on -c shared_buffers=128MB")
}

func start(t testing.TB, options string) *Server {
	t.Helper()
	s := begin(t, options)
	t.Cleanup(s.end)
	return s
}
