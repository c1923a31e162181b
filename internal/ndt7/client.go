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

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// client is one test of a Peer.
type client struct {
	spec    transfer.Spec
	options socket.Options
	conn    *Conn
	ws      *websocket.Conn
	each    func(transfer.Interval)

	started     time.Time
	stream      transfer.Stream
	share       float64 // message payload among the written bytes
	bytes       int64   // message payload: received, or written to the kernel
	opening     int64   // of a download: the first read, which arrived before the clock started
	first, last time.Duration
	reported    []transfer.Sample // by the far kernel
	counted     AppInfo           // the far program's last count
	texts       int               // sent by the server
	warnings    []string
}

// Timeouts of a server: its silence at the start of a test, and a test's overtime.
const (
	firstMessageTimeout = 5 * time.Second
	overtime            = hardEnd - longest
)

var (
	errSilent              = fmt.Errorf("the ndt7 server accepted the test but sent nothing for %v", firstMessageTimeout)
	errNoEnd               = errors.New("the ndt7 server stopped sending before the test's time was over")
	errTooManyMeasurements = errors.New("the ndt7 server sent too many measurements")
	errTextTooLong         = errors.New("the ndt7 server sent a text that exceeds a measurement")
)

// brokenError reports a connection that ended against WebSocket's rules.
type brokenError struct{ err error }

func (e *brokenError) Error() string {
	var errno syscall.Errno
	if errors.As(e.err, &errno) {
		return "the connection to the ndt7 server broke: " + errno.Error()
	}
	text := e.err.Error()
	for _, step := range []string{"failed to get reader: ", "failed to write msg: ", "failed to read: ",
		"failed to write frame: ", "failed to read frame header: ", "failed to read frame payload: "} {
		text = strings.TrimPrefix(text, step) // the library's part of the message
	}
	return "the ndt7 server violated the WebSocket protocol: " + text
}

func (e *brokenError) Unwrap() error { return e.err }

// close closes the connection in any state.
func (c *client) close() {
	if c.ws != nil {
		c.ws.CloseNow()
	}
	c.conn.Close()
}

// run moves data until the time, the bytes or the server end it.
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
		each = limitUnsent(c.conn) // later tests must not send this test's remaining data
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

// isDone reports whether the requested bytes have moved.
func (c *client) isDone(at time.Duration) bool {
	return at-c.first >= c.length() || c.spec.Bytes > 0 && c.bytes >= c.spec.Bytes
}

// minInterval is the shortest interval between reports.
const minInterval = 100 * time.Millisecond

func (c *client) download(ctx context.Context, giveUp context.CancelCauseFunc) error {
	silence := time.AfterFunc(firstMessageTimeout, func() { giveUp(errSilent) })
	defer func() { silence.Stop() }()
	buffer := make([]byte, 128<<10)
	var at, shown time.Duration // end of the last reported interval
	var reportedUntil int64
	report := func(least time.Duration) {
		if c.each == nil || at-shown < least || c.bytes <= reportedUntil {
			return
		}
		c.each(transfer.Interval{Start: shown - c.first, End: at - c.first, Bytes: c.bytes - reportedUntil})
		shown = at
		reportedUntil = c.bytes
	}
	defer func() { report(0) }()
	for {
		kind, message, err := c.ws.Reader(ctx)
		if isClosed(err) {
			c.warnIfEndedEarly()
			return nil
		}
		if err != nil {
			return &brokenError{err}
		}
		if kind == websocket.MessageText {
			if err := c.readMeasurement(message); err != nil {
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
			report(minInterval)
			return c.bytes > 0 && c.isDone(at)
		})
		switch {
		case over:
			return nil
		case err != nil:
			return &brokenError{err}
		}
	}
}

// readMeasurement reads one measurement of the server. Other text is ignored: the specification allows it.
func (c *client) readMeasurement(message io.Reader) error {
	c.texts++
	if c.texts > maxTexts {
		return errTooManyMeasurements
	}
	text, err := io.ReadAll(io.LimitReader(message, maxText+1))
	if err != nil {
		return &brokenError{err}
	}
	if len(text) > maxText {
		return errTextTooLong
	}
	m, err := decode(text)
	if err != nil {
		return nil
	}
	if i := m.TCPInfo; i != nil {
		s := i.sample()
		if n := len(c.reported); n == 0 || s.At > c.reported[n-1].At {
			c.reported = append(c.reported, s)
		}
		if len(c.reported) >= bulk.MaxSamples {
			c.reported = transfer.Downsample(c.reported, bulk.MaxSamples/2)
		}
	}
	if a := m.AppInfo; a != nil && c.spec.Direction == transfer.Up && c.isPlausible(a) {
		if c.each != nil {
			c.each(transfer.Interval{Start: time.Duration(c.counted.ElapsedTime) * time.Microsecond,
				End: time.Duration(a.ElapsedTime) * time.Microsecond, Bytes: a.NumBytes - c.counted.NumBytes})
		}
		c.counted = *a
	}
	return nil
}

