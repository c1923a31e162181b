// Command fullpipe finds out why a TCP transfer is slow, fixes it and proves it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/lab"
)

func main() {
	lab.Engine()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr})
	stop()
	os.Exit(status)
}
