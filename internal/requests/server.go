package requests

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Server is the end that responds.
type Server struct {
	Spec transfer.Spec
	// Streams have the numbers of the near end's streams, which follow their preface.
	Streams []Stream
	// Arriving are the connections of NewConnections, after their preface.
	Arriving <-chan *net.TCPConn
	// Bytes bounds the payload of both directions; 0: no bound.
	Bytes int64
	// Each, if not nil, is called with the payload of both directions, 200 ms apart.
	Each func(transfer.Interval)
}

// Stream is a connection and its number at the near end.
type Stream struct {
	*socket.Stream
	Number uint16
}

// ErrBytes ends a test that would exceed Server.Bytes.
var ErrBytes = errors.New("as many bytes as this test may move here")

// longThinking is the time of the server's program from which a response is reported.
const longThinking = time.Millisecond

// Run responds until the client has closed all streams, or until ctx ends. It returns what it saw, and the payload of
// both directions.
func (s Server) Run(ctx context.Context) (*transfer.Responses, int64, error) {
	// The client waits for responses until its time and grace are over.
	ctx, cancel := context.WithTimeoutCause(ctx, s.Spec.Time+2*grace, errors.New("the client did not end the test"))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &responder{spec: s.Spec.Requests, budget: s.Bytes, end: end}
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { report(done, s.Each, time.Now(), &a.bytes) })
	var err error
	if s.Spec.Requests.NewConnections {
		a.serveConnections(ctx, s.Arriving, 4*max(s.Spec.Streams, 1)+16)
		err = context.Cause(ctx)
	} else {
		err = a.serveStreams(ctx, s.Streams)
	}
	close(done)
	reporting.Wait()
	a.seen.Requests = a.requests.Load()
	return &a.seen, a.bytes.Load(), err
}

// responder is what the connections of a test share.
type responder struct {
	spec     transfer.Requests
	budget   int64
	end      context.CancelCauseFunc
	bytes    atomic.Int64
	requests atomic.Int64

	mu     sync.Mutex // guards the fields below
	seen   transfer.Responses
	active map[net.Conn]bool
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
	if x.Retransmitted <= 0 && x.Thinking < longThinking {
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
	if now.Bytes >= 0 && now.Bytes == max(before.Bytes, 0) { // a SYN-ACK
		x.Retransmitted = 0
	}
	if now.RTOs >= 0 {
		x.Timeouts = now.RTOs - max(before.RTOs, 0)
	}
	return x
}

func (a *responder) serveStreams(ctx context.Context, streams []Stream) error {
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		for _, s := range streams {
			s.Interrupt()
		}
	})
	errs := make([]error, len(streams))
	var serving sync.WaitGroup
	for i := range streams {
		a.seen.Connections++
		serving.Go(func() { errs[i] = a.serveStream(streams[i]) })
	}
	serving.Wait()
	if !stop() {
		<-interrupted
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(errs...)
}

// serveStream responds to the requests of one stream on a thread of its own.
func (a *responder) serveStream(s Stream) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	seen := s.Repairs()
	var wroteAt, lookedAt, thinking time.Duration
	start := time.Now()
	for number := uint32(0); ; number++ {
		if err := a.readRequest(s.Stream); err != nil {
			if number > 0 {
				a.note(exchange(s.Number, number, seen, s.Repairs()))
			}
			if errors.Is(err, io.EOF) || errors.Is(err, socket.ErrInterrupted) {
				return nil
			}
			return err
		}
		readAt := time.Since(start)
		if number > 0 && (readAt-wroteAt >= lookEvery || readAt-lookedAt >= lookEvery || thinking >= longThinking) {
			now := s.Repairs()
			x := exchange(s.Number, number, seen, now)
			x.Thinking = thinking
			a.note(x)
			seen = now
			lookedAt = readAt
		}
		if !a.spend() {
			return nil
		}
		if err := writeAll(s.Stream, a.spec.ResponseBytes); err != nil {
			return err
		}
		wroteAt = time.Since(start)
		thinking = wroteAt - readAt
	}
}

