// Command fullpipe-hub runs a fleet: it orders tests between hosts that run `fullpipe agent`, stores the results and
// shows why a path is slow.
package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/cli/hub"
)

func main() {
	debug.SetGCPercent(50) // thousands of connections with little memory each
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := hub.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
