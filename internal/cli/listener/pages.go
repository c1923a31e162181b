package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// ServePages serves web pages, some with tests.
func ServePages(ctx context.Context, cmd *cobra.Command, l *net.TCPListener, secure *tls.Config,
	pages http.Handler) *httpserver.Server {
	return httpserver.Start(l, httpserver.Config{Handler: pages, Log: console.LogOf(cmd), TLS: secure,
		BaseContext: ctx, Wrap: ndt7.Accepted, ConnContext: ndt7.WithConn})
}

// SpeedConfig returns the browser test's configuration. Results go to this user's history unless a lab measured
// them.
func SpeedConfig(cmd *cobra.Command, tests int, bytes int64) web.SpeedConfig {
	cfg := web.SpeedConfig{Bounds: ndt7.Limits{Tests: tests, TestsPerAddress: max(tests/2, 1), BytesPerDay: bytes},
		Version: build.Version(),
		Note:    func(line string) { console.Note(cmd, "%s", line) },
		Seal:    func(doc *record.Measure, took time.Duration) { history.SealBrowsers(cmd, doc, took) }}
	if _, in, _ := lab.Around(); in {
		return cfg
	}
	cfg.Keep = func(ctx context.Context, doc *record.Measure) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		encoded, err := record.Encode(doc)
		if err != nil {
			return err
		}
		if uid := history.BehindSudo(); uid != "" {
			return history.KeepAs(ctx, cmd, uid, encoded, nil)
		}
		s, err := history.Open(ctx, cmd)
		if err != nil {
			return err
		}
		defer s.Close()
		switch err := s.Keep(ctx, encoded, nil); {
		case errors.Is(err, store.ErrClientQuota): // the page still shows its result
			return nil
		case err != nil && !history.IsWaiting(err):
			return err
		}
		return history.Trim(ctx, cmd, s)
	}
	cfg.Kept = func(ctx context.Context, id string) (record.Document, error) {
		s, err := history.Open(ctx, cmd)
		if err != nil {
			return nil, err
		}
		defer s.Close()
		doc, samples, err := s.Get(ctx, id)
		if err != nil {
			return nil, err
		}
		return record.Decode(doc, samples)
	}
	return cfg
}

// Failure returns the error of listening at an address, with what to try. flag is the flag that sets the address.
func Failure(flag, listen string, err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		err = op.Err
	}
	hint := ""
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another port with " + flag
		if _, port, _ := net.SplitHostPort(listen); port == strconv.Itoa(transfer.DefaultPort) {
			hint += "; an iperf3 server uses " + port + " too"
		}
	case errors.Is(err, syscall.EACCES):
		hint = "a port above 1023"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		hint = "an address of this host"
	}
	return &probe.Error{Address: "listen on " + listen, Err: err, Hint: hint}
}

// ServeFlows replies to iperf3's UDP hellos on the server's port until ctx ends.
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
