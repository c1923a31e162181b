package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Server admits iperf3's clients, many tests at once. Whoever listens hands it every
// connection whose first 37 bytes are nobody else's. The zero value works.
type Server struct {
	// MaxTests is how many tests run at once; 0 is 64. One more is told ACCESS_DENIED,
	// unless a client dawdles over its beginning and has to make room.
	MaxTests int
	// Patience is how long a client may take over each of its steps; 0 is 10 s.
	Patience time.Duration
	// MaxTime is the longest test that is admitted; 0 is an hour. Tests bounded by bytes
	// end after it.
	MaxTime time.Duration
	// MaxBps bounds what a client may ask for, over all its streams, in bit/s; 0 is no
	// bound. A client that asks for no rate is refused then, as iperf3's server does.
	MaxBps int64
	// Window opens a place where connections from a host get a receive buffer of so many
	// bytes from the SYN on, until release is called. nil, or an error: the buffer is set
	// after the handshake, and its window starts larger where it is small.
	Window func(from netip.Addr, bytes int) (release func(), err error)
	// UDP admits tests over UDP: somebody runs ServeDatagrams.
	UDP bool
	// Report is called with each finished test.
	Report func(Report)

	// mu guards what follows.
	mu      sync.Mutex
	tests   map[Cookie]*test
	opening map[netip.Addr]*turn // by host: whose streams are being accepted
}

// Report is what a server tells of one test.
type Report struct {
	From     netip.AddrPort
	Params   Params
	Outcomes []Outcome // one, or two with --bidir
	Err      error
}

// Outcome is one direction of a test as the server, its near end, saw it: TCP or
// Datagrams is set.
type Outcome struct {
	TCP       *transfer.Result
	Datagrams *transfer.DatagramResult
}

// test is one client's test, from its cookie to its last state.
type test struct {
	control
	server *Server
	from   netip.AddrPort
	cookie Cookie
	params Params
	// arrived and greeted take the streams while the test waits for them; nil before and
	// after (guarded by Server.mu).
	arrived chan arrival
	greeted chan greeting
	came    time.Time
	running bool // guarded by Server.mu
}

const (
	defaultTests = 64
	// dawdling is how long a client may take to begin when others wait, beginTime when
	// nobody does.
	dawdling    = time.Second
	beginTime   = 30 * time.Second
	defaultTime = time.Hour
	// overtime is how long a client may stay beyond the time it asked for.
	overtime = 40 * time.Second
	// dataPatience is how long a test may pass without any data.
	dataPatience = 120 * time.Second
)

// arrival is one stream's connection; order tells which was accepted first.
type arrival struct {
	conn  *net.TCPConn
	order int64
}

// Handle takes over a connection that opened with cookie: a stream of a test that waits
// for it, else a new test, which it serves until its end. Streams are told apart by
// nothing but the order in which they were accepted. ctx ends the test.
func (s *Server) Handle(ctx context.Context, conn *net.TCPConn, cookie Cookie, order int64) error {
	if s.deliver(arrival{conn, order}, cookie) {
		return nil
	}
	defer conn.Close()
	t := &test{control: control{conn: conn}, server: s, from: addrPort(conn.RemoteAddr()), cookie: cookie, came: time.Now()}
	if !s.admit(t) {
		conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
		WriteState(conn, AccessDenied)
		return fmt.Errorf("%v was turned away: %d tests are running", t.from, s.maxTests())
	}
	defer s.forget(t)
	outcomes, err := t.serve(ctx)
	if s.Report != nil {
		s.Report(Report{t.from, t.params, outcomes, err})
	}
	return err
}

func addrPort(a net.Addr) netip.AddrPort {
	ap := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

func (s *Server) maxTests() int {
	if s.MaxTests == 0 {
		return defaultTests
	}
	return s.MaxTests
}

func (s *Server) patience() time.Duration {
	if s.Patience == 0 {
		return answerTimeout
	}
	return s.Patience
}

func (s *Server) maxTime() time.Duration {
	if s.MaxTime == 0 {
		return defaultTime
	}
	return s.MaxTime
}

// deliver hands a stream to the test that waits for it, if its cookie and its host are
// that test's.
func (s *Server) deliver(a arrival, cookie Cookie) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tests[cookie]
	if !ok || t.arrived == nil || t.from.Addr() != addrPort(a.conn.RemoteAddr()).Addr() {
		return false
	}
	select {
	case t.arrived <- a:
		return true
	default:
		return false
	}
}

