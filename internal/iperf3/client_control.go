package iperf3

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// open sends the parameters and opens the streams one by one, because the server numbers them in the order in
// which it accepts them.
func open(ctx context.Context, c *control, cookie Cookie, wire Params, o socket.Options) (conns []*net.TCPConn,
	err error) {
	defer func() {
		if err != nil {
			closeAll(conns)
			conns = nil
		}
	}()
	err = c.requestStreams(ctx, wire)
	if err != nil {
		return
	}
	n := wire.Streams
	if wire.Both {
		n *= 2
	}
	for len(conns) < n {
		conn, err := dial(ctx, c.conn.RemoteAddr().String(), o)
		if err != nil {
			return conns, fmt.Errorf("stream %d: %w", len(conns)+1, err)
		}
		conns = append(conns, conn)
		if o.LocalPort > 0 {
			o.LocalPort++
		}
		_, err = conn.Write(cookie[:])
		if err != nil {
			return conns, fmt.Errorf("stream %d: %w", len(conns), err)
		}
	}
	return conns, c.awaitStart(ctx, wire)
}

// requestStreams sends the parameters and waits for CREATE_STREAMS.
func (c *control) requestStreams(ctx context.Context, wire Params) error {
	if err := c.sendFrame(ctx, wire, "the parameters"); err != nil {
		return err
	}
	_, err := c.expect(ctx, answerTimeout, CreateStreams)
	return err
}

// awaitStart waits for TEST_START and TEST_RUNNING.
func (c *control) awaitStart(ctx context.Context, wire Params) error {
	if _, err := c.expect(ctx, answerTimeout, TestStart); err != nil {
		if wire.Both {
			err = fmt.Errorf("both directions at once need iperf3 3.7 or newer: %w", err)
		}
		return err
	}
	_, err := c.expect(ctx, answerTimeout, TestRunning)
	return err
}

func closeAll(conns []*net.TCPConn) {
	for _, c := range conns {
		c.Close()
	}
}

// runMonitored calls run and reads the control connection meanwhile. The server sends nothing on it unless the
// test failed.
func (c *control) runMonitored(ctx context.Context, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		if _, err := c.expect(ctx, 366*24*time.Hour, 0); ctx.Err() == nil {
			cancel(err)
		}
	}()
	err := run(ctx)
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	cancel(nil)
	<-heard
	c.conn.SetDeadline(time.Time{})
	return err
}

// finishTest exchanges results with the server and returns the server's. The test lasted at most wall.
func (c *control) finishTest(ctx context.Context, mine Results, wall time.Duration) (far Results, err error) {
	err = c.send(ctx, TestEnd)
	if err != nil {
		return
	}
	_, err = c.expect(ctx, resultTimeout, ExchangeResults)
	if err != nil {
		return
	}
	err = c.sendFrame(ctx, mine, "the results")
	if err != nil {
		return
	}
	text, err := c.readFrame(ctx, resultTimeout, MaxServerResults, "the far end's results")
	if err != nil {
		return
	}
	far, err = ParseResults(text)
	if err != nil {
		return far, fmt.Errorf("the far end's results: %w", err)
	}
	err = far.validate(len(mine.Streams), wall)
	if err != nil {
		return
	}
	_, err = c.expect(ctx, resultTimeout, DisplayResults)
	if err != nil {
		return
	}
	return far, c.send(ctx, Done)
}

// hangUp sends CLIENT_TERMINATE and does not wait for an answer.
func (c *control) hangUp() {
	c.conn.SetDeadline(time.Now().Add(goodbyeTime))
	WriteState(c.conn, ClientTerminate)
}
