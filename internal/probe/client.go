// Package probe implements the native protocol of two fullpipes (docs/protocol.md). Package bulk moves the data; the
// timeouts are in times.go.
//
// Flow of a transfer (client: run.go, server: session.go):
//
// 1. The client opens a control connection and sends Marker; the server replies with one byte.
// 2. Both ends do a TLS handshake and prove the key, the server first.
// 3. The server sends Hello. A busy one sends the client's place until its turn.
// 4. The client may send echoes for idle latency, then an offer with its Spec.
// 5. The server replies with a token for each data connection.
// 6. The client opens the data connections and sends each token.
// 7. Data moves. The server sends progress, the client echoes or Stop.
// 8. The server sends its result. The client may offer the next transfer.
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
	control *control   // nil: connect first
	closed  bool
}

// Far is the server of a Client.
type Far struct {
	Address string // HOST:PORT
	Key     Key
	// Route is the route of all connections to the server.
	Route socket.Route
	// TestID identifies, in the records of both ends, transfers whose Spec has no TestID. "": none.
	TestID string
	// OnQueued, if not nil, receives the client's place in the queue of an exclusive server; 1 is next. nil: do
	// not wait.
	OnQueued func(place int)
	// Cautious sends nothing but Marker before the server has replied to it as a fullpipe server, for an address that
	// somebody else chose. It takes a round trip more.
	Cautious bool
	Timeouts Timeouts
}

// Connect opens a control connection to the server at HOST:PORT and proves the key.
func Connect(ctx context.Context, address string, key Key) (*Client, error) {
	return Far{Address: address, Key: key}.Connect(ctx)
}

// Connect opens a control connection and proves the key.
func (f Far) Connect(ctx context.Context) (*Client, error) {
	f.Timeouts = f.Timeouts.withDefaults()
	c := &Client{Far: f}
	ctl, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	c.hello = ctl.hello
	c.clock = ctl.clock
	return c, nil
}

// Clock returns the offset of the server's clock at connection time. ok is false if the server does not send its
// time.
func (c *Client) Clock() (clock transfer.Clock, ok bool) { return c.clock, c.hello.TimeNs != 0 }

// Hello returns the server's hello.
func (c *Client) Hello() Hello { return c.hello }

// Check implements transfer.Peer. The native protocol carries TCP only.
func (c *Client) Check(t transfer.Test) error {
	tcp, udp, err := t.Specs()
	if len(udp) > 0 {
		err = &transfer.Unsupported{Field: transfer.FieldUDP, Reason: "the native protocol carries TCP only"}
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
	c.running.Lock() // Close returns after a running transfer has ended
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

// run runs one transfer. onIdleKnown, if not nil, is called when the idle path is measured.
func (c *Client) run(ctx context.Context, spec transfer.Spec, each func(transfer.Interval),
	begin func()) (*transfer.Result, error) {
	each = transfer.WithDirection(spec.Direction, each)
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
	r := run{ctl: ctl, route: c.Route, onIdleKnown: begin, spec: spec, onInterval: each,
		result: &transfer.Result{Spec: spec, Started: time.Now().UTC()}}
	if spec.Latency && !ctl.hello.Echo {
		err = r.transferWithICMP(ctx)
	} else {
		err = r.transfer(ctx)
	}
	if err != nil && !r.farDone {
		ctl.close(err) // later messages belong to this transfer, so reconnect
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	} else if err != nil {
		err = &Error{Address: c.Address, Err: err, Hint: hint(Simplify(err, c.Timeouts.Answer))}
	}
	if r.result.Near == nil && r.result.Far == nil {
		return nil, err
	}
	r.result.Complete = err == nil
	return r.result, err
}

// Grant asks the server to admit an iperf3 test. It returns the server's address and the cookie, which is valid
// until the next Grant or Close.
func (c *Client) Grant(ctx context.Context) (cookie Preface, address string, err error) {
	c.running.Lock()
	defer c.running.Unlock()
	ctl, err := c.connect(ctx)
	if err != nil {
		return cookie, "", err
	}
	var a accept
	err = ctl.send(kindGrant, struct{}{})
	if err == nil {
		var m message
		m, err = ctl.readNext(ctx, c.Timeouts.Answer)
		if err == nil {
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
	return cookie, "", &Error{Address: c.Address, Err: err, Hint: hint(Simplify(err, c.Timeouts.Answer))}
}