func (s *Server) admit(t *test) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.tests[t.cookie]; taken || len(s.tests) >= s.maxTests() && !s.makeRoom() {
		return false
	}
	if s.tests == nil {
		s.tests = map[Cookie]*test{}
		s.opening = map[netip.Addr]*turn{}
	}
	s.tests[t.cookie] = t
	return true
}

func (s *Server) forget(t *test) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tests[t.cookie] == t {
		delete(s.tests, t.cookie)
	}
}

// makeRoom turns out a client that dawdles, of the host that has the most of them. The
// caller holds mu.
func (s *Server) makeRoom() bool {
	idle := map[netip.Addr]int{}
	var crowd *test
	for _, t := range s.tests {
		if t.running || time.Since(t.came) < dawdling {
			continue
		}
		host := t.from.Addr()
		if idle[host]++; crowd == nil || idle[host] > idle[crowd.from.Addr()] {
			crowd = t
		}
	}
	if crowd == nil {
		return false
	}
	crowd.conn.Close()
	delete(s.tests, crowd.cookie)
	return true
}

// begins marks a test as running: nobody makes it leave any more.
func (s *Server) begins(t *test) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.running = true
}

// turn is who of one host opens streams now.
type turn struct {
	holders int
	alone   bool
	over    chan struct{} // closed when the last holder leaves
}

// turn waits for a test's turn to open its streams. A listener that is told windows by
// host, and UDP, which has no cookies, must know whose streams they are: such tests open
// theirs alone, the others of a host together.
func (s *Server) turn(ctx context.Context, host netip.Addr, alone bool) (release func(), err error) {
	for {
		s.mu.Lock()
		now := s.opening[host]
		if now == nil || !alone && !now.alone {
			if now == nil {
				now = &turn{over: make(chan struct{})}
				s.opening[host] = now
			}
			now.holders++
			now.alone = alone
			s.mu.Unlock()
			return func() { s.leave(host, now) }, nil
		}
		over := now.over
		s.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (s *Server) leave(host netip.Addr, t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.holders--; t.holders == 0 {
		delete(s.opening, host)
		close(t.over)
	}
}

// serve carries a test through its states.
func (t *test) serve(ctx context.Context) ([]Outcome, error) {
	if err := t.send(ctx, ParamExchange); err != nil {
		return nil, err
	}
	text, err := t.readFrame(ctx, t.server.patience(), MaxParams, "the parameters")
	if err != nil {
		return nil, err
	}
	if t.params, err = ParseParams(text); err != nil {
		return nil, t.refuse(CodeParams, syscall.EINVAL, err)
	}
	if code, err := t.server.allows(t.params); err != nil {
		return nil, t.refuse(code, 0, err)
	}
	halves, err := t.accept(ctx)
	if err != nil {
		return nil, err
	}
	defer closeHalves(halves)
	t.server.begins(t)
	if err := t.send(ctx, TestStart); err != nil {
		return nil, err
	}
	if err := t.send(ctx, TestRunning); err != nil {
		return nil, err
	}
	return t.run(ctx, halves)
}

// refuse tells the client a code and answers why.
func (t *test) refuse(code Code, errno syscall.Errno, why error) error {
	t.conn.SetWriteDeadline(time.Now().Add(goodbyeTime))
	writeRemoteError(t.conn, code, int32(errno))
	return fmt.Errorf("refused %v: %w", t.from, why)
}

// allows holds a test to the server's limits.
func (s *Server) allows(p Params) (Code, error) {
	longest := int(s.maxTime() / time.Second)
	switch {
	case p.UDP && !s.UDP:
		return CodeParams, errors.New("this server does not admit UDP")
	case p.Time+p.Omit > longest || p.Time == 0 && p.Num == 0 && p.Blocks == 0:
		return CodeDuration, fmt.Errorf("%d s were asked for; at most %d are allowed", p.Time+p.Omit, longest)
	case s.MaxBps > 0 && (p.Bandwidth == 0 || p.Bandwidth > s.MaxBps/int64(p.Streams)):
		return CodeRate, fmt.Errorf("%d streams of %d bit/s were asked for; at most %d bit/s are allowed", p.Streams, p.Bandwidth, s.MaxBps)
	}
	return 0, nil
}

func closeHalves(halves []half) {
	for _, h := range halves {
		h.close()
	}
}

// accept takes the streams in and prepares each direction.
func (t *test) accept(ctx context.Context) ([]half, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, beginTime, fmt.Errorf("%v did not begin within %v", t.from, beginTime))
	defer cancel()
	shaped := t.params.Window > 0 && t.server.Window != nil
	release, err := t.server.turn(ctx, t.from.Addr(), shaped || t.params.UDP)
	if err != nil {
		return nil, err
	}
	defer release()
	n := t.params.Streams
	if t.params.Both {
		n *= 2
	}
	if t.params.UDP {
		return t.greet(ctx, n)
	}
	if shaped {
		if close, err := t.server.Window(t.from.Addr(), t.params.Window); err == nil {
			defer close()
		}
	}
	conns, err := t.gather(ctx, n)
	if err != nil {
		return nil, err
	}
	return t.loads(conns)
}

// gather waits for n streams and answers them in the order in which they were accepted.
func (t *test) gather(ctx context.Context, n int) ([]*net.TCPConn, error) {
	arrived := make(chan arrival, n)
	t.waitFor(arrived)
	all, err := t.take(ctx, arrived, n)
	t.waitFor(nil)
	close(arrived)
	for late := range arrived {
		all = append(all, late)
	}
	slices.SortFunc(all, func(a, b arrival) int { return cmp.Compare(a.order, b.order) })
	var conns []*net.TCPConn
	for _, a := range all {
		conns = append(conns, a.conn)
	}
	if err != nil {
		closeAll(conns)
		return nil, err
	}
	return conns, nil
}

// take lets the client open its streams and takes n of them.
func (t *test) take(ctx context.Context, arrived <-chan arrival, n int) (all []arrival, err error) {
	if err := t.send(ctx, CreateStreams); err != nil {
		return nil, err
	}
	patience := time.NewTimer(t.server.patience())
	defer patience.Stop()
	for len(all) < n {
		select {
		case a := <-arrived:
			all = append(all, a)
			patience.Reset(t.server.patience())
		case <-patience.C:
			return all, fmt.Errorf("%v opened %d of its %d streams", t.from, len(all), n)
		case <-ctx.Done():
			return all, context.Cause(ctx)
		}
	}
	return all, nil
}

func (t *test) waitFor(arrived chan arrival) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.arrived = arrived
}

