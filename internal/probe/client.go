// Package probe measures a transfer between two fullpipes: the protocol they speak
// (docs/protocol.md). What each end then does with its connections is engine's.
package probe

import (
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Client measures with one fullpipe server. It implements transfer.Peer.
type Client struct {
	Far
	hello Hello
	clock transfer.Clock

	running sync.Mutex // one transfer at a time
	mu      sync.Mutex // guards control and closed
	control *control   // nil: connect again
	closed  bool
}

// Far is a server to measure with.
type Far struct {
	Address string // HOST:PORT
	Key     Key
	// Route is the way that all connections to it take.
	Route socket.Route
	// TestID names in both ends' records the transfers whose Spec names none; "" is none.
	TestID string
	// Waiting, when not nil, is told the place at which a server that takes one client at a
	// time lets this one wait, 1 being the next; nil does not wait.
	Waiting func(place int)
	Times   Times
}

// Connect opens and proves a control connection to the server at HOST:PORT.
func Connect(ctx context.Context, address string, key Key) (*Client, error) {
	return Far{Address: address, Key: key}.Connect(ctx)
}

// Connect opens and proves a control connection.
func (f Far) Connect(ctx context.Context) (*Client, error) {
	f.Times = f.Times.complete()
	c := &Client{Far: f}
	ctl, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.hello = ctl.hello
	c.clock = ctl.clock
	return c, nil
}

// Clock says how the server's clock stood to this host's when the client connected; false:
// the server does not tell its time.
func (c *Client) Clock() (clock transfer.Clock, ok bool) { return c.clock, c.hello.TimeNs != 0 }

// Hello is what the server told of itself.
func (c *Client) Hello() Hello { return c.hello }

// Check implements transfer.Peer. The native protocol carries TCP only.
func (c *Client) Check(t transfer.Test) error {
	tcp, udp, err := t.Specs()
	if len(udp) > 0 {
		err = &transfer.Unsupported{Field: transfer.FieldUDP, Why: "the native protocol carries TCP only"}
	}
	for _, spec := range tcp {
		if err == nil {
			err = c.hello.Check(spec)
		}
	}
	return err
}

// Close implements transfer.Peer.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	if c.control != nil {
		c.control.close(net.ErrClosed)
	}
	c.mu.Unlock()
	c.running.Lock() // a running transfer has ended when Close returns
	defer c.running.Unlock()
	return nil
}

func (c *Client) connect(ctx context.Context) (*control, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	if c.control != nil && !c.control.broken() {
		return c.control, nil
	}
	ctl, err := openControl(ctx, c.Far)
	if err != nil {
		return nil, err
	}
	c.control = ctl
	return ctl, nil
}

// Run implements transfer.Peer.
func (c *Client) Run(ctx context.Context, t transfer.Test, each func(transfer.Interval)) ([]transfer.Outcome, error) {
	if err := c.Check(t); err != nil {
		return nil, err
	}
	if len(t.Legs) == 2 {
		return c.runBoth(ctx, *t.Legs[0].TCP, *t.Legs[1].TCP, each)
	}
	r, err := c.run(ctx, *t.Legs[0].TCP, each, nil)
	return []transfer.Outcome{{TCP: r}}, err
}

// run carries out one transfer; begin, when not nil, is called when the path will no
// longer be idle.
func (c *Client) run(ctx context.Context, spec transfer.Spec, each func(transfer.Interval),
	begin func()) (*transfer.Result, error) {
	each = transfer.Toward(spec.Direction, each)
	spec.TestID = cmp.Or(spec.TestID, c.TestID)
	c.running.Lock()
	defer c.running.Unlock()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	ctl, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	r := run{ctl: ctl, route: c.Route, begin: begin, spec: spec, each: each,
		result: &transfer.Result{Spec: spec, Started: time.Now().UTC()}}
	if spec.Latency && !ctl.hello.Echo {
		err = r.besideICMP(ctx)
	} else {
		err = r.transfer(ctx)
	}
	if err != nil && !r.answered {
		ctl.close(err) // whatever it still says belongs to this transfer: begin anew
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	} else if err != nil {
		err = &Error{Address: c.Address, Err: err, Hint: hint(plain(err, c.Times.Answer))}
	}
	if r.result.Near == nil && r.result.Far == nil {
		return nil, err
	}
	r.result.Complete = err == nil
	return r.result, err
}

// Grant asks the server to admit an iperf3 test: the cookie that opens it, good until
// the next one or Close, and the server's address.
func (c *Client) Grant(ctx context.Context) (cookie Preface, address string, err error) {
	c.running.Lock()
	defer c.running.Unlock()
	ctl, err := c.connect(ctx)
	if err != nil {
		return cookie, "", err
	}
	var a accept
	if err = ctl.send(kindGrant, struct{}{}); err == nil {
		var m message
		if m, err = ctl.next(ctx, c.Times.Answer); err == nil {
			err = m.decode(kindAccept, &a)
		}
	}
	switch {
	case err != nil:
		ctl.close(err)
	case a.Error != "":
		err = errors.New("the far end: " + a.Error)
	case len(a.Tokens) != 1 || len(a.Tokens[0]) != PrefaceSize:
		err = errors.New("the far end granted nothing")
	default:
		return Preface([]byte(a.Tokens[0])), ctl.remote, nil
	}
	return cookie, "", &Error{Address: c.Address, Err: err, Hint: hint(plain(err, c.Times.Answer))}
}