func (a *responder) readRequest(s *socket.Stream) error {
	for n := a.spec.RequestBytes; n > 0; {
		if err := s.WaitRead(time.Hour); err != nil { // Run's time ends it
			return err
		}
		read, err := s.Read(n)
		if err != nil {
			return err
		}
		n -= read
	}
	return nil
}

func writeAll(s *socket.Stream, n int) error {
	for n > 0 {
		wrote, err := s.Write(n)
		if err != nil {
			return err
		}
		n -= wrote
		if n > 0 {
			if err := s.WaitWrite(time.Hour); err != nil {
				return err
			}
		}
	}
	return nil
}

// serveConnections responds to one request of each connection until ctx ends.
func (a *responder) serveConnections(ctx context.Context, arriving <-chan *net.TCPConn, most int) {
	a.active = map[net.Conn]bool{}
	var serving sync.WaitGroup
	defer serving.Wait()
	defer context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for conn := range a.active {
			conn.SetDeadline(time.Unix(1, 0))
		}
	})()
	slots := make(chan struct{}, most)
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		select {
		case conn := <-arriving:
			serving.Go(func() {
				a.serveConnection(ctx, conn)
				<-slots
			})
		case <-ctx.Done():
			return
		}
	}
}

var buffers = sync.Pool{New: func() any { return new([maxOpening]byte) }}

// serveConnection reads a number and a request, responds, and closes its side first: the client, which opens many
// connections, then needs no TIME_WAIT.
func (a *responder) serveConnection(ctx context.Context, conn *net.TCPConn) error {
	defer conn.Close()
	a.mu.Lock()
	a.active[conn] = true
	if ctx.Err() != nil {
		conn.SetDeadline(time.Unix(1, 0))
	}
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.active, conn)
		a.mu.Unlock()
	}()
	b := buffers.Get().(*[maxOpening]byte)
	defer buffers.Put(b)
	stream, number, err := readOpening(conn, b[:], a.spec.RequestBytes)
	if err != nil {
		return err
	}
	if !a.spend() {
		return nil
	}
	readAt := time.Now()
	for left := a.spec.ResponseBytes; left > 0; {
		n, err := conn.Write(randomBytes()[:min(left, maxOpening)])
		if err != nil {
			return err
		}
		left -= n
	}
	wroteAt := time.Now()
	err = conn.CloseWrite()
	if err == nil {
		_, err = conn.Read(b[:])
	}
	a.mu.Lock()
	a.seen.Connections++
	a.mu.Unlock()
	thinking := wroteAt.Sub(readAt)
	if thinking >= longThinking || time.Since(wroteAt) >= lookEvery {
		x := exchange(stream, number, socket.Repairs{}, socket.RepairsOf(conn))
		x.Thinking = thinking
		a.note(x)
	}
	return err
}

// readOpening reads the numbers of a connection's stream and turn, and its request.
func readOpening(conn net.Conn, b []byte, request int) (stream uint16, number uint32, err error) {
	n, err := io.ReadAtLeast(conn, b, NumberSize)
	if err != nil {
		return 0, 0, err
	}
	stream = binary.BigEndian.Uint16(b)
	number = binary.BigEndian.Uint32(b[2:])
	for left := request + NumberSize - n; left > 0; left -= n {
		n, err = conn.Read(b[:min(left, len(b))])
		if err != nil {
			return 0, 0, err
		}
	}
	return stream, number, nil
}

// ReadNumber reads the number of a stream after its preface.
func ReadNumber(conn net.Conn, within time.Duration) (uint16, error) {
	conn.SetReadDeadline(time.Now().Add(within))
	defer conn.SetReadDeadline(time.Time{})
	var b [NumberSize]byte
	if _, err := io.ReadFull(conn, b[:]); err != nil {
		return 0, fmt.Errorf("the number of a connection: %w", err)
	}
	return binary.BigEndian.Uint16(b[:]), nil
}

// randomBytes is payload that nothing on the way compresses.
var randomBytes = sync.OnceValue(func() []byte {
	var seed [32]byte
	for i := range seed {
		seed[i] = byte(rand.Uint32())
	}
	b := make([]byte, maxOpening)
	rand.NewChaCha8(seed).Read(b)
	return b
})
