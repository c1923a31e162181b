package iperf3

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Server serves iperf3's clients, many tests at once. The listener passes it each connection that begins with a
// cookie. The zero value works.
type Server struct {
	// StepTimeout is how long a client may take for each step; 0: 10 s.
	StepTimeout time.Duration
	// UnreachableTimeout is how long a client's host may be unreachable; 0: socket.GoneTime.
	UnreachableTimeout time.Duration
	// MaxTests limits the concurrent tests of unauthenticated clients; 0: 64. A test takes a slot once its
	// parameters are read and its user is authenticated. A full server evicts a client that is slow to begin, or a
	// test of a host with more tests than the new client's host. Otherwise it sends ACCESS_DENIED. MaxTestsPerHost
	// limits the tests of one IPv4 address or IPv6 /64; 0: a quarter of MaxTests.
	MaxTests, MaxTestsPerHost int
	// MaxStreams limits the data streams of all unauthenticated tests, and separately those of key holders; 0:
	// 512. Each stream has a thread. MaxBuffers limits their requested socket buffers in bytes; 0: 1 GiB. One
	// unauthenticated host gets half of either, and at least 128 streams if MaxStreams allows. Tests above a limit
	// get ACCESS_DENIED.
	MaxStreams int
	MaxBuffers int64
	// MaxTime is the longest test; 0: 1 h. Tests limited by bytes end after it.
	MaxTime time.Duration
	// MaxBps and MaxBytes limit one direction of a test over all streams, in bit/s and payload bytes; 0:
	// unlimited. Clients must request a rate within MaxBps. Tests that exceed a limit are ended.
	MaxBps   float64
	MaxBytes int64
	// Window sets the receive buffer of a host's new connections from the SYN on, until release. If it is nil or
	// fails, the buffer is set after the handshake, and small windows start larger.
	Window func(from netip.Addr, bytes int) (release func(), err error)
	// Turn, if not nil, requests the turn for each unauthenticated test. The test ends if ok is false or when end
	// is called. declared is the requested duration; 0: none. release frees the turn.
	Turn func(declared time.Duration, end func()) (release func(), ok bool)
	// UDP admits UDP tests. It requires ServeDatagrams.
	UDP bool
	// Sentence formats evidence for --get-server-output. nil: the evidence's code.
	Sentence func(verdict.Evidence) string
	// TrackConcurrent, if not nil, is called with a unique name when a test begins to move data. over, called at
	// its end, returns the concurrent tests or nil.
	TrackConcurrent func(test string) (over func() *transfer.ConcurrentTests)
	// Auth, if not nil, requires a user and a password from clients without the key.
	Auth *Authenticator
	// IdleTimeout is the longest time without any data; 0: 120 s.
	IdleTimeout time.Duration
	// Interval is the time between two calls of OnStart's callback, counted from the end of the omitted time.
	Interval time.Duration
	// AveragePeriod, if not 0, admits tests without a requested rate and applies MaxBps to the average of both
	// directions over it, as iperf3 does.
	AveragePeriod time.Duration
	// OnStart, if not nil, is called when a test's streams are open. The function that it returns, if not nil, is
	// called with the bytes moved.
	OnStart func(from netip.AddrPort, a TestResult) (each func(transfer.Interval))
	// Output, if not nil, replaces this package's text for --get-server-output, as text or JSON.
	Output func(from netip.AddrPort, a TestResult) (text string, object json.RawMessage)
	// Report is called for each finished test.
	Report func(Report)

	once    sync.Once       // sets up the tables below
	pending admission.Table // connections that have not authenticated or sent parameters
	places  admission.Table // tests without the key
	granted admission.Table // tests of key holders

	mu      sync.Mutex // guards the fields below
	tests   map[Cookie]*test
	opening map[netip.Addr]*openingGroup // by host: tests that are opening streams
}

// ErrTurnedAway reports a client that got no slot or lost it to another. It received ACCESS_DENIED.
var ErrTurnedAway = errors.New("turned away")

var (
	errEvicted  = fmt.Errorf("%w: it made room for another client", ErrTurnedAway)
	errTurnOver = fmt.Errorf("%w: its turn is over, another client waits", ErrTurnedAway)
)

// Report is the server's report about one test.
type Report struct {
	From          netip.AddrPort
	HasKey        bool // the test was granted to a key holder
	Authenticated bool // the client passed the server's authentication
	Params        Params
	Outcomes      []transfer.Outcome // one, or two with --bidir
	// Result is nil if the streams were never open.
	Result *TestResult
	Err    error
}

// Handle takes ownership of a connection that began with cookie. It is a stream of a waiting test, or a new test
// that Handle runs to its end. order is the order in which connections were accepted; it numbers a test's streams.
// hasKey is set if the cookie was granted to a key holder. ctx ends the test.
func (s *Server) Handle(ctx context.Context, conn *net.TCPConn, cookie Cookie, order int64, keyed bool) error {
	if s.deliverStream(acceptedConn{conn, order}, cookie) {
		return nil
	}
	defer conn.Close()
	socket.EndWhenGone(conn, s.UnreachableTimeout)
	return s.serve(ctx, conn, socket.AddrPort(conn.RemoteAddr()), cookie, keyed)
}

// serve runs a new test on its control connection.
func (s *Server) serve(ctx context.Context, conn net.Conn, from netip.AddrPort, cookie Cookie, keyed bool) error {
	s.once.Do(s.initTables)
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	t := &test{control: control{conn: conn}, server: s, from: from, cookie: cookie, hasKey: keyed,
		authenticated: keyed || s.Auth == nil, leavePending: func() {}}
	t.entry = t.newEntry(leave)
	err := s.register(t)
	var outcomes []transfer.Outcome
	if err == nil {
		defer s.forget(t)
		outcomes, err = t.serve(ctx, leave)
	}
	if errors.Is(err, ErrTurnedAway) {
		t.denyAccess()
	}
	if s.Report != nil {
		s.Report(Report{t.from, keyed, t.authenticated, t.params, outcomes, t.result, err})
	}
	return err
}

// register adds a test by its cookie and counts unauthenticated clients as pending. Without authentication, it
// rejects a test that would get no slot.
func (s *Server) register(t *test) error {
	now := time.Now()
	if t.authenticated && !t.hasKey {
		if err := s.places.Check(t.entry, now); err != nil {
			return fmt.Errorf("%v was %w: %w", t.from, ErrTurnedAway, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.tests[t.cookie]; taken {
		return fmt.Errorf("%v was %w: its cookie is another test's", t.from, ErrTurnedAway)
	}
	s.tests[t.cookie] = t
	if !t.hasKey {
		t.leavePending = s.pending.Pending(t.conn, t.entry.Host, now)
	}
	return nil
}

func (s *Server) forget(t *test) {
	t.leavePending()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tests, t.cookie)
}
