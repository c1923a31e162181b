package download

import (
	"net"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// conn is the connection of one fetch. It counts the bytes read from the socket, below TLS and HTTP: the payload of
// TCP.
type conn struct {
	*net.TCPConn
	kernel *socket.Stream
	clock  time.Time

	mu      sync.Mutex // guards the following fields
	begun   bool       // the response has begun; bytes, blocked and paused count from then on
	latest  int64      // bytes of the latest read
	bytes   int64
	opening int64 // the part of bytes in the first read of the response
	first   time.Duration
	last    time.Duration
	waiting time.Duration // when the current Read began; 0: none
	blocked time.Duration
	paused  time.Duration
	over    bool // later bytes are not counted
}

func (c *conn) Read(b []byte) (int, error) {
	c.mu.Lock()
	c.waiting = time.Since(c.clock)
	c.mu.Unlock()
	n, err := c.TCPConn.Read(b)
	now := time.Since(c.clock)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.blocked += now - c.waiting
	c.waiting = 0
	if n > 0 && !c.over {
		c.latest = int64(n)
		c.last = now
		if c.begun {
			c.bytes += int64(n)
		}
	}
	return n, err
}

// answered starts the count with the latest read, which contains the first byte of the response. Earlier bytes do not
// count: the server may send TLS session tickets and HTTP/2 settings before the request.
func (c *conn) answered() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = true
	c.first = c.last
	c.bytes = c.latest
	c.opening = c.latest
	c.blocked = 0
	c.paused = 0
}

// enough stops the count.
func (c *conn) enough() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// pause sleeps for d and counts it as time in which the reader chose not to read.
func (c *conn) pause(d time.Duration) {
	time.Sleep(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paused += d
}

func (c *conn) sample() (s transfer.Sample, ok bool) {
	if c.kernel.Sample(&s, false) != nil {
		return s, false
	}
	s.At = time.Since(c.clock)
	c.mu.Lock()
	defer c.mu.Unlock()
	s.Have |= transfer.HaveProgram
	s.Program = c.bytes
	s.Blocked = c.blocked
	s.Paused = c.paused
	if c.waiting > 0 {
		s.Blocked += max(s.At-c.waiting, 0)
	}
	return s, c.bytes > 0
}

func (c *conn) received() transfer.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		return transfer.Span{}
	}
	return transfer.Span{Bytes: c.bytes, FirstReadBytes: c.opening, First: c.first, Last: c.last}
}
