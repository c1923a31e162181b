package hook

import (
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// TestWebhook_Tries checks that temporary failures are retried and permanent ones are not.
func TestWebhook_Tries(t *testing.T) {
	t.Parallel()
	respond := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for name, c := range map[string]struct {
		serve  http.HandlerFunc
		tls    bool   // the server's certificate is unknown
		scheme string // of the URL
		tries  int
	}{
		"unknown certificate": {respond(204), true, "https", 1},
		"no TLS":              {respond(204), false, "https", 1},
		"404":                 {respond(404), false, "http", 1},
		"503":                 {respond(503), false, "http", 3},
		"no answer":           {hangUp, false, "http", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var connections atomic.Int64
			s := httptest.NewUnstartedServer(c.serve)
			s.Config.ErrorLog = log.New(io.Discard, "", 0)
			s.Config.SetKeepAlivesEnabled(false)
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			if c.tls {
				s.StartTLS()
			} else {
				s.Start()
			}
			defer s.Close()
			f := &Target{Webhook: c.scheme + "://" + s.Listener.Addr().String(), Pause: time.Millisecond}
			if err := f.post(t.Context(), []byte("{}")); err == nil || connections.Load() != int64(c.tries) {
				t.Errorf("%d tries, want %d: %v", connections.Load(), c.tries, err)
			}
		})
	}
}

func TestTarget_Check(t *testing.T) {
	for _, c := range []struct {
		f    Target
		good bool
	}{{Target{}, true}, {Target{Webhook: "https://alerts.example.net/x"}, true},
		{Target{Webhook: "http://127.0.0.1:9/x"}, true}, {Target{Webhook: "http://[::1]:9"}, true},
		{Target{Webhook: "http://localhost/x"}, true}, {Target{Webhook: "http://alerts.example.net/x"}, false},
		{Target{Webhook: "ftp://127.0.0.1"}, false}, {Target{Webhook: "https:///x"}, false},
		{Target{Program: "/nowhere/alert"}, false}} {
		if err := c.f.Check(); (err == nil) != c.good {
			t.Errorf("%+v: %v", c.f, err)
		}
	}
}
