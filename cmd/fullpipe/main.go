//go:build !manual

// Command fullpipe finds out why a TCP transfer is slow, fixes it and proves it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/cli"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/sockops"
)

func main() {
	lab.Engine()
	sockops.Supervisor()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := cli.Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}
