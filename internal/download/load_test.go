package download

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// loadSite is a web server that counts its connections and requests. It has an address for each kind of response.
type loadSite struct {
	*httptest.Server
	connections, requests atomic.Int64
}

func newLoadSite(t *testing.T, secure bool, idle time.Duration) *loadSite {
	t.Helper()
	s := &loadSite{}
	var failures atomic.Int64
	mux := http.NewServeMux()
	mux.HandleFunc("/small", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "a few bytes") })
	mux.HandleFunc("/chunked", func(w http.ResponseWriter, r *http.Request) {
		w.Write(make([]byte, 3000))
		w.(http.Flusher).Flush()
		w.Write(make([]byte, 7000))
	})
	mux.HandleFunc("/none", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("/hints", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		fmt.Fprint(w, "abc")
	})
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/small", http.StatusFound)
	})
	mux.HandleFunc("/third", func(w http.ResponseWriter, r *http.Request) { // each third GET fails
		if r.Method == http.MethodGet && failures.Add(1)%3 == 0 {
			http.Error(w, "no", http.StatusInternalServerError)
		}
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	mux.HandleFunc("/closes", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		fmt.Fprint(w, "abc")
	})
	mux.HandleFunc("/thinks", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(30 * time.Millisecond)
		fmt.Fprint(w, "abc")
	})
	mux.HandleFunc("/long", func(w http.ResponseWriter, r *http.Request) { w.Write(make([]byte, 100_000)) })
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			s.requests.Add(1)
		}
		mux.ServeHTTP(w, r)
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.connections.Add(1)
		}
	}
	s.Config.IdleTimeout = idle
	s.EnableHTTP2 = true
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *loadSite) run(t *testing.T, path string, c Config, spec transfer.Spec) (*transfer.Result, error) {
	t.Helper()
	c.Load = true
	if s.Certificate() != nil {
		c.TLS = &tls.Config{RootCAs: s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	}
	p, err := Open(t.Context(), s.URL+path, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	s.connections.Store(0)
	s.requests.Store(0)
	spec.Direction = transfer.Up
	spec.Requests.RequestBytes = 1
	spec.Requests.ResponseBytes = 1
	if spec.Time == 0 {
		spec.Time = 300 * time.Millisecond
	}
	return transfer.Run(t.Context(), p, spec, nil)
}

// TestLoad_Counts compares the counts of a load with the server's.
func TestLoad_Counts(t *testing.T) {
	plain, secure := newLoadSite(t, false, 0), newLoadSite(t, true, 0)
	for _, c := range []struct {
		name     string
		site     *loadSite
		path     string
		new      bool
		each     bool // the server closes each connection
		streams  int
		response int64
		status   int
	}{
		{"open connections", plain, "/small", false, false, 1, 11, http.StatusOK},
		{"new connections", plain, "/small", true, true, 1, 11, http.StatusOK},
		{"three at a time", plain, "/chunked", false, false, 3, 10_000, http.StatusOK},
		{"no content", plain, "/none", false, false, 1, 0, http.StatusNoContent},
		{"early hints", plain, "/hints", false, false, 1, 3, http.StatusOK},
		{"redirected", plain, "/moved", false, false, 1, 11, http.StatusOK},
		{"the server closes", plain, "/closes", false, true, 2, 3, http.StatusOK},
		{"TLS", secure, "/small", false, false, 2, 11, http.StatusOK},
		{"TLS, new connections", secure, "/chunked", true, true, 2, 10_000, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := c.site.run(t, c.path, Config{}, transfer.Spec{Streams: c.streams,
				Requests: transfer.Requests{NewConnections: c.new}})
			if err != nil {
				t.Fatal(err)
			}
			l := r.Load
			sent := l.Profile.Count + l.Profile.Unanswered
			if l.Profile.Count == 0 || sent != c.site.requests.Load() || l.Failed != 0 {
				t.Errorf("%d responses and %d without, the server had %d requests; %d failed", l.Profile.Count,
					l.Profile.Unanswered, c.site.requests.Load(), l.Failed)
			}
			if l.Connections != c.site.connections.Load() || c.each != (l.Connections > int64(c.streams)) {
				t.Errorf("%d connections, the server had %d", l.Connections, c.site.connections.Load())
			}
			if l.Statuses[c.status] != l.Profile.Count || l.ResponseBytes != c.response || l.Missing() != l.Profile.Unanswered {
				t.Errorf("statuses %v, %d bytes", l.Statuses, l.ResponseBytes)
			}
			isSecured := l.Profile.Slowest[turns.TLS] != [turns.Causes]int64{}
			if isSecured != (c.site == secure && c.new) {
				t.Errorf("stages %v", l.Profile.Slowest)
			}
		})
	}
}

// TestLoad_Statuses counts responses without success, and ends where the server asks for less.
func TestLoad_Statuses(t *testing.T) {
	s := newLoadSite(t, false, 0)
	r, err := s.run(t, "/third", Config{}, transfer.Spec{})
	l := r.Load
	n := l.Profile.Count
	if err != nil || n < 3 || l.Statuses[500] != n/3 || l.Statuses[200] != n-n/3 || l.Missing() < n/3 {
		t.Errorf("%d responses, %v: %v", n, l.Statuses, err)
	}
	var status *StatusError
	r, err = s.run(t, "/busy", Config{}, transfer.Spec{Time: time.Minute})
	if !errors.As(err, &status) || status.Code != http.StatusTooManyRequests ||
		r.Load.Statuses[http.StatusTooManyRequests] != maxRefused {
		t.Errorf("%v: %v", r.Load.Statuses, err)
	}
}

// TestLoad_Budget ends a load whose responses have more bytes than were allowed.
func TestLoad_Budget(t *testing.T) {
	r, err := newLoadSite(t, false, 0).run(t, "/long", Config{MaxBytes: 1e6}, transfer.Spec{Time: time.Minute})
	if err == nil || r.Load.Profile.Count != 9 && r.Load.Profile.Count != 10 {
		t.Errorf("%d responses: %v", r.Load.Profile.Count, err)
	}
}

// TestLoad_FirstByte separates the server's time from the connection's.
func TestLoad_FirstByte(t *testing.T) {
	r, err := newLoadSite(t, false, 0).run(t, "/thinks", Config{}, transfer.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	const slept = 30e6
	p := &r.Load.Profile
	if first := p.Median[turns.Thinking][turns.FirstByte]; first < slept*9/10 || first > p.P50 {
		t.Errorf("%v of %v until the first byte", time.Duration(first), time.Duration(p.P50))
	}
}

// TestLoad_IdleConnectionClosed sends the request on a new connection where the server had closed the idle one.
func TestLoad_IdleConnectionClosed(t *testing.T) {
	s := newLoadSite(t, false, 20*time.Millisecond)
	r, err := s.run(t, "/small", Config{}, transfer.Spec{Time: time.Second, Requests: transfer.Requests{PerSecond: 10}})
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Load; l.Failed != 0 || l.Connections < 2 || l.Profile.Count != s.requests.Load() {
		t.Errorf("%d of %d requests on %d connections, %d failed", l.Profile.Count, s.requests.Load(), l.Connections,
			l.Failed)
	}
}
