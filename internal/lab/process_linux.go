package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

func (e *engine) start(end string, c Command) (*Process, error) {
	p := &Process{engine: e, done: make(chan struct{})}
	files, ours, err := p.files(c)
	defer func() { // the engine has its own; copying ends when the last writer does
		for _, f := range ours {
			f.Close()
		}
	}()
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	answer := make(chan reply, 1)
	r := request{Op: opStart, End: end, Args: c.Args, Env: c.Env, Dir: c.Dir, OwnGroup: c.OwnGroup}
	if err := e.send(&r, answer, p, files); err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	got, ok := <-answer
	if !ok {
		return nil, fmt.Errorf("lab: %w", e.failure)
	}
	if got.Error != "" {
		e.mu.Lock()
		delete(e.processes, p.id)
		e.mu.Unlock()
		return nil, &NotRun{c.Args[0], got.Status, errors.New(got.Error)}
	}
	p.PID = got.PID
	return p, nil
}

// files opens a program's standard input, output and error, and returns those to close here.
func (p *Process) files(c Command) (all, ours []*os.File, err error) {
	stdin := c.Stdin
	if stdin == nil {
		stdin, err = os.Open(os.DevNull)
		if err != nil {
			return nil, nil, err
		}
		ours = append(ours, stdin)
	}
	all = append(all, stdin)
	for i, w := range []io.Writer{c.Stdout, c.Stderr} {
		f, isFile := w.(*os.File)
		switch {
		case i == 1 && w != nil && same(w, c.Stdout):
			f = all[1]
		case isFile:
		case w == nil:
			f, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0)
			if err != nil {
				return nil, ours, err
			}
			ours = append(ours, f)
		default:
			r, write, err := os.Pipe()
			if err != nil {
				return nil, ours, err
			}
			f = write
			ours = append(ours, f)
			p.copies = append(p.copies, copyFrom(r, w))
		}
		all = append(all, f)
	}
	return all, ours, nil
}

// same reports whether two writers are one, which then needs a single goroutine.
func same(a, b io.Writer) bool {
	defer func() { _ = recover() }() // types that cannot be compared are not the same
	return a == b
}

// copyFrom copies a pipe to w until its last writer closes it.
func copyFrom(r *os.File, w io.Writer) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := io.Copy(w, r)
		r.Close()
		done <- err
	}()
	return done
}

func (p *Process) finish(status int, err error) {
	p.status = status
	p.err = err
	close(p.done)
}

func signalNumber(s os.Signal) (int, error) {
	number, ok := s.(syscall.Signal)
	if !ok {
		return 0, fmt.Errorf("%v is no signal of this system", s)
	}
	return int(number), nil
}
