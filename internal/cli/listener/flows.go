package listener

import (
	"context"
	"errors"
	"net"
	"syscall"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// Failure turns the common reasons why a port cannot be had into what to do.
func Failure(listen string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another port with --listen; an iperf3 server uses 5201 too"
	case errors.Is(err, syscall.EACCES):
		hint = "a port above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "an address of this host"
	}
	return &probe.Error{Address: "listen on " + listen, Err: err, Hint: hint}
}

// ServeFlows answers iperf3's UDP streams on the server's port until ctx ends.
func ServeFlows(ctx context.Context, address string, clients *iperf3.Server) (wait func(), err error) {
	flows, err := socket.ListenFlows(ctx, address)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { flows.Close() })
	go func() {
		defer close(done)
		clients.ServeDatagrams(flows)
	}()
	return func() { stop(); flows.Close(); <-done }, nil
}
