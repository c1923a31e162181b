package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Command is a program to run at one end, as exec.Cmd. Args[0] is looked up in PATH. The environment has the lab's
// addresses in FULLPIPE_NEAR, FULLPIPE_FAR, FULLPIPE_NEAR6 and FULLPIPE_FAR6, and those past a VPN in
// FULLPIPE_NEAR_OUTSIDE and so on. FULLPIPE_SENDER_RULE has the buffering rule for a fullpipe that sends from this
// end.
type Command struct {
	Args   []string
	Env    []string // added to this process's environment
	Dir    string
	Stdin  *os.File // nil is /dev/null
	Stdout io.Writer
	Stderr io.Writer
	// OwnGroup keeps the program out of the terminal's foreground process group: it does not receive Ctrl-C.
	OwnGroup bool
}

// NotRun reports that a command could not be started. Status is what a shell would return: 127 not found, 126 not
// executable.
type NotRun struct {
	Command string
	Status  int
	Err     error
}

func (e *NotRun) Error() string { return fmt.Sprintf("%s: %v", e.Command, e.Err) }

func (e *NotRun) Unwrap() error { return e.Err }

// Process is a running program in the lab.
type Process struct {
	PID    int // in the lab's PID namespace
	id     int
	engine *engine
	done   chan struct{} // closed by finish
	status int
	err    error
	copies []<-chan error
	copied sync.Once // by Wait
}

// Start runs a command at this end.
func (e *End) Start(c Command) (*Process, error) {
	if len(c.Args) == 0 {
		return nil, errors.New("lab: no command")
	}
	return e.lab.engine.start(e.name, c)
}

// Run runs a command at this end and waits for its exit status.
func (e *End) Run(c Command) (int, error) {
	p, err := e.Start(c)
	if err != nil {
		return 0, err
	}
	return p.Wait()
}

// Output runs a command at this end and returns its standard output. A status other than 0 is an error with the end
// of its standard error.
func (e *End) Output(args ...string) ([]byte, error) {
	var out, problems tail
	status, err := e.Run(Command{Args: args, Stdout: &out, Stderr: &problems})
	if err == nil && status != 0 {
		err = fmt.Errorf("%s: exit status %d: %s", args[0], status, problems.last(400))
	}
	return out.bytes, err
}

// Listening reports whether any program listens on a TCP port at this end.
func (e *End) Listening() (bool, error) {
	r, err := e.lab.engine.ask(request{Op: opListening, End: e.name})
	return r.Listening, err
}

// AwaitListener waits until a program listens at this end, the server p has ended, or 1 s is over.
func (e *End) AwaitListener(ctx context.Context, p *Process) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if listening, err := e.Listening(); listening || err != nil {
			return
		}
		select {
		case <-tick.C:
		case <-p.Done():
			return
		case <-ctx.Done():
			return
		}
	}
}

type tail struct{ bytes []byte }

func (t *tail) Write(p []byte) (int, error) { t.bytes = append(t.bytes, p...); return len(p), nil }

func (t *tail) last(n int) []byte { return t.bytes[max(0, len(t.bytes)-n):] }

// Wait waits until the program has ended and its output is copied. The status after a signal is 128 plus the
// signal's number. An error means that the lab ended first.
func (p *Process) Wait() (int, error) {
	<-p.done
	p.copied.Do(func() {
		for _, c := range p.copies {
			if err := <-c; err != nil && p.err == nil {
				p.err = fmt.Errorf("copying the output: %w", err)
			}
		}
	})
	return p.status, p.err
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Signal sends a signal to the program. It returns nil when the program has already ended.
func (p *Process) Signal(s os.Signal) error {
	number, err := signalNumber(s)
	if err != nil {
		return err
	}
	_, err = p.engine.ask(request{Op: opSignal, ID: p.id, Signal: number})
	return err
}
