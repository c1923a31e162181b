// Package requests is one end of a load of requests over TCP: the client that times them, and the server that
// responds. Protocols open the first connections and start both ends.
//
// Flow at the client:
//
//  1. Client.Run starts a worker with a thread of its own for each stream.
//  2. worker.run sends a request, reads the response, and records the turn (recorder.go) until the time is over.
//  3. With NewConnections each turn begins with a connection of its own (Stream.Redial).
//  4. The recorders are merged; Load.With (merge.go) adds what the far end reported.
//
// A turn allocates nothing.
package requests

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Client is the end that sends requests.
type Client struct {
	Spec    transfer.Spec
	Streams []*socket.Stream
	// To is the server's address and Prefaces begin each further connection of a stream, with NewConnections.
	To       netip.AddrPort
	Prefaces [][]byte
	// Each, if not nil, is called with the payload of both directions, 200 ms apart.
	Each func(transfer.Interval)
}

const (
	// grace is how long a response may take after the test's time. Cut off, the slowest would be left out.
	grace = 3 * time.Second
	// connectTimeout is Linux's with three retransmitted SYNs.
	connectTimeout = 15 * time.Second
	// maxFailures is the number of connections in a row that fail before a test ends.
	maxFailures  = 10
	failurePause = 50 * time.Millisecond
)

var errSilent = errors.New("no response")

// Run sends requests for the Spec's time and returns the turns, with an error those until then.
func (c Client) Run(ctx context.Context) (*Taken, error) {
	shared := &shared{start: time.Now(), spec: c.Spec.Requests, end: c.Spec.Time}
	workers := make([]*worker, len(c.Streams))
	for i, s := range c.Streams {
		workers[i] = newWorker(shared, &c, i, s)
	}
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		for _, w := range workers {
			w.stream.Interrupt()
		}
	})
	defer func() {
		if !stop() { // it has begun: the streams may be closed when it is done
			<-interrupted
		}
	}()
	var working sync.WaitGroup
	for _, w := range workers {
		working.Go(w.run)
	}
	done := make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() { report(done, c.Each, shared.start, &shared.bytes) })
	working.Wait()
	elapsed := min(time.Since(shared.start), c.Spec.Time)
	close(done)
	reporting.Wait()
	taken := collect(workers, elapsed)
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
	due   atomic.Int64 // requests that were taken, of an open load
	bytes atomic.Int64 // payload of both directions
}

func (s *shared) now() time.Duration { return time.Since(s.start) }

// worker sends the requests of one stream.
type worker struct {
	*shared
	stream   *socket.Stream
	to       netip.AddrPort
	preface  []byte // of each connection; its last four bytes are the turn's number
	opening  []byte // preface and the beginning of a request
	recorder recorder
	err      error
}

// NumberSize is the length of the number that follows the preface of each connection: of the stream, or with
// NewConnections of the turn, big-endian.
const NumberSize = 6

// AppendNumber appends the number of a stream's turn; turn is 0 where the connection stays.
func AppendNumber(b []byte, stream int, turn uint32) []byte {
	b = binary.BigEndian.AppendUint16(b, uint16(stream))
	return binary.BigEndian.AppendUint32(b, turn)
}

// maxOpening is the part of a request that is written together with the preface.
const maxOpening = 16 << 10

func newWorker(s *shared, c *Client, i int, stream *socket.Stream) *worker {
	w := &worker{shared: s, stream: stream, to: c.To, recorder: newRecorder(i, len(c.Streams))}
	w.recorder.seen = stream.Repairs()
	if s.spec.NewConnections {
		w.preface = AppendNumber(append([]byte(nil), c.Prefaces[i]...), i, 0)
		w.opening = make([]byte, len(w.preface)+min(s.spec.RequestBytes, maxOpening))
		copy(w.opening, w.preface)
		copy(w.opening[len(w.preface):], randomBytes())
	}
	return w
}

// run sends requests on a thread of its own.
func (w *worker) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	failures := 0
	for {
		due, ok := w.next()
		if !ok {
			return
		}
		err := w.turn(due)
		switch {
		case err == nil:
			failures = 0
			continue
		case errors.Is(err, socket.ErrInterrupted):
			w.recorder.unanswered++
			return
		case errors.Is(err, errSilent):
			w.recorder.unanswered++
			if w.now() > w.end {
				return
			}
		default:
			w.recorder.failed++
		}
		failures++
		if !w.spec.NewConnections || failures >= maxFailures {
			w.err = fmt.Errorf("request %d of connection %d: %w", w.recorder.number, w.recorder.stream+1, err)
			return
		}
		if w.stream.Sleep(failurePause) != nil {
			return
		}
	}
}

// next waits until the next request is due and returns the time from which its duration counts. ok is false at the end
// of the test.
func (w *worker) next() (due time.Duration, ok bool) {
	now := w.now()
	if w.spec.PerSecond == 0 {
		return now, now < w.end
	}
	due = time.Duration(float64(w.due.Add(1)-1) / w.spec.PerSecond * float64(time.Second))
	if due >= w.end || now >= w.end {
		return 0, false
	}
	if due <= now { // it waited for a free stream
		return due, true
	}
	for now < due {
		if w.stream.Sleep(due-now) != nil {
			return 0, false
		}
		now = w.now()
	}
	return now, true // a late timer of this host is no part of the turn
}

// turn sends one request and reads its response.
func (w *worker) turn(due time.Duration) error {
	r := &w.recorder
	r.number++
	began := w.now()
	var connect time.Duration
	request := w.spec.RequestBytes
	if w.spec.NewConnections {
		if err := w.stream.Redial(w.to, connectTimeout); err != nil {
			return err
		}
		r.connections++
		connect = w.now() - began
		r.connected(w.stream, connect)
		binary.BigEndian.PutUint32(w.opening[len(w.preface)-4:], r.number)
		if err := w.send(w.opening); err != nil {
			return err
		}
		request -= len(w.opening) - len(w.preface)
	}
	if err := w.write(request); err != nil {
		return err
	}
	if err := w.read(w.spec.ResponseBytes); err != nil {
		return err
	}
	end := w.now()
	r.record(w.stream, due, end-due, began-due, connect)
	w.bytes.Add(int64(w.spec.RequestBytes + w.spec.ResponseBytes))
	if w.spec.NewConnections { // the server closes first, so that its end keeps TIME_WAIT
		if err := w.read(math.MaxInt); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	return nil
}

// deadline returns how long the worker may wait now.
func (w *worker) deadline() time.Duration { return w.end + grace - w.now() }

func (w *worker) send(b []byte) error {
	for {
		n, err := w.stream.Send(b)
		if err != nil {
			return err
		}
		b = b[n:]
		if len(b) == 0 {
			return nil
		}
		if err := w.wait(w.stream.WaitWrite); err != nil {
			return err
		}
	}
}

func (w *worker) write(n int) error {
	for n > 0 {
		wrote, err := w.stream.Write(n)
		if err != nil {
			return err
		}
		n -= wrote
		if n == 0 {
			return nil
		}
		if err := w.wait(w.stream.WaitWrite); err != nil {
			return err
		}
	}
	return nil
}

// read drops n bytes of the response.
func (w *worker) read(n int) error {
	for n > 0 {
		if err := w.wait(w.stream.WaitRead); err != nil {
			return err
		}
		read, err := w.stream.Read(n)
		if err != nil {
			return err
		}
		n -= read
	}
	return nil
}

func (w *worker) wait(for_ func(time.Duration) error) error {
	left := w.deadline()
	if left <= 0 {
		return errSilent
	}
	return for_(left)
}
