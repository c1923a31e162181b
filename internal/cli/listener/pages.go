package listener

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// ServePages serves pages of which some carry out tests.
func ServePages(ctx context.Context, cmd *cobra.Command, l *net.TCPListener, secure *tls.Config,
	pages http.Handler) *httpserver.Server {
	return httpserver.Start(l, httpserver.Config{Handler: pages, ErrorLog: console.LogOf(cmd).ErrorLog(), TLS: secure,
		BaseContext: ctx, Wrap: ndt7.Accepted, ConnContext: ndt7.WithConn})
}

// SpeedConfig is a browser's test whose results are kept in this user's history, but for those
// that a lab measured.
func SpeedConfig(cmd *cobra.Command, tests int, bytes int64) web.SpeedConfig {
	cfg := web.SpeedConfig{Bounds: ndt7.Bounds{Tests: tests, OfOne: max(tests/2, 1), BytesADay: bytes},
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
		case errors.Is(err, store.ErrClientQuota): // the page has its result all the same
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
