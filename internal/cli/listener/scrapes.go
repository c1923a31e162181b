package listener

import (
	"bytes"
	"crypto/subtle"
	"crypto/tls"
	"fmt"
	"html"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
)

// Exporter serves metrics. A scrape prints current values and starts no measurement.
type Exporter struct {
	mu      sync.Mutex // guards metrics and pages
	Metrics interface {
		Write(w io.Writer, openMetrics bool, version string) error
	}
	// pages are the metrics since the last Update, for Prometheus and as OpenMetrics: concurrent scrapes share one.
	pages [2][]byte
}

// Update changes the metrics by f.
func (e *Exporter) Update(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pages = [2][]byte{}
	do()
}

// page returns the current page, which must not be changed.
func (e *Exporter) page(open bool) ([]byte, error) {
	i := 0
	if open {
		i = 1
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pages[i] == nil {
		var page bytes.Buffer // a slow reader must not keep the lock
		if err := e.Metrics.Write(&page, open, build.Version()); err != nil {
			return nil, err
		}
		e.pages[i] = page.Bytes()
	}
	return e.pages[i], nil
}

func (e *Exporter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	open := strings.Contains(r.Header.Get("Accept"), "application/openmetrics-text")
	kind := "text/plain; version=0.0.4; charset=utf-8"
	if open {
		kind = "application/openmetrics-text; version=1.0.0; charset=utf-8"
	}
	page, err := e.page(open)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(page) // an error means that the scraper disconnected
}

// frontPage is the page at /.
const frontPage = `<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>fullpipe metrics</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:2em;color-scheme:light dark}</style>
<h1>fullpipe %s</h1>
<p><a href="/metrics">/metrics</a>: %s for Prometheus, version %s
<p><a href="https://github.com/fullpipe-net/fullpipe/blob/main/docs/metrics.md">docs/metrics.md</a>: the meaning of each metric,
scrape configuration, dashboards and alerts
</html>
`

// front serves the page at /, with links to the metrics and their document.
func front(command, about string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		fmt.Fprintf(w, frontPage, command, about, html.EscapeString(build.Version()))
	})
}

// AddScrapeFlags adds the flags of the metrics address.
func AddScrapeFlags(f *ListenFlags, flags *pflag.FlagSet) {
	flags.StringVar(&f.Address, "listen", "", "print nothing, serve metrics to Prometheus (OpenMetrics) at this ADDR:PORT")
	flags.StringVar(&f.Cert, "listen-cert", "", "serve the metrics over TLS, with the "+
		"certificate in this PEM `FILE`")
	flags.StringVar(&f.Key, "listen-key", "", "for TLS: PEM `FILE` with the private key of the "+
		"certificate")
	flags.StringVar(&f.Token, "listen-token-file", "", "serve the metrics only to clients that "+
		"send the bearer token in this `FILE`")
}

// requireToken serves only requests with the token, or without a token only requests by IP address or localhost.
func requireToken(h http.Handler, token string) http.Handler {
	if token == "" {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !namesAddress(r.Host) {
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

// serve serves scrapes until it is stopped.
func (e *Exporter) serve(l *net.TCPListener, token string, secure *tls.Config, log *serverlog.Log,
	root http.Handler) *httpserver.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", requireToken(e, token))
	mux.Handle("GET /{$}", requireToken(root, token))
	return httpserver.Start(l, httpserver.Config{Handler: mux, TLS: secure, Log: log})
}

// ServeMetrics listens for scrapes of metrics, which about describes, and prints the address. The command's standard
// error is a log.
func (f *ListenFlags) ServeMetrics(cmd *cobra.Command, e *Exporter, about string) (stop func(), err error) {
	l, token, err := f.Listen(cmd.Context())
	if err != nil {
		return nil, err
	}
	server := e.serve(l, token, f.TLS, console.LogOf(cmd), front(cmd.Name(), about))
	fmt.Fprintf(cmd.ErrOrStderr(), "serving %s\n", f.URLs(l.Addr(), "/metrics")[0])
	return server.Close, nil
}
