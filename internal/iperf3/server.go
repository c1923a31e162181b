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

// Server admits iperf3's clients, many tests at once. Whoever listens hands it every
// connection whose first 37 bytes are nobody else's. The zero value works.
type Server struct {
	// Patience is how long a client may take over each of its steps; 0 is 10 s.
	Patience time.Duration
	// Silence is how long a client's host may not answer at all; 0 is socket.GoneTime.
	Silence time.Duration
	// MaxTests is how many tests of strangers run at once; 0 is 64. One more is told
	// ACCESS_DENIED, unless a client dawdles over its beginning, or a host has several tests
	// and more than the newcomer's host: then those make room. A test takes its place when its
	// parameters are read and its user is known. MaxTestsPerHost bounds the tests of one IPv4
	// address or IPv6 /64; 0 is a quarter of MaxTests.
	MaxTests, MaxTestsPerHost int
	// MaxStreams bounds the data streams of all strangers' tests together, each of which
	// has a thread, and apart from them those of the key's holders; 0 is 512. MaxBuffers
	// bounds the bytes of socket buffers that they asked for; 0 is 1 GiB. One host of
	// strangers gets half of either, and 128 streams if there are so many. What does not
	// fit is told ACCESS_DENIED.
	MaxStreams int
	MaxBuffers int64
	// MaxTime is the longest test that is admitted; 0 is an hour. Tests bounded by bytes
	// end after it.
	MaxTime time.Duration
	// MaxBps and MaxBytes bound one direction of a test over all its streams, in bit/s and
	// payload bytes; 0 is no bound. A client must ask for a rate within MaxBps, and a test
	// that moves more than either all the same is ended.
	MaxBps   float64
	MaxBytes int64
	// Window opens a place where connections from a host get a receive buffer of so many
	// bytes from the SYN on, until release is called. nil, or an error: the buffer is set
	// after the handshake, and its window starts larger where it is small.
	Window func(from netip.Addr, bytes int) (release func(), err error)
	// Turn, when not nil, is asked for each test of a stranger, who has to leave when ok is
	// false, and when end is called. declared is the time that it asked for; 0: none. release
	// gives the turn back.
	Turn func(declared time.Duration, end func()) (release func(), ok bool)
	// UDP admits tests over UDP: somebody runs ServeDatagrams.
	UDP bool
	// Sentence says an observation in words, for clients that ask for the server's output;
	// nil tells them its code.
	Sentence func(verdict.Evidence) string
	// Running, when not nil, is called with a name of its own for each test that begins to move
	// data, and over when it has ended: what other tests ran beside it; nil: none.
	Running func(test string) (over func() *transfer.Beside)
	// Gate, when not nil, asks strangers for a user and a password.
	Gate *Gate
	// Quiet is how long a test may pass without any data; 0 is 120 s.
	Quiet time.Duration
	// Every has what Begun answers told what moved at its multiples, besides others; they
	// count from the omitted time's end.
	Every time.Duration
	// Average, when not 0, admits tests that ask for no rate and holds both directions
	// together to MaxBps over so long, as iperf3 does.
	Average time.Duration
	// Begun, when not nil, is called when a test's streams are open, and what it answers
	// (when not nil) with what moves.
	Begun func(from netip.AddrPort, a Account) (each func(transfer.Interval))
	// Output, when not nil, is what a client that asks for the server's output is told, as
	// text or as JSON, in place of this package's own.
	Output func(from netip.AddrPort, a Account) (text string, object json.RawMessage)
	// Report is called with each finished test.
	Report func(Report)

	once    sync.Once       // makes what follows
	pending admission.Table // connections before they have shown parameters and proven a user
	places  admission.Table // tests of everybody without the key
	granted admission.Table // tests of the key's holders

	mu      sync.Mutex // guards what follows
	tests   map[Cookie]*test
	opening map[netip.Addr]*turn // by host: whose streams are being accepted
}

// ErrTurnedAway is a client that found no place, or had to leave it to another; ACCESS_DENIED tells
// it.
var ErrTurnedAway = errors.New("turned away")

var (
	errMadeRoom = fmt.Errorf("%w: it made room for another client", ErrTurnedAway)
	errTurnOver = fmt.Errorf("%w: its turn is over, another client waits", ErrTurnedAway)
)

// Report is what a server tells of one test.
type Report struct {
	From     netip.AddrPort
	Keyed    bool // the client had been granted the test
	Proven   bool // the client has proven what the server demands
	Params   Params
	Outcomes []transfer.Outcome // one, or two with --bidir
	// Account is what both ends say of the test; nil where its streams were never open.
	Account *Account
	Err     error
}

// Handle takes over a connection that opened with cookie: a stream of a test that waits
// for it, else a new test, which it serves until its end. Streams are told apart by
// nothing but the order in which they were accepted. keyed says that the cookie was
// granted to a holder of the key, who has places of his own. ctx ends the test.
func (s *Server) Handle(ctx context.Context, conn *net.TCPConn, cookie Cookie, order int64, keyed bool) error {
	if s.deliver(arrival{conn, order}, cookie) {
		return nil
	}
	defer conn.Close()
	socket.EndWhenGone(conn, s.Silence)
	return s.serve(ctx, conn, socket.AddrPort(conn.RemoteAddr()), cookie, keyed)
}

// serve carries out a new test over its control connection.
func (s *Server) serve(ctx context.Context, conn net.Conn, from netip.AddrPort, cookie Cookie, keyed bool) error {
	s.once.Do(s.setUp)
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	t := &test{control: control{conn: conn}, server: s, from: from, cookie: cookie, keyed: keyed,
		proven: keyed || s.Gate == nil, leavePending: func() {}}
	t.entry = t.newEntry(leave)
	err := s.register(t)
	var outcomes []transfer.Outcome
	if err == nil {
		defer s.forget(t)
		outcomes, err = t.serve(ctx, leave)
	}
	if errors.Is(err, ErrTurnedAway) {
		t.turnAway()
	}
	if s.Report != nil {
		s.Report(Report{t.from, keyed, t.proven, t.params, outcomes, t.account, err})
	}
	return err
}

// register makes the server know a test by its cookie, and counts a client that has proven nothing
// among those. Where no proof is demanded, one that would find no place is turned away at once.
func (s *Server) register(t *test) error {
	now := time.Now()
	if t.proven && !t.keyed {
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
	if !t.keyed {
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
