package download

import (
	"net"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// conn is the connection of one fetch. It counts what is read from the socket, below
// TLS and HTTP: that is the payload that TCP carried.
type conn struct {
	*net.TCPConn
	kernel *socket.Stream
	clock  time.Time

	mu      sync.Mutex // guards what follows
	begun   bool       // the answer has; bytes, blocked and paused count from then on
	latest  int64      // bytes of the latest read
	bytes   int64
	opening int64 // of bytes, those of the read that the answer began with
	first   time.Duration
	last    time.Duration
	waiting time.Duration // when the read under way began; 0: none is
	blocked time.Duration
	paused  time.Duration
	over    bool // what still comes is not wanted and not counted
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

// answered begins the count: the answer's first byte came with the latest read. What came
// before is none of it: TLS's session tickets and HTTP/2's settings, which need not wait for
// the request.
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

// enough ends the count.
func (c *conn) enough() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
}

// pause books time in which the reader chose not to read.
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
