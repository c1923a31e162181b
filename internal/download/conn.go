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
	bytes   int64      // since the request was sent
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
		if c.bytes == 0 {
			c.first = now
		}
		c.bytes += int64(n)
		c.last = now
	}
	return n, err
}

// asked begins the count: the request is out, all that comes now is the answer.
func (c *conn) asked() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bytes, c.blocked, c.paused = 0, 0, 0
	if c.waiting > 0 {
		c.waiting = time.Since(c.clock)
	}
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
	s.Program, s.Blocked, s.Paused = c.bytes, c.blocked, c.paused
	if c.waiting > 0 {
		s.Blocked += max(s.At-c.waiting, 0)
	}
	return s, c.bytes > 0
}

func (c *conn) received() (bytes int64, first, last time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bytes, c.first, c.last
}
