package probe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// control is the client's end of a control connection.
type control struct {
	conn     net.Conn
	timeouts Timeouts
	remote   string // remote address, also for data connections
	hello    Hello
	// version is the highest common version.
	version int
	clock   transfer.Clock // the server's, if its hello has the time

	// staleEchoes is the number of expected echo replies to skip. Only the running transfer uses it.
	staleEchoes int

	mu  sync.Mutex // guards err
	err error      // why the connection is unusable
}

// controlMSS is supported by every path (RFC 9293 section 3.7.1), so the control connection works across an MTU
// black hole.
const controlMSS = 536

func openControl(ctx context.Context, f Far) (*control, error) {
	dialing, cancel := context.WithTimeout(ctx, f.Timeouts.Answer)
	defer cancel()
	tcp, err := socket.Dial(dialing, f.Address, socket.Options{Route: f.Route, Socket: transfer.Socket{MSS: controlMSS}})
	if errors.Is(err, socket.ErrNotSupported) {
		tcp, err = socket.Dial(dialing, f.Address, socket.Options{Route: f.Route})
	}
	var c *control
	if err == nil {
		c, err = handshake(ctx, f, tcp)
	}
	if err == nil {
		return c, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	err = Simplify(err, f.Timeouts.Answer)
	return nil, &Error{Address: f.Address, Err: err, Hint: hint(err)}
}

// handshake turns a connection to a server into a control connection: both ends prove the key, and the server
// sends its hello. It closes the connection on error.
func handshake(ctx context.Context, f Far, conn net.Conn) (*control, error) {
	conn.SetDeadline(time.Now().Add(f.Timeouts.Answer))
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	answered := &markerConn{Conn: conn}
	_, err := conn.Write(Marker[:])
	if err == nil && f.Cautious {
		err = answered.awaitReply()
	}
	var secured *tls.Conn
	if err == nil {
		secured, err = secureClient(ctx, answered, f.Key)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	c := &control{conn: secured, timeouts: f.Timeouts, remote: conn.RemoteAddr().String()}
	if err := c.awaitHello(ctx, f, answered); err != nil {
		secured.Close()
		return nil, err
	}
	conn.SetDeadline(time.Time{})
	return c, nil
}

// awaitHello reads the server's hello and waits for the client's turn.
func (c *control) awaitHello(ctx context.Context, f Far, answered *markerConn) error {
	m, err := readMessage(c.conn, maxAnswer)
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
	if text := c.hello.NotFrom; text != "" {
		from, err := netip.ParseAddr(text)
		if err != nil {
			return errors.New("the far end refuses an address that is none")
		}
		return &AddressError{from.WithZone("")}
	}
	theirs := c.hello.versions()
	var ok bool
	c.version, ok = supportedVersions.common(theirs)
	if !ok {
		return &versionError{theirs, c.hello.Software}
	}
	c.clock = clockFrom(&c.hello, answered.wroteAt, read)
	return c.awaitTurn(ctx, f)
}

// clockFrom returns the offset of the server's clock. The server read it after we sent our proof and before its
// hello arrived. wroteAt and readAt have monotonic clocks, so our clock may be set meanwhile.
func clockFrom(h *Hello, wrote, read time.Time) transfer.Clock {
	half := read.Sub(wrote) / 2
	return transfer.Clock{Offset: time.Duration(h.TimeNs - wrote.UnixNano() - int64(half)), MaxError: half}
}

func (c *control) send(k kind, body any) error {
	c.conn.SetWriteDeadline(time.Now().Add(c.timeouts.Answer))
	return writeMessage(c.conn, k, body)
}

// readNext reads one message within the timeout.
func (c *control) readNext(ctx context.Context, within time.Duration) (message, error) {
	c.conn.SetReadDeadline(time.Now().Add(within))
	defer context.AfterFunc(ctx, func() { c.conn.SetReadDeadline(time.Unix(1, 0)) })()
	for {
		m, err := readMessage(c.conn, maxResult)
		switch {
		case err != nil:
			return m, Simplify(err, within)
		case m.kind == kindEcho && c.staleEchoes > 0:
			c.staleEchoes--
		default:
			return m, nil
		}
	}
}

// farOutcome is the far end's result, or the error that prevented it.
type farOutcome struct {
	result result
	err    error
}

// Limits on the other end's messages: the server's during a transfer, the client's in a session. Honest ends send five
// per second and ten echoes.
const (
	maxBurstMessages     = 100 // messages
	maxMessagesPerSecond = 50
	// progressInterval is the minimum time between reported intervals. Shorter ones are merged.
	progressInterval = 50 * time.Millisecond
)

// readUntilResult reads messages until the far end's result. onInterval receives its progress, and echoes, if not
// nil, the echo replies. Servers send at least one message each second.
func (c *control) readUntilResult(spec transfer.Spec, each func(transfer.Interval), echoes *echoProbe) farOutcome {
	startedAt := time.Now()
	receiving := spec.Direction == transfer.Up
	progress := progressMerger{onInterval: each}
	for said := 0; ; said++ {
		m, err := c.readNext(context.Background(), c.timeouts.Stall)
		if err != nil {
			return farOutcome{err: fmt.Errorf("control connection: %w", err)}
		}
		wall := time.Since(startedAt)
		if m.kind == kindResult {
			progress.flush()
			var f farOutcome
			f.result, f.err = m.decodeResult(spec, wall)
			return f
		}
		if float64(said) > maxBurstMessages+maxMessagesPerSecond*wall.Seconds() {
			return farOutcome{err: errFlood}
		}
		if m.kind == kindEcho && echoes != nil {
			if err := echoes.receive(m); err != nil {
				return farOutcome{err: err}
			}
			continue
		}
		var p progressMessage
		if err := m.decode(kindProgress, &p); err != nil {
			return farOutcome{err: err}
		}
		if !receiving || each == nil || p.Interval == nil {
			continue
		}
		if err := p.Interval.Validate(wall); err != nil {
			return farOutcome{err: err}
		}
		progress.add(*p.Interval, wall)
	}
}

var errFlood = errors.New("the other end floods its control connection")

// progressMerger merges a far end's intervals that are shorter than progressInterval.
type progressMerger struct {
	onInterval func(transfer.Interval)
	pending    transfer.Interval
	hasPending bool
	reportedAt time.Duration // by this end's clock
}

func (p *progressMerger) add(i transfer.Interval, now time.Duration) {
	if p.hasPending {
		i.Start = p.pending.Start
		i.Bytes = i.Bytes + p.pending.Bytes
	}
	p.pending = i
	p.hasPending = true
	if p.reportedAt == 0 || now-p.reportedAt >= progressInterval {
		p.reportedAt = now
		p.flush()
	}
}

func (p *progressMerger) flush() {
	if p.hasPending {
		p.hasPending = false
		p.onInterval(p.pending)
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

// markerConn removes the server's one-byte reply to Marker, so that the TLS handshake does not wait for it.
type markerConn struct {
	net.Conn
	replyRead bool
	wroteAt   time.Time // start of the last write
}

func (a *markerConn) Write(b []byte) (int, error) {
	a.wroteAt = time.Now()
	return a.Conn.Write(b)
}

func (a *markerConn) Read(b []byte) (int, error) {
	if err := a.awaitReply(); err != nil {
		return 0, err
	}
	return a.Conn.Read(b)
}

// awaitReply reads the server's reply to Marker, once.
func (a *markerConn) awaitReply() error {
	if a.replyRead {
		return nil
	}
	err := readMarkerReply(a.Conn)
	a.replyRead = err == nil
	return err
}

// Identify returns "a fullpipe server", or an error that names another kind of server. It needs no key.
func Identify(ctx context.Context, address string, by socket.Route) (string, error) {
	within := DefaultTimeouts().Answer
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tcp, err := socket.Dial(ctx, address, socket.Options{Route: by})
	if err == nil {
		defer tcp.Close()
		defer context.AfterFunc(ctx, func() { tcp.SetDeadline(time.Unix(1, 0)) })()
		tcp.Write(Marker[:])
		err = readMarkerReply(tcp)
	}
	if err != nil {
		err = Simplify(err, within)
		return "", &Error{Address: address, Err: err, Hint: hint(err)}
	}
	return "a fullpipe server", nil
}

// readMarkerReply reads the server's first byte.
func readMarkerReply(conn net.Conn) error {
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil {
		return err
	}
	if first[0] != AnswerFullpipe {
		return readOtherServer(conn, first[0])
	}
	return nil
}
