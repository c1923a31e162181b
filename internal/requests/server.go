package requests

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Server is the end that responds.
type Server struct {
	Spec    transfer.Spec
	Options socket.Options // of its connections
	// Arriving are the client's connections, after their preface.
	Arriving <-chan *net.TCPConn
	// Bytes bounds the payload of both directions; 0: no bound.
	Bytes int64
	// Each, if not nil, is called with the payload of both directions, 200 ms apart.
	Each func(transfer.Interval)
}

// ErrBytes ends a test that would exceed Server.Bytes.
var ErrBytes = errors.New("as many bytes as this test may move here")

// longThinking is the time of the server's program from which a response is reported.
const longThinking = time.Millisecond

// Run responds until ctx ends. The End has what it saw; Moved is the payload of both directions.
func (s Server) Run(ctx context.Context) (*transfer.End, error) {
	// The client waits for responses until its time and grace are over.
	ctx, cancel := context.WithTimeoutCause(ctx, s.Spec.Time+2*grace, errors.New("the client did not end the test"))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &responder{spec: s.Spec.Requests, options: s.Options, budget: s.Bytes, end: end}
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { report(done, s.Each, time.Now(), &a.bytes) })
	a.serve(ctx, s.Arriving, 4*max(s.Spec.Streams, 1)+16)
	close(done)
	reporting.Wait()
	a.seen.Requests = a.requests.Load()
	return &transfer.End{Kernel: socket.Kernel(), Streams: a.described, Responses: &a.seen, Moved: a.bytes.Load()},
		context.Cause(ctx)
}

// responder is what the connections of a test share.
type responder struct {
	spec     transfer.Requests
	options  socket.Options
	budget   int64
	end      context.CancelCauseFunc
	bytes    atomic.Int64
	requests atomic.Int64

	mu        sync.Mutex // guards the fields below
	seen      transfer.Responses
	described []transfer.Stream // the first connection
	active    map[net.Conn]bool
}

// spend counts one request and its response. It returns false, and ends the test, where the budget does not
// have them.
func (a *responder) spend() bool {
	n := a.bytes.Add(int64(a.spec.RequestBytes + a.spec.ResponseBytes))
	if a.budget > 0 && n > a.budget {
		a.end(ErrBytes)
		return false
	}
	a.requests.Add(1)
	return true
}

// note keeps an exchange that says something.
func (a *responder) note(x transfer.Exchange) {
	if x.Retransmitted <= 0 && x.SYNACKs <= 0 && x.Thinking < longThinking {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.seen.Exchanges) < transfer.MaxExchanges {
		a.seen.Exchanges = append(a.seen.Exchanges, x)
	} else {
		a.seen.LeftOut++
	}
}

// exchange returns the increase of a connection's counters.
func exchange(stream uint16, number uint32, before, now socket.Repairs) transfer.Exchange {
	x := transfer.Exchange{Stream: stream, Number: number, Timeouts: -1,
		Retransmitted: now.Retransmitted - before.Retransmitted}
	if now.Bytes >= 0 && now.Bytes == max(before.Bytes, 0) { // no payload
		x.SYNACKs = x.Retransmitted
		x.Retransmitted = 0
	}
	if now.RTOs >= 0 {
		x.Timeouts = now.RTOs - max(before.RTOs, 0)
	}
	return x
}

// serve responds on each connection until ctx ends.
func (a *responder) serve(ctx context.Context, arriving <-chan *net.TCPConn, atOnce int) {
	a.active = map[net.Conn]bool{}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer a.interrupt()
	slots := make(chan struct{}, atOnce)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case conn := <-arriving:
			serving.Go(func() {
				if a.begin(ctx, conn) {
					a.respond(conn)
				}
				a.forget(conn)
				<-slots
			})
		case <-ctx.Done():
			return
		}
	}
}

// interrupt ends the reads and writes of all connections. Those that begin later see the end of ctx.
func (a *responder) interrupt() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for conn := range a.active {
		conn.SetDeadline(time.Unix(1, 0))
	}
}

// begin prepares a connection. It returns false where the connection cannot be used.
func (a *responder) begin(ctx context.Context, conn *net.TCPConn) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active[conn] = true
	a.seen.Connections++
	if ctx.Err() != nil || socket.Adopt(conn, a.options) != nil {
		return false
	}
	if a.described == nil {
		if s, err := socket.Watch(conn, a.options); err == nil {
			a.described = []transfer.Stream{s.Describe()}
			s.Close()
		}
	}
	return true
}

func (a *responder) forget(conn *net.TCPConn) {
	conn.Close()
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.active, conn)
}

var buffers = sync.Pool{New: func() any { return new([maxPiece]byte) }}

// respond reads the numbers of a connection and responds to its requests: to one with NewConnections. It then closes
// its side first: the client, which opens many connections, needs no TIME_WAIT.
func (a *responder) respond(conn *net.TCPConn) {
	b := buffers.Get().(*[maxPiece]byte)
	defer buffers.Put(b)
	n, err := io.ReadAtLeast(conn, b[:min(numberSize+a.spec.RequestBytes, len(b))], numberSize)
	if err != nil {
		return
	}
	stream := binary.BigEndian.Uint16(b[:])
	number := binary.BigEndian.Uint32(b[2:])
	left := a.spec.RequestBytes - (n - numberSize)
	var seen socket.Repairs
	var wroteAt, lookedAt, thinking time.Duration
	start := time.Now()
	for count := 0; ; count++ {
		err := read(conn, left, b[:])
		left = a.spec.RequestBytes
		readAt := time.Since(start)
		if count > 0 && (err != nil || thinking >= longThinking || readAt-wroteAt >= lookEvery ||
			readAt-lookedAt >= lookEvery) {
			now := socket.RepairsOf(conn)
			x := exchange(stream, number, seen, now)
			x.Thinking = thinking
			a.note(x)
			seen = now
			lookedAt = readAt
		}
		if err != nil || count > 0 && a.spec.NewConnections || !a.spend() {
			return
		}
		if count > 0 {
			number++
		}
		if err := write(conn, a.spec.ResponseBytes); err != nil {
			return
		}
		wroteAt = time.Since(start)
		thinking = wroteAt - readAt
		if a.spec.NewConnections {
			conn.CloseWrite()
		}
	}
}
