package lab

import (
	"context"
	"os"
)

// Run is a program at the near end, optionally with one at the far end.
type Run struct {
	Config
	Near Command
	// Far starts first and ends with the near program; without Args there is none.
	Far Command
	// Signals are forwarded to the near program, unless the terminal sent them to it as well. A second SIGTERM at
	// least 1 s after the first kills it.
	Signals <-chan os.Signal
	// AtEnd, when not nil, is called after the near program and before the lab ends.
	AtEnd func(*Lab) error
}

// Do starts a lab, runs the programs and returns the near one's exit status. A cancelled context ends the lab at
// once.
func (r Run) Do(ctx context.Context) (int, error) { return run(ctx, r) }