// isPlausible reports whether the server's counts are possible: at most the sent bytes, by a monotonic clock that
// started with the test, and no flood of messages.
func (c *client) isPlausible(a *AppInfo) bool {
	const slack = time.Second // the server's clock, which started a little earlier
	// A write in progress is not counted yet.
	return a.ElapsedTime >= c.counted.ElapsedTime+minInterval.Microseconds() &&
		a.ElapsedTime <= (time.Since(c.started)+slack).Microseconds() &&
		a.NumBytes >= c.counted.NumBytes && a.NumBytes <= c.conn.written()+largestSize
}

// upload sends until the end and reads the server's measurements.
func (c *client) upload(ctx context.Context) error {
	heard := make(chan error, 1)
	go func() {
		for {
			kind, message, err := c.ws.Reader(ctx)
			switch {
			case err != nil && !isClosed(err):
				err = &brokenError{err}
			case err == nil && kind == websocket.MessageBinary:
				err = errors.New("the ndt7 server sends a load in an upload")
			case err == nil:
				err = c.readMeasurement(message)
			}
			if err != nil {
				heard <- err
				c.ws.CloseNow() // later writes are discarded
				return
			}
		}
	}()
	// A blocked write lasts until the connection ends; then the time is up too.
	end := time.AfterFunc(c.length(), func() { c.ws.CloseNow() })
	defer end.Stop()
	var messages sizes
	var err error
	for err == nil && !c.isDone(time.Since(c.started)) {
		n := messages.next()
		if c.spec.Bytes > 0 {
			n = int(min(int64(n), max(c.spec.Bytes-c.bytes, 1<<10)))
		}
		err = c.ws.Write(ctx, websocket.MessageBinary, payload()[:n])
		if err == nil {
			c.bytes += int64(n)
			c.share = c.conn.payloadShare(c.bytes)
		}
	}
	c.last = min(time.Since(c.started), c.length())
	if c.spec.Bytes > 0 && err == nil {
		c.awaitAcknowledged(ctx)
	}
	c.ws.CloseNow()
	said := <-heard
	switch {
	case c.isDone(time.Since(c.started)) || isClosed(said):
		return nil
	case errors.Is(err, net.ErrClosed): // the reader ended the test
		return said
	case err != nil:
		return &brokenError{err}
	}
	return said
}

// warnIfEndedEarly adds a warning if the server ended a download well before the requested time.
func (c *client) warnIfEndedEarly() {
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

// awaitAcknowledged waits until all data is acknowledged.
func (c *client) awaitAcknowledged(ctx context.Context) {
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

// result returns the measurement, nil if nothing moved.
func (c *client) result(complete bool) *transfer.Result {
	if c.bytes == 0 || c.started.IsZero() {
		return nil
	}
	r := &transfer.Result{Spec: c.spec, Started: c.started, Complete: complete, Warnings: c.warnings}
	c.stream.First = c.first
	c.stream.Last = c.last
	c.stream.Bytes = c.bytes
	c.stream.FirstReadBytes = c.opening
	r.Near = &transfer.End{Kernel: socket.Kernel(), Streams: []transfer.Stream{c.stream}}
	if c.spec.Direction == transfer.Up {
		acknowledged(&r.Near.Streams[0], c.share)
		return r
	}
	if len(c.reported) == 0 {
		r.Warnings = append(r.Warnings, "this ndt7 server sends no TCP_INFO")
		return r
	}
	far := transfer.Stream{Samples: c.reported, Last: c.reported[len(c.reported)-1].At}
	far.Local, far.Remote = reversed(c.stream)
	far.Bytes = c.reported[len(c.reported)-1].Acked
	r.Far = &transfer.End{Streams: []transfer.Stream{far}}
	if err := r.Far.Validate(c.spec, time.Since(c.started)); err != nil {
		r.Far = nil
		r.Warnings = append(r.Warnings, err.Error())
	}
	return r
}
