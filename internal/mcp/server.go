// Package mcp serves tools to assistants by the Model Context Protocol: JSON-RPC 2.0, one message a line.
package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
)

// Tool is a function that clients may call.
type Tool struct {
	Name, Title, Description string
	Input, Output            any  // JSON Schemas of objects; Output nil: any object
	OpenWorld                bool // it reaches other hosts
	// Call runs the tool until ctx ends. arguments is an object, or empty. An error is a fault of the server; a tool
	// that fails returns a Result.
	Call func(ctx context.Context, arguments json.RawMessage) (Result, error)
}

// Result is the outcome of a call.
type Result struct {
	Text       []string // parts of the text, in order
	Structured any      // by the tool's Output schema; nil: none
	Failed     bool
}

// Server has the tools of a program and its words for clients.
type Server struct {
	Name, Version string
	Instructions  string // for the assistant; must not contain text from elsewhere
	Tools         []Tool
}

// Limits of a session.
const (
	maxMessage = 1 << 20 // bytes of a line
	maxCalls   = 4       // at a time
	maxID      = 256     // bytes of a request's id
)

// versions are the protocol versions that the server supports, the preferred first.
var versions = []string{"2025-11-25", "2025-06-18", "2024-11-05"}

// session is one client's connection.
type session struct {
	server      *Server
	ctx         context.Context
	stop        context.CancelFunc
	calls       sync.WaitGroup
	initialized bool // used by receive only

	mu      sync.Mutex // guards running, out and failed
	running map[string]context.CancelFunc
	out     io.Writer
	failed  error // of the first write
}

// Serve serves a client until in ends, ctx ends or out fails. Then it cancels running calls and waits for them. A
// blocked read of in may outlive it.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	c := &session{server: s, running: map[string]context.CancelFunc{}, out: out}
	c.ctx, c.stop = context.WithCancel(ctx)
	lines := make(chan line)
	go readLines(c.ctx, in, lines)
	defer c.calls.Wait()
	defer c.stop()
	for {
		select {
		case <-c.ctx.Done():
			return c.writeError()
		case l, more := <-lines:
			if !more {
				return c.writeError()
			}
			c.receive(l)
		}
	}
}

// line is one message as it was read.
type line struct {
	text    []byte
	tooLong bool // longer than maxMessage, and dropped
}

// readLines sends the lines of in and closes the channel at the end.
func readLines(ctx context.Context, in io.Reader, lines chan<- line) {
	defer close(lines)
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		var l line
		var err error
		for {
			var part []byte
			part, err = r.ReadSlice('\n')
			l.tooLong = l.tooLong || len(l.text)+len(part) > maxMessage
			if l.tooLong {
				l.text = nil
			} else {
				l.text = append(l.text, part...)
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if len(l.text) > 0 || l.tooLong {
			select {
			case lines <- l:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// writeError returns the error of the first write that failed.
func (c *session) writeError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed
}

// send writes a message, unless a write has failed before.
func (c *session) send(m response) {
	m.Version = "2.0"
	text, err := json.Marshal(m)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.failed == nil {
		_, err = c.out.Write(append(text, '\n'))
	}
	if err != nil && c.failed == nil {
		c.failed = err
		c.stop()
	}
}
