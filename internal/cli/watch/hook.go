package watch

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/hook"
)

const (
	// hookTime is how long a program that is run on a change may take.
	hookTime = 30 * time.Second
	// waitingHooks is the length of the queue. Further changes are dropped and counted.
	waitingHooks = 64
)

// hookQueue runs a program of the user's when something has changed, one at a time, with what
// changed in its environment. Its words are split at blanks and no shell reads them, unless
// one is asked for.
type hookQueue struct {
	cmd    *cobra.Command
	words  []string
	out    io.Writer // both of its outputs, when it has ended
	limit  time.Duration
	queue  chan []string // environments; closed by close
	cancel context.CancelFunc
	done   chan struct{}
	left   int // out
}

func newHook(cmd *cobra.Command, command string, shell bool, out io.Writer) *hookQueue {
	h := &hookQueue{cmd: cmd, words: strings.Fields(command), out: out, limit: hookTime,
		queue: make(chan []string, waitingHooks), done: make(chan struct{})}
	if shell {
		h.words = []string{"sh", "-c", command}
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	h.cancel = cancel
	go func() {
		defer close(h.done)
		for environment := range h.queue {
			h.run(ctx, environment)
		}
	}()
	return h
}

// send has the program run; it does not wait.
func (h *hookQueue) send(environment []string) {
	select {
	case h.queue <- environment:
	default:
		h.left++
	}
}

func (h *hookQueue) run(ctx context.Context, environment []string) {
	if ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, h.limit)
	defer cancel()
	said, err := hook.Run(ctx, h.words, environment, nil)
	if len(said) > 0 {
		_, _ = h.out.Write(said)
	}
	switch {
	case err == nil || h.cmd.Context().Err() != nil:
	case ctx.Err() != nil:
		console.Note(h.cmd, "--on-change: %s took more than %v and was ended", h.words[0], h.limit)
	default:
		console.Note(h.cmd, "--on-change: %s: %v", h.words[0], err)
	}
}

// close lets what waits run, but for an interrupt, and says what was left out.
func (h *hookQueue) close() {
	close(h.queue)
	<-h.done
	h.cancel()
	if h.left > 0 {
		console.Note(h.cmd, "--on-change: %d changes came too fast for %s and were left out", h.left, h.words[0])
	}
}