// loads divides the streams into directions: with --bidir the client's first half sends.
func (t *test) loads(conns []*net.TCPConn) (halves []half, err error) {
	for i := 0; len(conns) > 0; i++ {
		some := conns[:t.params.Streams]
		conns = conns[len(some):]
		l, err := newLoad(some, t.spec(t.params.Reverse || i == 1))
		if err != nil {
			closeHalves(halves)
			closeAll(conns)
			return nil, t.refuse(codeOf(err), errnoOf(err), err)
		}
		l.omit = t.omit()
		halves = append(halves, l)
	}
	return halves, nil
}

func (t *test) omit() time.Duration { return time.Duration(t.params.Omit) * time.Second }

// spec is one direction of the test as the server sees it: it is the near end.
func (t *test) spec(sending bool) transfer.Spec {
	p := t.params
	spec := transfer.Spec{Direction: transfer.Down, Streams: p.Streams,
		Near: transfer.Socket{SendBuffer: p.Window, ReceiveBuffer: p.Window, Congestion: p.Congestion, NoDelay: p.NoDelay,
			PacingBps: float64(p.FQRate), TOS: p.TOS}}
	if sending {
		spec.Direction, spec.Bytes = transfer.Up, p.total()
		spec.Program = transfer.Program{WriteBytes: p.Len, WriteBps: float64(p.Bandwidth)}
	}
	return spec
}

func codeOf(err error) Code {
	var option *socket.OptionError
	if errors.As(err, &option) && strings.HasPrefix(option.Option, "TCP_CONGESTION") {
		return CodeCongestion
	}
	return CodeBuffer
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}
