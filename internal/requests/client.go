// Package requests is one end of a load of requests over TCP: the client that times them, and the server that
// responds.
//
// Flow at the client:
//
//  1. Client.Run opens a connection for each stream and starts a worker for it.
//  2. worker.run sends a request, reads the response, and records the turn (recorder.go) until the time is over.
//  3. With NewConnections, or after a connection ended, the next turn begins with a connection of its own.
//  4. The recorders are merged; Load.With (merge.go) adds what the far end reported.
//
// A turn over an open connection (native.go) allocates nothing.
package requests

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Client is the end that sends requests.
type Client struct {
	Spec transfer.Spec
	// Dial opens a connection of a stream.
	Dial func(ctx context.Context, stream int) (Conn, error)
	// Each, if not nil, is called with the payload of both directions, 200 ms apart.
	Each func(transfer.Interval)
}

// Conn is a connection that carries one request at a time.
type Conn interface {
	// Exchange sends a request and reads its response to the end. It returns the response's bytes, and whether the
	// connection ends with them. The error wraps ErrIdle where a connection that was used before had ended, and is a
	// *Final where no further request makes sense.
	Exchange(number uint32) (response int64, last bool, err error)
	TCP() *net.TCPConn
	Parts() Parts
	// Close waits until the far end has closed first, where it does.
	Close() error
}

// Parts are times of a connection and of its last exchange.
type Parts struct {
	TLS       time.Duration // of the handshake above TCP
	TLSRounds int           // its round trips
	FirstByte time.Duration // from the request until the response's first byte; 0: the server reports its time
}

// ErrIdle reports a connection that ended before the request.
var ErrIdle = errors.New("the server had closed the idle connection")

// Final is an error that ends a test at once.
type Final struct{ Err error }

func (f *Final) Error() string { return f.Err.Error() }
func (f *Final) Unwrap() error { return f.Err }

const (
	// grace is how long a response may take after the test's time. Cut off, the slowest would be left out.
	grace = 3 * time.Second
	// connectTimeout is Linux's with three retransmitted SYNs.
	connectTimeout = 15 * time.Second
	// maxFailures is the number of connections in a row that fail before a test ends.
	maxFailures  = 10
	failurePause = 50 * time.Millisecond
)

// Run sends requests for the Spec's time and returns the turns, with an error those until then.
func (c Client) Run(ctx context.Context) (*Taken, error) {
	workers := make([]*worker, max(c.Spec.Streams, 1))
	errs := make([]error, len(workers))
	var working sync.WaitGroup
	shared := &shared{spec: c.Spec.Requests, end: c.Spec.Time, dial: c.Dial}
	for i := range workers {
		workers[i] = &worker{shared: shared, recorder: newRecorder(i, len(workers))}
		working.Go(func() { errs[i] = workers[i].open(ctx) })
	}
	working.Wait()
	shared.start = time.Now()
	var described []transfer.Stream
	defer func() {
		for _, w := range workers {
			w.close()
		}
	}()
	for i, w := range workers {
		if errs[i] != nil {
			return collect(workers, 0), errs[i]
		}
		w.extend()
		s, err := socket.Watch(w.conn.TCP(), socket.Options{Socket: c.Spec.Near})
		if err != nil {
			return collect(workers, 0), err
		}
		described = append(described, s.Describe())
		s.Close()
	}
	defer context.AfterFunc(ctx, func() {
		for _, w := range workers {
			w.interrupt()
		}
	})()
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { report(done, c.Each, shared.start, &shared.bytes) })
	for _, w := range workers {
		working.Go(func() { w.run(ctx) })
	}
	working.Wait()
	elapsed := min(time.Since(shared.start), c.Spec.Time)
	close(done)
	reporting.Wait()
	taken := collect(workers, elapsed)
	taken.Streams = described
	if per := c.Spec.Requests.PerSecond; per > 0 {
		taken.NotStarted = max(int64(per*elapsed.Seconds())-taken.Exchanges.Count-taken.Exchanges.Unanswered-taken.Failed, 0)
	}
	if ctx.Err() != nil {
		return taken, context.Cause(ctx)
	}
	for _, w := range workers {
		if w.err != nil {
			return taken, w.err
		}
	}
	return taken, nil
}

