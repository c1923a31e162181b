package iperf2

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Server serves iperf 2 clients: it receives TCP and UDP, and sends TCP to clients with -R. All connections of a host
// at the same time are one test. It never opens a connection to a client, and never sends more UDP than it received,
// because the address of a UDP client may be forged. The zero value works.
type Server struct {
	// MaxTests limits the hosts that test at the same time, separately for TCP and UDP; 0: 64. Hosts are IPv4
	// addresses or IPv6 /64.
	MaxTests int
	// MaxStreams limits the TCP connections, and separately the UDP flows, of all tests; 0: 512. One host gets half of
	// them, and at least 128 if MaxStreams allows.
	MaxStreams int
	// MaxTime is the longest connection or flow; 0: 1 h. It is ended then.
	MaxTime time.Duration
	// MaxBps and MaxBytes limit each connection or flow, in bit/s and payload bytes; 0: unlimited. One that
	// exceeds a limit is ended.
	MaxBps   float64
	MaxBytes int64
	// HeaderTimeout is the longest time until a TCP client's first bytes; 0: 10 s.
	HeaderTimeout time.Duration
	// IdleTimeout is the longest time without data; 0: 20 s over TCP, 3 s over UDP.
	IdleTimeout time.Duration
	// Turn, if not nil, requests the turn for each test, as iperf3.Server's.
	Turn func(declared time.Duration, end func()) (release func(), ok bool)
	// TrackConcurrent, if not nil, is called with a unique name when a transfer begins. over returns the concurrent
	// ones or nil.
	TrackConcurrent func(test string) (over func() *transfer.ConcurrentTests)
	// Report, if not nil, is called for each finished connection and flow, from several goroutines.
	Report func(Report)

	once     sync.Once // sets up the tables below
	pending  admission.Table
	tcp, udp hosts
}

// Report is the server's report about one connection or flow. This server is the near end.
type Report struct {
	From      netip.AddrPort
	TCP       *transfer.Result         // nil: UDP, or the transfer did not begin
	Datagrams *transfer.DatagramResult // nil: TCP, or the transfer did not begin
	Err       error
}

// Errors of a Report.
var (
	ErrBusy        = errors.New("turned away: the server is busy")
	ErrConnectBack = errors.New("only the client's sending was measured: -d and -r need a connection from this server " +
		"to the client, which it does not open; use -R")
	ErrBounceback = errors.New("--bounceback is not served")
	errEvicted    = errors.New("ended: it made room for another client")
	errTurnOver   = errors.New("ended: its turn is over, another client waits")
	errTimeLimit  = errors.New("ended: the longest time of a test here is over")
)

func (s *Server) initTables() {
	tests := int64(cmp.Or(s.MaxTests, 64))
	streams := cmp.Or(s.MaxStreams, 512)
	for _, h := range []*hosts{&s.tcp, &s.udp} {
		h.table.Limits.Total[admission.Slots] = tests
		h.maxStreams = streams
		h.turn = s.Turn
	}
	s.pending.Limits.Total[admission.Slots] = int64(socket.BoundByFiles(admission.MaxPending))
}

func (s *Server) maxTime() time.Duration { return cmp.Or(s.MaxTime, time.Hour) }
func (s *Server) limits() probe.Limits   { return probe.Limits{Bps: s.MaxBps, Bytes: s.MaxBytes} }

// Serve serves TCP clients of l and, if udp is not nil, UDP clients until ctx ends. It closes both and returns when
// all clients have left.
func (s *Server) Serve(ctx context.Context, l *net.TCPListener, udp *net.UDPConn) {
	s.once.Do(s.initTables)
	var serving sync.WaitGroup
	defer serving.Wait()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if udp != nil {
		serving.Go(func() { s.serveDatagrams(ctx, udp) })
	}
	for {
		conn, err := l.AcceptTCP()
		switch {
		case err == nil:
			serving.Go(func() { s.handle(ctx, conn) })
		case ctx.Err() != nil, errors.Is(err, net.ErrClosed):
			return
		default: // no descriptors left, or the client has left
			select {
			case <-time.After(50 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// handle serves one TCP connection.
func (s *Server) handle(ctx context.Context, conn *net.TCPConn) {
	defer conn.Close()
	socket.EndWhenGone(conn, 0)
	from := socket.AddrPort(conn.RemoteAddr())
	head, err := s.readHeader(ctx, conn, from)
	if err == io.EOF {
		return // a connection without a byte is no test
	}
	report := Report{From: from, Err: err}
	if err == nil {
		report.TCP, report.Err = s.transfer(ctx, conn, from, head)
	}
	if report.TCP == nil {
		conn.SetLinger(0) // the client sees an error
	}
	if s.Report != nil && ctx.Err() == nil {
		s.Report(report)
	}
}

// readHeader reads a connection's first bytes.
func (s *Server) readHeader(ctx context.Context, conn *net.TCPConn, from netip.AddrPort) (head []byte, err error) {
	defer s.pending.Pending(conn, admission.Host(from.Addr()), time.Now())()
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
	conn.SetReadDeadline(time.Now().Add(cmp.Or(s.HeaderTimeout, 10*time.Second)))
	defer conn.SetReadDeadline(time.Time{})
	var flags [flagsSize]byte
	n, err := io.ReadFull(conn, flags[:])
	if err != nil {
		return flags[:n], ended(err)
	}
	head = make([]byte, headerSize(flags))
	copy(head, flags[:])
	n, err = io.ReadFull(conn, head[flagsSize:])
	return head[:flagsSize+n], ended(err)
}

// ended turns the end of a connection within its header into the end of a transfer of a few bytes.
func ended(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// transfer moves one connection's payload. head are its first bytes, which count as payload.
func (s *Server) transfer(ctx context.Context, conn *net.TCPConn, from netip.AddrPort, head []byte) (*transfer.Result,
	error) {
	var h header
	if len(head) >= flagsSize {
		h = parseHeader(head)
	}
	if h.bounceback {
		return nil, ErrBounceback
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	leave, err := s.tcp.join(admission.Host(from.Addr()), h.time, end)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeoutCause(ctx, s.maxTime(), errTimeLimit)
	defer cancel()
	r := &transfer.Result{Started: time.Now(), Spec: transfer.Spec{Direction: transfer.Down, Streams: 1}}
	if h.reverse {
		r.Spec.Direction = transfer.Up
		r.Spec.Time = min(h.time, s.maxTime())
		r.Spec.Bytes = h.bytes
		r.Spec.Program.WriteBps = s.MaxBps
		head = nil
	}
	stream, err := socket.NewStream(conn, bulk.Options(h.reverse, transfer.Socket{}))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	over := func() *transfer.ConcurrentTests { return nil }
	if s.TrackConcurrent != nil {
		over = s.TrackConcurrent("iperf2 " + admission.Host(from.Addr()).String())
	}
	bytes := int64(len(head))
	endpoint := bulk.Endpoint{Send: h.reverse, Spec: r.Spec, Streams: []*socket.Stream{stream}, Stall: s.IdleTimeout,
		Each: func(i transfer.Interval) {
			bytes += i.Bytes
			if err := s.limits().Excess(bytes, time.Since(r.Started)); err != nil {
				end(fmt.Errorf("ended: %w", err))
			}
		}}
	r.Near, err = endpoint.Run(ctx)
	if r.Near != nil {
		r.Near.ConcurrentTests = over()
		if h.reverse {
			r.Near.TimeByAcknowledgements()
		}
		r.Near.Streams[0].Bytes += int64(len(head))
	}
	r.Complete = err == nil
	if err == nil && h.connect {
		err = ErrConnectBack
	}
	return r, err
}
