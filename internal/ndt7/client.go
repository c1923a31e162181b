package ndt7

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/engine"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// client is one test of a Peer's.
type client struct {
	spec    transfer.Spec
	options socket.Options
	conn    *Conn
	ws      *websocket.Conn
	each    func(transfer.Interval)

	started     time.Time
	stream      transfer.Stream
	share       float64 // of what was written that is payload of messages
	bytes       int64   // payload of messages: received, or handed over
	opening     int64   // of a download's: the first read's, which had arrived when the clock began
	first, last time.Duration
	told        []transfer.Sample // by the far kernel
	counted     AppInfo           // by the far program, the last
	texts       int               // that the server said
	warnings    []string
}

// What a server may do is bounded whatever it sends: so long it may say nothing when a test
// begins, and so long a test may go on beyond its time.
const (
	firstPatience = 5 * time.Second
	overtime      = hardEnd - longest
)

var (
	errNothing   = fmt.Errorf("the ndt7 server took the test, and nothing came for %v", firstPatience)
	errNoEnd     = errors.New("the ndt7 server stopped sending before the test's time was over")
	errTalks     = errors.New("the ndt7 server says more than a test has measurements")
	errLongWords = errors.New("the ndt7 server says more than a measurement holds")
)

// brokenError is a connection that did not go on as WebSocket settles.
type brokenError struct{ err error }

func (e *brokenError) Error() string {
	var errno syscall.Errno
	if errors.As(e.err, &errno) {
		return "the connection to the ndt7 server broke: " + errno.Error()
	}
	text := e.err.Error()
	for _, step := range []string{"failed to get reader: ", "failed to write msg: ", "failed to read: ",
		"failed to write frame: ", "failed to read frame header: ", "failed to read frame payload: "} {
		text = strings.TrimPrefix(text, step) // the library's, of its own way there
	}
	return "the ndt7 server does not keep to WebSocket: " + text
}

func (e *brokenError) Unwrap() error { return e.err }

// close leaves nothing open, whatever the connection had come to.
func (c *client) close() {
	if c.ws != nil {
		c.ws.CloseNow()
	}
	c.conn.Close()
}

// run moves the load until time, bytes or the server end it.
func (c *client) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := c.conn.begin(c.options); err != nil {
		return err
	}
	c.started = c.conn.clock
	up := c.spec.Direction == transfer.Up
	var each func(*transfer.Sample)
	if up && c.spec.Near.SendBuffer == 0 {
		each = keepShort(c.conn) // nothing of this test is left to be sent in the next one's time
	}
	account := follow(c.conn, up, each)
	var err error
	if up {
		err = c.upload(ctx)
	} else {
		err = c.download(ctx, cancel)
	}
	c.stream = account.finish()
	c.ws.CloseNow()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err == nil && c.bytes == 0 {
		err = errors.New("the ndt7 server ended the test before anything moved")
	}
	return err
}

// over says whether what was asked for has moved.
func (c *client) over(at time.Duration) bool {
	return at-c.first >= c.length() || c.spec.Bytes > 0 && c.bytes >= c.spec.Bytes
}

// intervalLeast is how often intervals are told at the most.
const intervalLeast = 100 * time.Millisecond

func (c *client) download(ctx context.Context, giveUp context.CancelCauseFunc) error {
	silence := time.AfterFunc(firstPatience, func() { giveUp(errNothing) })
	defer func() { silence.Stop() }()
	buffer := make([]byte, 128<<10)
	var at, shown time.Duration // shown: until when intervals were told
	var told int64
	tell := func(least time.Duration) {
		if c.each == nil || at-shown < least || c.bytes <= told {
			return
		}
		c.each(transfer.Interval{Start: shown - c.first, End: at - c.first, Bytes: c.bytes - told})
		shown = at
		told = c.bytes
	}
	defer func() { tell(0) }()
	for {
		kind, message, err := c.ws.Reader(ctx)
		if ended(err) {
			c.warnEarly()
			return nil
		}
		if err != nil {
			return &brokenError{err}
		}
		if kind == websocket.MessageText {
			if err := c.hear(message); err != nil {
				return err
			}
			continue
		}
		over, err := parts(message, buffer, func(n int) bool {
			at = time.Since(c.started)
			if n > 0 && c.bytes == 0 {
				c.first = at
				shown = at
				c.opening = int64(n)
				silence.Stop()
				silence = time.AfterFunc(c.length()+overtime, func() { giveUp(errNoEnd) })
			}
			c.bytes += int64(n)
			if n > 0 {
				c.last = at
			}
			tell(intervalLeast)
			return c.bytes > 0 && c.over(at)
		})
		switch {
		case over:
			return nil
		case err != nil:
			return &brokenError{err}
		}
	}
}

