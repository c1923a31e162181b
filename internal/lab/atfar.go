package lab

import (
	"context"
	"os"
)

const farAddress = "@fullpipe-lab-far"

// AtFar runs a command at the far end of the lab that this process runs in and returns its output and exit status.
// env is added to the environment of the lab's programs. When ctx ends, the command is killed. in is false outside
// of a lab.
func AtFar(ctx context.Context, args, env []string, stdin []byte) (stdout, stderr []byte, status int, in bool,
	err error) {
	if os.Getenv(accountVariable) == "" {
		return nil, nil, 0, false, nil
	}
	stdout, stderr, status, err = atFar(ctx, args, env, stdin)
	return stdout, stderr, status, true, err
}

// Inside reports whether this process runs in a lab.
func Inside() bool { return os.Getenv(accountVariable) != "" }
