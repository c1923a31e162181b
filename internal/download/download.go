// Package download measures a path by fetching an object from a web server, over HTTP/1.1 or HTTP/2, with or without
// TLS. Only this end can be observed and configured: each receive window is tested by fetching the object once more.
//
// The server belongs to others, so a Peer has a budget of bytes and requests over its lifetime, set before the first
// request.
package download

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Defaults of a Config.
const (
	DefaultMaxBytes    = 2 << 30
	DefaultMaxRequests = 200
	// maxStreams is the maximum of concurrent connections to a third party's server.
	maxStreams   = 8
	maxRedirects = 5
	ownSockets   = "a web server sets its own sockets"
)

// Config limits and configures the requests to a server. The zero value works.
type Config struct {
	// MaxBytes and MaxRequests limit all fetches of the Peer together; 0 is the default.
	MaxBytes    int64
	MaxRequests int
	// HTTP1 offers HTTP/1.1 only; otherwise the server chooses.
	HTTP1 bool
	// Load makes States describe a load of requests, which MaxRequests does not bound.
	Load bool
	// TLS adds root and client certificates to the system's; nil adds none.
	TLS *tls.Config
	// Route is the route of the connections.
	Route socket.Route
	// Agent is sent as User-Agent; empty is "fullpipe".
	Agent string
}

// Peer is one object on one web server.
type Peer struct {
	config Config
	object object
	from   *url.URL // the requested URL, before redirects

	ctx   context.Context // ends with Close
	close context.CancelFunc
	// public is set once a server was reached on the public network.
	public atomic.Bool

	// mu guards the remaining budget.
	mu       sync.Mutex
	bytes    int64
	requests int
}

// object is the description of the object from the response headers.
type object struct {
	url    *url.URL
	size   int64 // -1: not said
	ranges bool
	proto  string // "HTTP/2.0"
	server netip.AddrPort
}

// Open requests the object's size without fetching the object. It follows redirects.
func Open(ctx context.Context, address string, config Config) (*Peer, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("%q is not an http or https address", address)
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	if config.MaxRequests == 0 {
		config.MaxRequests = DefaultMaxRequests
	}
	if config.Agent == "" {
		config.Agent = "fullpipe"
	}
	config.HTTP1 = config.HTTP1 || config.Load
	p := &Peer{config: config, from: u, bytes: config.MaxBytes, requests: config.MaxRequests}
	p.ctx, p.close = context.WithCancel(context.Background())
	if p.object, err = p.inquire(ctx, u); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// Close ends a running transfer.
func (p *Peer) Close() error { p.close(); return nil }

// States describes the object and the budget in one line, and a redirect in a second one.
func (p *Peer) States() []string {
	size := "an object of unknown size"
	if p.object.size >= 0 {
		size = units.Size(p.object.size).String()
	}
	lines := []string{fmt.Sprintf("requests %s from %s over %s: at most %s of responses", p.object.url.EscapedPath(),
		p.object.url.Host, p.object.proto, units.Size(p.config.MaxBytes))}
	if !p.config.Load {
		lines = []string{fmt.Sprintf("downloads %s from %s over %s: at most %s in %d requests altogether",
			size, p.object.url.Host, p.object.proto, units.Size(p.config.MaxBytes), p.config.MaxRequests)}
	}
	if p.object.url.String() != p.from.String() {
		lines = append(lines, "redirected to "+p.object.url.Redacted())
	}
	return lines
}

// Check returns *transfer.Unsupported for settings of the far end and for uploads.
func (p *Peer) Check(t transfer.Test) error {
	if spec, isLoad := t.Requests(); isLoad {
		return p.checkLoad(spec)
	}
	spec, err := t.OneWay("a web server is downloaded from over TCP", "a web server is only downloaded from")
	if err != nil {
		return err
	}
	return p.check(spec)
}

func (p *Peer) check(spec transfer.Spec) error {
	no := func(field, why string) error { return &transfer.Unsupported{Field: field, Reason: why} }
	if err := spec.Validate(); err != nil {
		return err
	}
	switch {
	case spec.Direction != transfer.Down:
		return no("Direction", "a web server is only downloaded from; use --direction down")
	case spec.Far.SendBuffer != 0:
		return no("Far.SendBuffer", ownSockets)
	case spec.Far.ReceiveBuffer != 0:
		return no("Far.ReceiveBuffer", ownSockets)
	case spec.Far.Congestion != "":
		return no("Far.Congestion", ownSockets)
	case spec.Far != (transfer.Socket{}):
		return no("Far", ownSockets)
	case spec.Program.ReadBps != 0 && p.object.proto == "HTTP/2.0":
		return no("Program.ReadBps", "HTTP/2 reads ahead of its program")
	case spec.Streams > maxStreams:
		return no("Streams", fmt.Sprintf("at most %d connections to somebody else's server", maxStreams))
	case spec.Program.WriteBytes != 0 || spec.Program.WriteBps != 0 || spec.Program.RequestResponse:
		return no("Program", "a web server writes as it likes")
	}
	return nil
}

// inquire sends a HEAD request. If the server does not serve those, inquire sends a GET request and reads only the
// response headers.
func (p *Peer) inquire(ctx context.Context, u *url.URL) (object, error) {
	o, err := p.ask(ctx, http.MethodHead, u)
	if !servesHead(&o, err) {
		return p.ask(ctx, http.MethodGet, u)
	}
	return o, err
}

// servesHead reports whether the answer to a HEAD request is the server's word on the object. Small servers refuse
// HEAD, close the connection or say that the object is empty.
func servesHead(o *object, err error) bool {
	var status *StatusError
	if errors.As(err, &status) {
		return status.Code == http.StatusTooManyRequests ||
			status.Code/100 != 4 && status.Code != http.StatusNotImplemented
	}
	hungUp := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
	return !hungUp && (err != nil || o.size != 0)
}

func (p *Peer) ask(ctx context.Context, method string, u *url.URL) (object, error) {
	for range maxRedirects + 1 {
		f := p.newFetch(transfer.Socket{})
		response, err := f.do(ctx, method, u, "")
		if err != nil {
			f.release()
			return object{}, err
		}
		next, err := redirect(u, response)
		o := object{u, response.ContentLength, response.Header.Get("Accept-Ranges") == "bytes", response.Proto, f.server()}
		f.release()
		switch {
		case err != nil:
			return object{}, err
		case next != nil:
			u = next
		default:
			return o, nil
		}
	}
	return object{}, fmt.Errorf("%s leads through more than %d redirects", p.from.Redacted(), maxRedirects)
}

// redirect returns the target of a redirect, or nil if the response is the object.
func redirect(u *url.URL, r *http.Response) (*url.URL, error) {
	if r.StatusCode/100 == 2 {
		return nil, nil
	}
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		next, err := r.Location()
		if err != nil {
			return nil, fmt.Errorf("%s redirects to nowhere: %w", u.Redacted(), err)
		}
		if next.Scheme != "https" && (next.Scheme != "http" || u.Scheme == "https") {
			return nil, fmt.Errorf("%s redirects to %s, which is less safe", u.Redacted(), next.Redacted())
		}
		return next, nil
	}
	return nil, &StatusError{u.Redacted(), r.StatusCode}
}