// hear takes one measurement of the server's. What is none is left out: the specification lets
// servers say anything.
func (c *client) hear(message io.Reader) error {
	c.texts++
	if c.texts > mostTexts {
		return errTalks
	}
	text, err := io.ReadAll(io.LimitReader(message, mostText+1))
	if err != nil {
		return &brokenError{err}
	}
	if len(text) > mostText {
		return errLongWords
	}
	m, err := decode(text)
	if err != nil {
		return nil
	}
	if i := m.TCPInfo; i != nil {
		s := i.sample()
		if n := len(c.told); n == 0 || s.At > c.told[n-1].At {
			c.told = append(c.told, s)
		}
		if len(c.told) >= engine.MaxSamples {
			c.told = transfer.Thin(c.told, engine.MaxSamples/2)
		}
	}
	if a := m.AppInfo; a != nil && c.spec.Direction == transfer.Up && c.credible(a) {
		if c.each != nil {
			c.each(transfer.Interval{Start: time.Duration(c.counted.ElapsedTime) * time.Microsecond,
				End: time.Duration(a.ElapsedTime) * time.Microsecond, Bytes: a.NumBytes - c.counted.NumBytes})
		}
		c.counted = *a
	}
	return nil
}

// credible says whether a server can have counted so: no more than was sent, on a clock that
// goes forward and began when the test did, and not so often that it floods who is told.
func (c *client) credible(a *AppInfo) bool {
	const slack = time.Second // of the server's clock, which began a little earlier
	// The write that is under way has not been counted yet.
	return a.ElapsedTime >= c.counted.ElapsedTime+intervalLeast.Microseconds() &&
		a.ElapsedTime <= (time.Since(c.started)+slack).Microseconds() &&
		a.NumBytes >= c.counted.NumBytes && a.NumBytes <= c.conn.written()+largestSize
}

// upload sends until the end, while what the server says is heard.
func (c *client) upload(ctx context.Context) error {
	heard := make(chan error, 1)
	go func() {
		for {
			kind, message, err := c.ws.Reader(ctx)
			switch {
			case err != nil && !ended(err):
				err = &brokenError{err}
			case err == nil && kind == websocket.MessageBinary:
				err = errors.New("the ndt7 server sends a load in an upload")
			case err == nil:
				err = c.hear(message)
			}
			if err != nil {
				heard <- err
				c.ws.CloseNow() // what is still written goes nowhere
				return
			}
		}
	}()
	// A write that waits does so until the connection ends: then the time is up, too.
	end := time.AfterFunc(c.length(), func() { c.ws.CloseNow() })
	defer end.Stop()
	var messages sizes
	var err error
	for err == nil && !c.over(time.Since(c.started)) {
		n := messages.next()
		if c.spec.Bytes > 0 {
			n = int(min(int64(n), max(c.spec.Bytes-c.bytes, 1<<10)))
		}
		if err = c.ws.Write(ctx, websocket.MessageBinary, payload()[:n]); err == nil {
			c.bytes += int64(n)
			c.share = c.conn.share(c.bytes)
		}
	}
	c.last = min(time.Since(c.started), c.length())
	if c.spec.Bytes > 0 && err == nil {
		c.drain(ctx)
	}
	c.ws.CloseNow()
	said := <-heard
	switch {
	case c.over(time.Since(c.started)) || ended(said):
		return nil
	case errors.Is(err, net.ErrClosed): // what was heard had ended it
		return said
	case err != nil:
		return &brokenError{err}
	}
	return said
}

// warnEarly tells that the server ended a download well before it was asked to.
func (c *client) warnEarly() {
	if got := c.last - c.first; c.spec.Bytes == 0 && got < c.length()*9/10 {
		c.warnings = append(c.warnings, "the ndt7 server ended the test after "+got.Round(100*time.Millisecond).String())
	}
}

func (c *client) length() time.Duration {
	if c.spec.Time == 0 {
		return longest
	}
	return c.spec.Time
}

// drain waits until all was acknowledged.
func (c *client) drain(ctx context.Context) {
	for ctx.Err() == nil && time.Since(c.started) < longest {
		s, ok := c.conn.sample(true)
		if !ok || s.Have&transfer.HaveQueue == 0 || s.Queued == 0 {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// result describes what moved; nil where nothing did.
func (c *client) result(complete bool) *transfer.Result {
	if c.bytes == 0 || c.started.IsZero() {
		return nil
	}
	r := &transfer.Result{Spec: c.spec, Started: c.started, Complete: complete, Warnings: c.warnings}
	c.stream.First = c.first
	c.stream.Last = c.last
	c.stream.Bytes = c.bytes
	c.stream.Opening = c.opening
	r.Near = &transfer.End{Kernel: socket.Kernel(), Streams: []transfer.Stream{c.stream}}
	if c.spec.Direction == transfer.Up {
		acknowledged(&r.Near.Streams[0], c.share)
		return r
	}
	if len(c.told) == 0 {
		r.Warnings = append(r.Warnings, "this ndt7 server says nothing of its kernel's account")
		return r
	}
	far := transfer.Stream{Samples: c.told, Last: c.told[len(c.told)-1].At}
	far.Local, far.Remote = reversed(c.stream)
	far.Bytes = c.told[len(c.told)-1].Acked
	r.Far = &transfer.End{Streams: []transfer.Stream{far}}
	if err := r.Far.Believe(c.spec, time.Since(c.started)); err != nil {
		r.Far = nil
		r.Warnings = append(r.Warnings, err.Error())
	}
	return r
}
