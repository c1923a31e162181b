package lab

import (
	"context"
	"os"
)

// Run is one program at the near end, with or without one at the far end.
type Run struct {
	Config
	Near Command
	// Far is started first and is ended with the near program; no Args: nothing.
	Far Command
	// Signals are passed on to the near program, unless it had them itself (from the
	// terminal). A second SIGTERM, a second or more after the first, kills it.
	Signals <-chan os.Signal
	// AtEnd, when not nil, is called after the near program has ended and before the
	// lab does.
	AtEnd func(*Lab) error
}

// Do makes a lab, runs the programs and answers the near one's exit status. A
// cancelled context ends the lab at once.
func (r Run) Do(ctx context.Context) (int, error) { return run(ctx, r) }