// StatusError reports an HTTP status other than success.
type StatusError struct {
	URL  string
	Code int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: the server answered %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

// Try names the way out.
func (e *StatusError) Try() string {
	switch e.Code {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return "later, or another server: this one asks for less"
	}
	return "an address that this server gives to everybody: for a rate, of a large file"
}

// TooSmall reports an object that ended before its rate reached a steady state.
type TooSmall struct {
	Bytes  int64
	Rounds float64 // duration of the transfer in round trips; 0: not known
}

func (e *TooSmall) Error() string {
	text := fmt.Sprintf("the object of %s is too small to judge a path by", units.Size(e.Bytes))
	if e.Rounds > 0 {
		text += fmt.Sprintf(": it was there after %.1f round trips", e.Rounds)
	}
	return text
}

// Try names the way out.
func (e *TooSmall) Try() string { return "a larger file on the same server" }

// usedUp returns the error of an exhausted budget.
func (p *Peer) usedUp() error {
	return fmt.Errorf("the bound of %s and %d requests that was set for %s is used up",
		units.Size(p.config.MaxBytes), p.config.MaxRequests, p.from.Host)
}

// request takes one request from the budget.
func (p *Peer) request() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.requests <= 0 {
		return p.usedUp()
	}
	p.requests--
	return nil
}

// left returns the remaining bytes of the budget.
func (p *Peer) left() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// take takes up to want bytes from the budget, at most the size of the object.
func (p *Peer) take(want int64) (bytes int64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bytes <= 0 {
		return 0, p.usedUp()
	}
	bytes = min(p.bytes, want)
	if p.object.size >= 0 {
		bytes = min(bytes, max(p.object.size, 1))
	}
	p.bytes -= bytes
	return bytes, nil
}

// giveBack returns unused bytes of a fetch to the budget. A negative number takes more: the overhead of headers and TLS
// is not known in advance.
func (p *Peer) giveBack(bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += bytes
}
