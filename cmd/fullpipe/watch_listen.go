package main

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// exporter serves metrics. A scrape starts nothing: it prints what was gathered meanwhile.
type exporter struct {
	mu      sync.Mutex // guards metrics
	metrics interface {
		Write(w io.Writer, openMetrics bool, version string) error
	}
}

// locked does what changes the metrics.
func (e *exporter) locked(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	open := strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text")
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if open {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	var page bytes.Buffer // a slow reader must not hold the lock
	e.mu.Lock()
	err := e.metrics.Write(&page, open, version())
	e.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(page.Bytes()) // a scraper that went away is its own affair
}

func registerScrapes(f *listenFlags, flags *pflag.FlagSet) {
	flags.StringVar(&f.address, "listen", "", "print nothing, serve metrics to Prometheus (OpenMetrics) at this ADDR:PORT")
	flags.StringVar(&f.cert, "listen-cert", "", "serve them over TLS: the certificate, as a PEM `FILE`")
	flags.StringVar(&f.key, "listen-key", "", "over TLS: the certificate's private key, as a PEM `FILE`")
	flags.StringVar(&f.token, "listen-token-file", "", "serve them only to who brings the bearer token in this `FILE`")
}

// guarded answers only who brings the token; without one, only who asks by address.
func guarded(h http.Handler, token string) http.Handler {
	if token == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !byAddress(r.Host) {
				http.Error(w, "ask by address or as localhost: a name may be that of a web page that leads here",
					http.StatusForbidden)
				return
			}
			h.ServeHTTP(w, r)
		})
	}
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// serve answers scrapes until it is stopped.
func (e *exporter) serve(l *net.TCPListener, token string, secure *tls.Config, log *serverlog.Log) *httpserver.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", guarded(e, token))
	return httpserver.Start(l, httpserver.Config{Handler: mux, TLS: secure, ErrorLog: log.ErrorLog()})
}

// serveMetrics listens for scrapes and says where. The command's standard error is a log.
func (f *listenFlags) serveMetrics(cmd *cobra.Command, e *exporter) (stop func(), err error) {
	l, token, err := f.listen(cmd.Context())
	if err != nil {
		return nil, err
	}
	scheme := "http"
	if f.cert != "" {
		scheme = "https"
	}
	server := e.serve(l, token, f.tls, logOf(cmd))
	fmt.Fprintf(cmd.ErrOrStderr(), "serving %s://%s/metrics\n", scheme, l.Addr())
	return server.Close, nil
}

// export watches and serves what it sees until it is interrupted.
func (f *watchFlags) export(cmd *cobra.Command, cfg watch.Config, follow following) error {
	m := watch.NewMetrics()
	e := &exporter{metrics: m}
	stop, err := f.scrapes.serveMetrics(cmd, e)
	if err != nil {
		return err
	}
	defer stop()
	err = follow(cmd.Context(), cfg, func(v *watch.View) error {
		for i := range v.Shifts {
			for _, s := range report.PathShifts(&v.Shifts[i]) {
				note(cmd, "%s", text.PathShift(&s))
			}
		}
		e.locked(func() { m.Add(v) })
		return nil
	})
	if errors.Is(err, context.Canceled) {
		return nil // the way to end it
	}
	return err
}
