package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	dialTime   = 10 * time.Second
	answerTime = 15 * time.Second // until the response headers
	// flowWindow is the HTTP/2 flow-control window in bytes, larger than any TCP window so that only TCP's limits.
	flowWindow = 256 << 20
	readSize   = 256 << 10
)

// fetch is one request over one fresh connection.
type fetch struct {
	peer      *Peer
	transport *http.Transport
	clock     time.Time

	mu   sync.Mutex // guards conn
	conn *conn      // nil until dialled
	body io.ReadCloser
}

func (p *Peer) newFetch(s transfer.Socket) *fetch {
	f := &fetch{peer: p, clock: time.Now()}
	f.transport = &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return f.dial(ctx, address, s)
		},
		TLSClientConfig:        p.config.TLS.Clone(),
		TLSHandshakeTimeout:    dialTime,
		ResponseHeaderTimeout:  answerTime,
		MaxResponseHeaderBytes: 64 << 10,
		ReadBufferSize:         readSize,
		DisableCompression:     true,
		DisableKeepAlives:      true,
		HTTP2: &http.HTTP2Config{MaxReceiveBufferPerConnection: flowWindow,
			MaxReceiveBufferPerStream: flowWindow},
		Protocols: &http.Protocols{},
	}
	f.transport.Protocols.SetHTTP1(true)
	f.transport.Protocols.SetHTTP2(!p.config.HTTP1)
	return f
}

// dial opens a connection that the guards allow.
func (p *Peer) dial(ctx context.Context, address string, options socket.Options) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if err := p.guard(ctx, address); err != nil {
		return nil, err
	}
	tcp, err := socket.Dial(ctx, address, options)
	if err != nil {
		return nil, err
	}
	if err := p.reached(tcp.RemoteAddr().(*net.TCPAddr).AddrPort().Addr()); err != nil {
		tcp.Close()
		return nil, err
	}
	return tcp, nil
}

func (f *fetch) dial(ctx context.Context, address string, s transfer.Socket) (net.Conn, error) {
	options := socket.Options{Socket: s, Route: f.peer.config.Route}
	tcp, err := f.peer.dial(ctx, address, options)
	if err != nil {
		return nil, err
	}
	kernel, err := socket.Watch(tcp, options)
	if err != nil {
		tcp.Close()
		return nil, err
	}
	c := &conn{TCPConn: tcp, kernel: kernel, clock: f.clock}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conn = c
	return c, nil
}

func (f *fetch) current() *conn {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.conn
}

// server returns the address that the fetch is connected to.
func (f *fetch) server() netip.AddrPort {
	c := f.current()
	if c == nil {
		return netip.AddrPort{}
	}
	return socket.AddrPort(c.TCPConn.RemoteAddr())
}

// do sends the request and returns the response headers. The body belongs to f.
func (f *fetch) do(ctx context.Context, method string, u *url.URL, byteRange string) (*http.Response, error) {
	if err := f.peer.request(); err != nil {
		return nil, err
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: func() {
		if c := f.current(); c != nil {
			c.answered()
		}
	}})
	request, err := f.peer.newRequest(ctx, method, u)
	if err != nil {
		return nil, err
	}
	if byteRange != "" {
		request.Header.Set("Range", byteRange)
	}
	response, err := f.transport.RoundTrip(request)
	if err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: %w", u.Redacted(), err)
	}
	f.body = response.Body
	return response, nil
}

func (p *Peer) newRequest(ctx context.Context, method string, u *url.URL) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", p.config.Agent)
	request.Header.Set("Accept", "*/*")
	return request, nil
}

// read reads at most want bytes of the body, at bps bit/s at most unless that is 0. It reports whether the object
// ended.
func (f *fetch) read(want int64, bps float64) (ended bool, err error) {
	buffer := make([]byte, readSize)
	if bps > 0 {
		buffer = buffer[:max(1, min(len(buffer), int(bps/8/100)))]
	}
	due := time.Now()
	for want > 0 {
		n, err := f.body.Read(buffer[:min(int64(len(buffer)), want)])
		want -= int64(n)
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if bps > 0 {
			due = due.Add(time.Duration(float64(n) * 8 / bps * float64(time.Second)))
			if late := time.Since(due); late > 50*time.Millisecond {
				due = due.Add(late)
			}
			if wait := time.Until(due); wait > 0 {
				f.current().pause(wait)
			}
		}
	}
	return false, nil
}

// interrupt closes the connection, which unblocks all I/O of the fetch.
func (f *fetch) interrupt() {
	if c := f.current(); c != nil {
		c.TCPConn.Close()
	}
}

// release resets the connection, which discards data in flight, and returns its description; ok is false without a
// connection. It may be called once.
func (f *fetch) release() (s transfer.Stream, ok bool) {
	c := f.current()
	if c != nil {
		s = c.kernel.Describe()
		c.kernel.Reset()
		c.TCPConn.Close()
		c.kernel.Close()
	}
	if f.body != nil {
		f.body.Close()
	}
	f.transport.CloseIdleConnections()
	return s, c != nil
}
