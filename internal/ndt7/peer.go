package ndt7

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// DefaultPort is the port of HTTPS.
const DefaultPort = 443

// dialTime limits TCP's, TLS's and WebSocket's handshakes together.
const dialTime = 10 * time.Second

// Peer is an ndt7 server. For downloads its kernel's counts become Result.Far. For uploads they are too sparse, so
// acknowledged bytes count.
type Peer struct {
	// Address is the server's HOST:PORT, Query the query of its URL, such as an access token.
	Address string
	Query   url.Values
	// TLS has additional roots; nil: the system's.
	TLS *tls.Config
	// Route is the route of all connections to the server.
	Route socket.Route
	// Agent is the User-Agent.
	Agent string
	// Note, if not nil, receives notes for the user.
	Note func(string)

	plain atomic.Bool // the server does not support TLS
	ctx   context.Context
	close context.CancelFunc
}

// NewPeer returns a Peer for the server at address. It connects when a transfer runs.
func NewPeer(address string) *Peer {
	p := &Peer{Address: address}
	p.ctx, p.close = context.WithCancel(context.Background())
	return p
}

// Close ends a running transfer.
func (p *Peer) Close() error { p.close(); return nil }

// Check returns *transfer.Unsupported for tests that the protocol does not support.
func (p *Peer) Check(t transfer.Test) error {
	spec, err := t.OneWay("ndt7 measures TCP", "ndt7 measures one direction at a time")
	if err != nil {
		return err
	}
	asked := spec.Program
	asked.ByReference = false // a permission, and the server's own matter
	no := func(field, why string) error { return &transfer.Unsupported{Field: field, Reason: why} }
	if err := spec.Validate(); err != nil {
		return err
	}
	switch {
	case spec.Time > longest:
		return no("Time", "an ndt7 test lasts 10 s at the most")
	case spec.Streams > 1:
		return no("Streams", "an ndt7 test is one connection")
	case spec.Far != (transfer.Socket{}):
		return no("Far", "an ndt7 server sets its own sockets")
	case asked != (transfer.Program{}):
		return no("Program", "ndt7 settles how messages are written and read")
	}
	return nil
}

// Run implements transfer.Peer.
func (p *Peer) Run(ctx context.Context, t transfer.Test, each func(transfer.Interval)) ([]transfer.Outcome, error) {
	if err := p.Check(t); err != nil {
		return nil, err
	}
	spec := *t.Legs[0].TCP
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errors.New("closed")) })()
	c, err := p.connect(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer func() { c.close() }()
	// A server sends payload right after the upgrade, so the path is idle only before.
	load := func() error {
		var err error
		c, err = p.ask(ctx, c)
		if err != nil {
			return err
		}
		c.each = transfer.WithDirection(spec.Direction, each)
		return c.run(ctx)
	}
	var latency *transfer.Latency
	why := ""
	if spec.Latency {
		to := c.conn.remote()
		latency, why, err = path.UnderLoad(ctx, to, path.Config{Route: p.Route, OnlyICMP: true}, load)
	} else {
		err = load()
	}
	if none := (*NoServer)(nil); errors.As(err, &none) {
		return nil, err
	}
	r := c.result(err == nil)
	if r != nil {
		r.Latency = latency
		if why != "" {
			r.Warnings = append(r.Warnings, why)
		}
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	return []transfer.Outcome{{TCP: r}}, err
}

// connect opens the connection of a test.
func (p *Peer) connect(ctx context.Context, spec transfer.Spec) (*client, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	c := &client{spec: spec, options: socket.Options{Socket: spec.Near, Route: p.Route}}
	tcp, err := socket.Dial(ctx, p.Address, c.options)
	if err != nil {
		return nil, &NoServer{p.Address, 0, err}
	}
	c.conn = &Conn{TCPConn: tcp}
	return c, nil
}

// ask requests the test on a connection. If the server does not support TLS, it retries without on a new
// connection. It returns the client of the used connection, also on error.
func (p *Peer) ask(ctx context.Context, c *client) (*client, error) {
	err := p.upgrade(ctx, c)
	var header tls.RecordHeaderError
	if !p.plain.Load() && (errors.As(err, &header) || errors.Is(err, http.ErrSchemeMismatch)) {
		p.plain.Store(true)
		if p.Note != nil {
			p.Note(p.Address + " does not support TLS: measuring without it")
		}
		c.close()
		again, err := p.connect(ctx, c.spec)
		if err != nil {
			return c, err
		}
		return again, p.upgrade(ctx, again)
	}
	return c, err
}

func (p *Peer) upgrade(ctx context.Context, c *client) error {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	transport := &http.Transport{TLSClientConfig: p.TLS.Clone(), DisableCompression: true, DisableKeepAlives: true,
		Protocols: &http.Protocols{}, ReadBufferSize: 64 << 10, WriteBufferSize: 64 << 10,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return c.conn, nil }}
	transport.Protocols.SetHTTP1(true)
	// Redirects are not followed: a public server could redirect clients to internal hosts, and browsers do not
	// follow them for WebSocket either.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	options := &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport, CheckRedirect: stay},
		Subprotocols: []string{Protocol}, HTTPHeader: http.Header{}}
	if p.Agent != "" {
		options.HTTPHeader.Set("User-Agent", p.Agent)
	}
	ws, answer, err := websocket.Dial(ctx, p.url(c.spec), options)
	if err != nil {
		return &NoServer{p.Address, status(answer), err}
	}
	c.ws = ws
	if ws.Subprotocol() != Protocol {
		return &NoServer{p.Address, 0, errors.New("the server there does not support ndt7")}
	}
	ws.SetReadLimit(maxMessage)
	return nil
}

