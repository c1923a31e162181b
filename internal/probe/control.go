package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// control is the client's end of a control connection.
type control struct {
	conn   net.Conn
	times  Times
	remote string // the address it is connected to, where data connections go too
	hello  Hello
	// version is the highest that both ends speak.
	version int
	clock   transfer.Clock // the server's, if hello tells its time

	// stale is how many answers to echoes are still to come that nobody waits for. Only
	// the transfer under way touches it.
	stale int

	mu  sync.Mutex // guards err
	err error      // why it can no longer be used
}

// controlMSS is what every path carries (RFC 9293 section 3.7.1), in both directions of a
// control connection: it still works where an MTU black hole is to be found.
const controlMSS = 536

func openControl(ctx context.Context, f Far) (*control, error) {
	dialing, cancel := context.WithTimeout(ctx, f.Times.Answer)
	defer cancel()
	tcp, err := socket.Dial(dialing, f.Address, socket.Options{Route: f.Route, Socket: transfer.Socket{MSS: controlMSS}})
	if errors.Is(err, socket.ErrNotSupported) {
		tcp, err = socket.Dial(dialing, f.Address, socket.Options{Route: f.Route})
	}
	var c *control
	if err == nil {
		c, err = greet(ctx, f, tcp)
	}
	if err == nil {
		return c, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	err = plain(err, f.Times.Answer)
	return nil, &Error{Address: f.Address, Err: err, Hint: hint(err)}
}

// greet makes a control connection of a connection to a server: both ends prove the key, and the server says hello.
// It closes the connection on an error.
func greet(ctx context.Context, f Far, conn net.Conn) (*control, error) {
	conn.SetDeadline(time.Now().Add(f.Times.Answer))
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	answered := &answeredConn{Conn: conn}
	_, err := conn.Write(Marker[:])
	var secured *tls.Conn
	if err == nil {
		secured, err = secureClient(ctx, answered, f.Key)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	c := &control{conn: secured, times: f.Times, remote: conn.RemoteAddr().String()}
	if err := c.awaitHello(ctx, f, answered); err != nil {
		secured.Close()
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	return c, nil
}

// awaitHello reads the server's hello and waits for the client's turn.
func (c *control) awaitHello(ctx context.Context, f Far, answered *answeredConn) error {
	m, err := readMessage(c.conn, mostAnswer)
	read := time.Now()
	if err == nil {
		err = m.decode(kindHello, &c.hello)
	}
	if err == nil {
		err = c.hello.check()
	}
	if err != nil {
		return err
	}
	theirs := c.hello.versions()
	var ok bool
	if c.version, ok = speaks.with(theirs); !ok {
		return &versionError{theirs, c.hello.Software}
	}
	c.clock = clockOf(&c.hello, answered.wrote, read)
	return c.awaitTurn(ctx, f)
}

// clockOf is how the server's clock stands to ours: it was read after we wrote our proof,
// without which there is no hello, and before hello came. wrote and read carry the
// monotonic clock, so that ours may be set in between.
func clockOf(h *Hello, wrote, read time.Time) transfer.Clock {
	half := read.Sub(wrote) / 2
	return transfer.Clock{Offset: time.Duration(h.TimeNs - wrote.UnixNano() - int64(half)), Bound: half}
}

func (c *control) send(k kind, body any) error {
	c.conn.SetWriteDeadline(time.Now().Add(c.times.Answer))
	return writeMessage(c.conn, k, body)
}

// next reads one message within the time and the context.
func (c *control) next(ctx context.Context, within time.Duration) (message, error) {
	c.conn.SetReadDeadline(time.Now().Add(within))
	defer context.AfterFunc(ctx, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		m, err := readMessage(c.conn, mostResult)
		switch {
		case err != nil:
			return m, plain(err, within)
		case m.kind == kindEcho && c.stale > 0:
			c.stale--
		default:
			return m, nil
		}
	}
}

// farEnd is how a transfer ended at the far end, or why that is not known.
type farEnd struct {
	result result
	err    error
}

// Bounds on how often a far end may say something during a transfer. An honest one does
// so five times a second and for each of our echoes, of which there are ten a second at
// most.
const (
	mostAtOnce    = 100 // messages
	mostPerSecond = 50
	// tellEvery is how far apart intervals are passed on; those between are added up.
	tellEvery = 50 * time.Millisecond
)

// await reads until the far end's result; each sees the progress it reports of what it
// receives, and echoes, when not nil, the answers to its questions. A server shows every
// second that it lives.
func (c *control) await(spec transfer.Spec, each func(transfer.Interval), echoes *echoes) farEnd {
	begun := time.Now()
	receiving := spec.Direction == transfer.Up
	progress := progressTold{each: each}
	for said := 0; ; said++ {
		m, err := c.next(context.Background(), c.times.Stall)
		if err != nil {
			return farEnd{err: fmt.Errorf("control connection: %w", err)}
		}
		wall := time.Since(begun)
		if m.kind == kindResult {
			progress.flush()
			var f farEnd
			f.result, f.err = m.decodeResult(spec, wall)
			return f
		}
		if float64(said) > mostAtOnce+mostPerSecond*wall.Seconds() {
			return farEnd{err: errFlood}
		}
		if m.kind == kindEcho && echoes != nil {
			if err := echoes.answered(m); err != nil {
				return farEnd{err: err}
			}
			continue
		}
		var p progressMessage
		if err := m.decode(kindProgress, &p); err != nil {
			return farEnd{err: err}
		}
		if !receiving || each == nil || p.Interval == nil {
			continue
		}
		if err := p.Interval.Believe(wall); err != nil {
			return farEnd{err: err}
		}
		progress.add(*p.Interval, wall)
	}
}

var errFlood = errors.New("the far end floods its control connection")

// progressTold passes a far end's intervals on, no closer together than tellEvery.
type progressTold struct {
	each    func(transfer.Interval)
	untold  transfer.Interval
	pending bool
	told    time.Duration // when, on this end's clock
}

func (p *progressTold) add(i transfer.Interval, now time.Duration) {
	if p.pending {
		i.Start = p.untold.Start
		i.Bytes = i.Bytes + p.untold.Bytes
	}
	p.untold = i
	p.pending = true
	if p.told == 0 || now-p.told >= tellEvery {
		p.told = now
		p.flush()
	}
}

func (p *progressTold) flush() {
	if p.pending {
		p.pending = false
		p.each(p.untold)
	}
}

func (c *control) broken() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil
}

func (c *control) close(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = why
		c.conn.Close()
	}
}

// answeredConn takes the server's one-byte answer to Marker off the front, so that the
// TLS handshake need not wait for it.
type answeredConn struct {
	net.Conn
	answered bool
	wrote    time.Time // when the last write began
}

func (a *answeredConn) Write(b []byte) (int, error) {
	a.wrote = time.Now()
	return a.Conn.Write(b)
}

func (a *answeredConn) Read(b []byte) (int, error) {
	if !a.answered {
		if err := readAnswer(a.Conn); err != nil {
			return 0, err
		}
		a.answered = true
	}
	return a.Conn.Read(b)
}

// Identify asks what listens at an address without a key: "a fullpipe server", or the
// error that names something else.
func Identify(ctx context.Context, address string, by socket.Route) (string, error) {
	within := DefaultTimes().Answer
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tcp, err := socket.Dial(ctx, address, socket.Options{Route: by})
	if err == nil {
		defer tcp.Close()
		defer context.AfterFunc(ctx, func() { tcp.SetDeadline(time.Unix(1, 0)) })()
		tcp.Write(Marker[:])
		err = readAnswer(tcp)
	}
	if err != nil {
		err = plain(err, within)
		return "", &Error{Address: address, Err: err, Hint: hint(err)}
	}
	return "a fullpipe server", nil
}

// readAnswer reads the server's first byte.
func readAnswer(conn net.Conn) error {
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil {
		return err
	}
	if first[0] != AnswerFullpipe {
		return readStranger(conn, first[0])
	}
	return nil
}
