package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/watch"
)

// exporter serves the last state of a watch as metrics. A scrape starts nothing: it prints
// what the watch's own clock gathered.
type exporter struct {
	mu      sync.Mutex // guards metrics
	metrics *watch.Metrics
}

func (e *exporter) add(v *watch.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.metrics.Add(v)
}

func (e *exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	open := strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text")
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if open {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	var page strings.Builder // a slow reader must not hold the lock
	e.mu.Lock()
	err := e.metrics.Write(&page, open, version())
	e.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write([]byte(page.String())) // a scraper that went away is its own affair
}

// listenForScrapes listens on an address of this host alone: what is served tells whom it
// talks to, and there is no encryption here.
func listenForScrapes(address string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, &usageError{"--listen", fmt.Sprintf("%q is not a loopback address with a port", address),
			"--listen 127.0.0.1:9909, and a proxy with TLS in front of it for other hosts"}
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, &usageError{"--listen", plain(err), "another port"}
	}
	return l, nil
}

// serve answers scrapes until it is stopped.
func (e *exporter) serve(l net.Listener) (stop func()) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", e)
	s := &http.Server{Handler: mux, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		MaxHeaderBytes: 16 << 10}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l) // ends when it is closed
	}()
	return func() { _ = s.Close(); <-done }
}

// export watches and serves what it sees until it is interrupted.
func (f *watchFlags) export(cmd *cobra.Command, cfg watch.Config) error {
	l, err := listenForScrapes(f.listen)
	if err != nil {
		return err
	}
	e := &exporter{metrics: watch.NewMetrics()}
	stop := e.serve(l)
	defer stop()
	fmt.Fprintf(cmd.ErrOrStderr(), "serving http://%s/metrics\n", l.Addr())
	err = watch.Run(cmd.Context(), cfg, func(v *watch.View) error { e.add(v); return nil })
	if errors.Is(err, context.Canceled) {
		return nil // the way to end it
	}
	return err
}
