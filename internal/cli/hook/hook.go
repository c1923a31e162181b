// Package hook runs a program of the user's on an event.
package hook

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/secret"
)

// releaseTime is how long a process that left a hook's group may keep its output open.
const releaseTime = time.Second

// Run runs a program of the user's on an event, with environment added to ours and
// input on standard input. When the program or ctx ends, the rest of its process group is
// killed. It returns the first 64 KiB of both outputs; the rest is read and dropped.
func Run(ctx context.Context, args, environment []string, input []byte) ([]byte, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer from.Close()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(secret.Without(os.Environ()), environment...)
	cmd.Stdout = to
	cmd.Stderr = to
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	cmd.WaitDelay = releaseTime // of standard input
	asGroup(cmd)
	err = cmd.Start()
	to.Close()
	if err != nil {
		return nil, err
	}
	var said console.BoundedText
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		from.WriteTo(&said)
	}()
	err = cmd.Wait()
	killGroup(cmd)
	select {
	case <-drained:
	case <-time.After(releaseTime):
	}
	return said.Kept(), err
}