// report calls each with the bytes that were counted, until done is closed.
func report(done <-chan struct{}, each func(transfer.Interval), start time.Time, bytes *atomic.Int64) {
	if each == nil {
		return
	}
	const every = 200 * time.Millisecond
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	var last transfer.Interval
	var counted int64
	next := func() {
		now := bytes.Load()
		last = transfer.Interval{Start: last.End, End: time.Since(start), Bytes: now - counted}
		counted = now
		each(last)
	}
	for {
		select {
		case <-ticks.C:
			next()
		case <-done:
			next()
			return
		}
	}
}

// shared is what the workers of a test share.
type shared struct {
	start time.Time
	spec  transfer.Requests
	end   time.Duration
	dial  func(ctx context.Context, stream int) (Conn, error)
	due   atomic.Int64 // requests that were taken, of an open load
	bytes atomic.Int64 // payload of both directions
}

func (s *shared) now() time.Duration { return time.Since(s.start) }

// worker sends the requests of one stream.
type worker struct {
	*shared
	recorder recorder
	wokeAt   time.Duration // when the last request that no connection had to wait for was sent
	err      error

	mu          sync.Mutex // guards the fields below against interrupt
	conn        Conn       // nil: none is open
	interrupted bool
}

// open opens a connection.
func (w *worker) open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := w.dial(ctx, int(w.recorder.stream))
	if err != nil {
		return err
	}
	w.recorder.connections++
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = conn
	return nil
}

// extend sets the time until which the open connection may wait.
func (w *worker) extend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.interrupted {
		w.conn.TCP().SetDeadline(w.start.Add(w.end + grace))
	}
}

func (w *worker) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.interrupted = true
	if w.conn != nil {
		w.conn.TCP().SetDeadline(time.Unix(1, 0))
	}
}

func (w *worker) close() {
	if w.conn != nil {
		w.conn.Close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conn = nil
}

// run sends requests until the end of the test.
func (w *worker) run(ctx context.Context) {
	failures := 0
	for {
		due, began, ok := w.next(ctx)
		if !ok {
			return
		}
		err := w.turn(ctx, due, began)
		if err == nil {
			failures = 0
			continue
		}
		if ctx.Err() != nil || w.now() > w.end {
			w.recorder.unanswered++
			return
		}
		w.close()
		w.recorder.failed++
		failures++
		var final *Final
		if failures >= maxFailures || errors.As(err, &final) {
			w.err = fmt.Errorf("request %d of stream %d: %w", w.recorder.number, w.recorder.stream+1, err)
			return
		}
		if !sleep(ctx, failurePause) {
			return
		}
	}
}

// next waits until the next request is due. It returns the time from which its duration counts, and the time at which
// it begins: between them it waited for a free connection. ok is false at the end of the test.
func (w *worker) next(ctx context.Context) (due, began time.Duration, ok bool) {
	now := w.now()
	if w.spec.PerSecond == 0 {
		return now, now, now < w.end
	}
	due = time.Duration(float64(w.due.Add(1)-1) / w.spec.PerSecond * float64(time.Second))
	if due >= w.end || now >= w.end {
		return 0, 0, false
	}
	if due <= now { // it waited for a free stream, not for this host's timer
		return max(due, w.wokeAt), now, true
	}
	if !sleep(ctx, due-now) {
		return 0, 0, false
	}
	w.wokeAt = w.now()
	return w.wokeAt, w.wokeAt, true
}

// sleep returns false where ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// turn sends one request and reads its response.
func (w *worker) turn(ctx context.Context, due, began time.Duration) error {
	r := &w.recorder
	r.number++
	var connect time.Duration
	var response int64
	var last bool
	for {
		isNew := w.conn == nil
		if isNew {
			if err := w.open(ctx); err != nil {
				return err
			}
			w.extend()
			connect = w.now() - began
			r.connected(w.conn.TCP(), connect)
		}
		var err error
		response, last, err = w.conn.Exchange(r.number)
		if err == nil {
			break
		}
		if isNew || !errors.Is(err, ErrIdle) {
			return err
		}
		w.close()
	}
	end := w.now()
	r.record(w.conn, due, end-due, began-due, connect)
	r.responded += response
	w.bytes.Add(int64(w.spec.RequestBytes) + response)
	if last || w.spec.NewConnections {
		w.close()
	}
	return nil
}
