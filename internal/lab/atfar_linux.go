package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startAtFar lets the programs at a host start others at the far one. Each connection to an abstract Unix socket in
// the host's network namespace names one command, with its three files attached, and receives its exit status.
func (e *inside) startAtFar(h *host) error {
	var at *net.UnixListener
	err := onThread(func() (err error) {
		if err := unix.Setns(h.namespace, unix.CLONE_NEWNET); err != nil {
			return err
		}
		at, err = net.ListenUnix("unixpacket", &net.UnixAddr{Name: farAddress, Net: "unixpacket"})
		return err
	})
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := at.AcceptUnix()
			if err != nil {
				return
			}
			go e.runAtFar(c)
		}
	}()
	return nil
}

// runAtFar runs one command; it kills it when the client closes the connection.
func (e *inside) runAtFar(conn *net.UnixConn) {
	defer conn.Close()
	c := controlOf(conn)
	var r request
	files, err := c.receive(&r)
	defer func() {
		for _, fd := range files {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return
	}
	r.End = far
	ended := make(chan int, 1)
	e.mu.Lock()
	pid, err := e.launch(r, files)
	if err == nil {
		e.local[pid] = ended
	}
	e.mu.Unlock()
	if err != nil {
		c.send(reply{Error: err.Error()})
		return
	}
	go func() {
		if _, err := c.receive(&request{}); err != nil { // the client is gone
			e.mu.Lock()
			if e.local[pid] != nil {
				unix.Kill(pid, syscall.SIGTERM)
			}
			e.mu.Unlock()
		}
	}()
	c.send(reply{Status: <-ended})
}

// atFar starts a command at the far end of the lab that this process runs in and waits until it ends, or kills it
// when ctx ends.
func atFar(ctx context.Context, args, env []string, stdin []byte) (stdout, stderr []byte, status int, err error) {
	conn, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: farAddress, Net: "unixpacket"})
	if err != nil {
		return nil, nil, 0, fmt.Errorf("asking the lab for its far end: %w", err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now()) })()
	var theirs, ours []*os.File
	defer func() {
		for _, f := range append(theirs, ours...) {
			f.Close()
		}
	}()
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, nil, 0, err
		}
		theirs = append(theirs, w)
		ours = append(ours, r)
	}
	theirs[0], ours[0] = ours[0], theirs[0] // it reads its standard input
	c := controlOf(conn)
	if err := c.send(request{Args: args, Env: env}, theirs...); err != nil {
		return nil, nil, 0, err
	}
	for _, f := range theirs {
		f.Close()
	}
	go func() { // a program that does not read ends, and the pipe with it
		ours[0].Write(stdin)
		ours[0].Close()
	}()
	var out [2]bytes.Buffer
	copied := [2]<-chan error{copyFrom(ours[1], &out[0]), copyFrom(ours[2], &out[1])}
	var back reply
	if _, err := c.receive(&back); err != nil {
		return nil, nil, 0, errors.Join(context.Cause(ctx), err)
	}
	for _, done := range copied {
		if failed := <-done; failed != nil && !errors.Is(failed, io.EOF) {
			err = failed
		}
	}
	if back.Error != "" {
		err = errors.New(back.Error)
	}
	return out[0].Bytes(), out[1].Bytes(), back.Status, err
}
