package download

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/requests"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	maxHead = 64 << 10 // bytes of a response's header, and of what is read with it
	// maxRefused is the number of responses in a row by which a server asks for fewer requests.
	maxRefused = 10
)

// load is a load of GET requests over HTTP/1.1.
type load struct {
	peer    *Peer
	spec    transfer.Spec
	request []byte // with its header
	tls     *tls.Config

	mu       sync.Mutex // guards statuses
	statuses map[int]int64
}

// checkLoad returns *Unsupported for a load that a web server cannot have.
func (p *Peer) checkLoad(spec transfer.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	if spec.Far != (transfer.Socket{}) {
		return &transfer.Unsupported{Field: "Far", Reason: ownSockets}
	}
	if spec.Streams > maxStreams && p.public.Load() {
		return &transfer.Unsupported{Field: "Streams",
			Reason: fmt.Sprintf("at most %d requests at a time to a public server", maxStreams)}
	}
	return nil
}

// runLoad requests the object for the Spec's time. The sizes of the result's Spec are those of the messages.
func (p *Peer) runLoad(ctx context.Context, spec transfer.Spec,
	each func(transfer.Interval)) (*transfer.Result, error) {
	request, err := p.newRequest(ctx, http.MethodGet, p.object.url)
	if err != nil {
		return nil, err
	}
	request.Close = spec.Requests.NewConnections
	var text bytes.Buffer
	if err := request.Write(&text); err != nil {
		return nil, err
	}
	spec.Requests.RequestBytes = text.Len()
	l := &load{peer: p, spec: spec, request: text.Bytes(), statuses: map[int]int64{}}
	if p.object.url.Scheme == "https" {
		l.tls = &tls.Config{}
		if p.config.TLS != nil {
			l.tls = p.config.TLS.Clone()
		}
		l.tls.ServerName = p.object.url.Hostname()
		l.tls.NextProtos = []string{"http/1.1"}
	}
	started := time.Now()
	taken, err := requests.Client{Spec: spec, Dial: l.dial, Each: each}.Run(ctx)
	spec.Requests.ResponseBytes = int(taken.ResponseBytes)
	result := &transfer.Result{Spec: spec, Started: started, Complete: err == nil,
		Near: &transfer.End{Kernel: socket.Kernel(), Streams: taken.Streams}, Load: taken.With(nil, spec.Requests)}
	result.Load.Statuses = maps.Clone(l.statuses)
	return result, err
}

// dial opens a connection to the server that responded first.
func (l *load) dial(ctx context.Context, _ int) (requests.Conn, error) {
	tcp, err := l.peer.dial(ctx, l.peer.object.server.String(), socket.Options{Socket: l.spec.Near,
		Route: l.peer.config.Route})
	if err != nil {
		return nil, err
	}
	c := &loadConn{load: l, tcp: tcp, stream: tcp}
	if l.tls != nil {
		began := time.Now()
		secured := tls.Client(tcp, l.tls)
		if err := secured.HandshakeContext(ctx); err != nil {
			tcp.Close()
			return nil, err
		}
		c.stream = secured
		c.parts.TLS = time.Since(began)
		c.parts.TLSRounds = 1 // RFC 8446, 2
		if secured.ConnectionState().Version < tls.VersionTLS13 {
			c.parts.TLSRounds = 2
		}
	}
	c.reader = bufio.NewReaderSize(c, readSize/8)
	return c, nil
}

// count counts a status code.
func (l *load) count(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.statuses[status]++
}

// loadConn is a connection of a load.
type loadConn struct {
	load      *load
	tcp       *net.TCPConn
	stream    io.ReadWriter // tcp, or TLS over it
	reader    *bufio.Reader
	parts     requests.Parts
	responses int
	refused   int   // latest responses that asked for fewer requests
	head      int64 // bytes that may still be read for a header; negative: no bound
}

func (c *loadConn) TCP() *net.TCPConn     { return c.tcp }
func (c *loadConn) Parts() requests.Parts { return c.parts }

// Read reads what the server sent, at most head bytes of it.
func (c *loadConn) Read(b []byte) (int, error) {
	if c.head == 0 {
		return 0, fmt.Errorf("the response's header has more than %d bytes", maxHead)
	}
	if c.head > 0 {
		b = b[:min(int64(len(b)), c.head)]
	}
	n, err := c.stream.Read(b)
	if c.head > 0 {
		c.head -= int64(n)
	}
	return n, err
}

// Exchange sends the request and reads the response.
func (c *loadConn) Exchange(uint32) (bytes int64, last bool, err error) {
	sentAt := time.Now()
	c.head = maxHead
	_, err = c.stream.Write(c.load.request)
	if err == nil {
		_, err = c.reader.Peek(1)
	}
	if err != nil {
		if c.responses > 0 && isEnd(err) {
			err = requests.ErrIdle
		}
		return 0, false, err
	}
	c.parts.FirstByte = time.Since(sentAt)
	response, err := c.readHead()
	if err != nil {
		return 0, false, err
	}
	if response.StatusCode == http.StatusRequestTimeout && response.Close && c.responses > 0 {
		return 0, false, requests.ErrIdle // it was sent before the request
	}
	c.head = -1
	left := c.load.peer.left()
	bytes, err = io.Copy(io.Discard, io.LimitReader(response.Body, max(left, 1)))
	c.load.peer.giveBack(-bytes)
	if err == nil && bytes >= left {
		err = &requests.Final{Err: c.load.peer.usedUp()}
	}
	if err != nil {
		return bytes, false, err
	}
	c.responses++
	c.load.count(response.StatusCode)
	c.refused++
	if !asksForLess(response.StatusCode) {
		c.refused = 0
	}
	if c.refused >= maxRefused {
		return bytes, false, &requests.Final{Err: &StatusError{c.load.peer.object.url.Redacted(), response.StatusCode}}
	}
	return bytes, response.Close || response.StatusCode == http.StatusSwitchingProtocols, nil
}

// readHead reads the header of the final response (RFC 9110, 15.2).
func (c *loadConn) readHead() (*http.Response, error) {
	for {
		response, err := http.ReadResponse(c.reader, nil)
		if err != nil || response.StatusCode/100 != 1 || response.StatusCode == http.StatusSwitchingProtocols {
			return response, err
		}
	}
}

// Close closes the connection; after NewConnections it waits until the server has: that end then keeps TIME_WAIT.
func (c *loadConn) Close() error {
	if c.load.spec.Requests.NewConnections && c.responses > 0 {
		const patience = time.Second
		c.tcp.SetReadDeadline(time.Now().Add(patience))
		io.Copy(io.Discard, io.LimitReader(c.tcp, math.MaxInt16))
	}
	return c.tcp.Close()
}

// isEnd reports whether the server had ended the connection.
func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// asksForLess reports whether a status code says that the server has too many requests.
func asksForLess(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}