func (p *Peer) url(spec transfer.Spec) string {
	u := url.URL{Scheme: "wss", Host: p.Address, Path: DownloadPath}
	if p.plain.Load() {
		u.Scheme = "ws"
	}
	if spec.Direction == transfer.Up {
		u.Path = UploadPath
	}
	q := url.Values{"client_name": {"fullpipe"}}
	for key, values := range p.Query {
		q[key] = values
	}
	if length := spec.Time + minLength; spec.Time > 0 && length < longest { // we close it, or it ends itself
		q.Set(LengthKey, strconv.FormatInt(length.Milliseconds(), 10))
	}
	u.RawQuery = q.Encode()
	return u.String()
}

func status(answer *http.Response) int {
	if answer == nil {
		return 0
	}
	return answer.StatusCode
}

// NoServer reports that no test could begin at an address.
type NoServer struct {
	Address string
	Status  int // HTTP status; 0: none
	Err     error
}

func (e *NoServer) Error() string {
	if e.Status != 0 && e.Status != http.StatusSwitchingProtocols {
		return fmt.Sprintf("%s begins no ndt7 test: it answered %d %s", e.Address, e.Status, http.StatusText(e.Status))
	}
	if errors.Is(e.Err, context.DeadlineExceeded) {
		return fmt.Sprintf("no ndt7 server at %s: it did not answer within %v", e.Address, dialTime)
	}
	err := e.Err
	if asked := (*url.Error)(nil); errors.As(err, &asked) { // the URL is already in the text
		err = asked.Err
	}
	why := strings.TrimPrefix(err.Error(), "failed to WebSocket dial: ")
	return fmt.Sprintf("no ndt7 server at %s: %s", e.Address, why)
}

func (e *NoServer) Unwrap() error { return e.Err }

// Try returns the suggested action.
func (e *NoServer) Try() string {
	var unknown *tls.CertificateVerificationError
	var closer interface{ Try() string }
	switch {
	case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
		return "ndt7://HOST?access_token=TOKEN, with a token that the server's operator gives"
	case e.Status >= 300 && e.Status < 400:
		return "the address that it sends its clients to: that is not followed by itself"
	case e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable:
		return "later: the server tests with others"
	case errors.As(e.Err, &unknown):
		return "SSL_CERT_FILE=FILE with the certificate of who signed the server's"
	case errors.As(e.Err, &closer):
		return closer.Try()
	}
	return "fullpipe serve --web there, or the address of an ndt7 server"
}

// reversed returns the connection from the far end's view.
func reversed(s transfer.Stream) (local, remote netip.AddrPort) { return s.Remote, s.Local }
