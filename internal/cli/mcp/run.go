package mcp

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// Limits of a command that a tool runs.
const (
	maxOutput = 16 << 20        // bytes of its JSON
	stopWait  = 3 * time.Second // after an interrupt, before it is killed
)

// invocation is a command line of this program.
type invocation struct {
	args  []string
	stdin *os.File      // nil: empty
	limit time.Duration // after which it is interrupted
	rows  int           // connections of a capture that the result has
}

// outcome is the output of a command.
type outcome struct {
	output  []byte
	tooLong bool // the command printed more than maxOutput and was ended
	timeout bool // the command was interrupted at its limit
}

// run runs a command of this program as a process of its own, so that its end frees everything. The error is that the
// command could not run.
type run func(ctx context.Context, i invocation) (outcome, error)

// runProgram is the run of the server.
func runProgram(ctx context.Context, i invocation) (outcome, error) {
	program, err := os.Executable()
	if err != nil {
		return outcome{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, i.limit)
	defer cancel()
	child := exec.CommandContext(ctx, program, i.args...)
	child.Env = secret.Without(os.Environ(), secret.Key, secret.Store)
	child.Cancel = func() error { return child.Process.Signal(os.Interrupt) }
	child.WaitDelay = stopWait
	if i.stdin != nil {
		child.Stdin = i.stdin
	}
	out := &bounded{end: cancel}
	child.Stdout = out
	err = child.Run()
	done := outcome{output: out.text.Bytes(), tooLong: out.full, timeout: errors.Is(ctx.Err(), context.DeadlineExceeded)}
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) && ctx.Err() == nil {
		return done, err
	}
	return done, nil
}

// bounded keeps at most maxOutput bytes; more of them end the command.
type bounded struct {
	text bytes.Buffer
	full bool
	end  func()
}

func (b *bounded) Write(p []byte) (int, error) {
	b.full = b.full || b.text.Len()+len(p) > maxOutput
	if b.full {
		b.end()
		return len(p), nil
	}
	return b.text.Write(p)
}

// quoted returns a text with a mark before each line, which separates foreign text from the server's own.
func quoted(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		b.WriteString(mark + line)
	}
	return b.String()
}

// mark begins each line of data.
const mark = "| "
