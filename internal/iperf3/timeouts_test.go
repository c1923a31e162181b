package iperf3

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// opened begins a test with a server in a synctest bubble and returns the server's reply to its parameters.
func opened(t *testing.T, s *Server, params string) (*control, error) {
	t.Helper()
	near, far := net.Pipe()
	from := netip.MustParseAddrPort("192.0.2.1:40000")
	go func() {
		s.serve(t.Context(), far, from, NewCookie(), false)
		far.Close()
	}()
	t.Cleanup(func() { near.Close() })
	c := &control{conn: near}
	if _, err := c.expect(t.Context(), time.Minute, ParamExchange); err != nil {
		return c, err
	}
	near.Write(frame(params))
	_, err := c.expect(t.Context(), time.Minute, CreateStreams)
	return c, err
}

// TestServer_SharesStreamsAndBuffers checks that a test gets only the streams and buffers that others left. A
// client that has not begun after 1 s is evicted.
func TestServer_SharesStreamsAndBuffers(t *testing.T) {
	const params = `{"tcp":true,"time":1,"parallel":2,"window":4096}`
	for name, s := range map[string]*Server{"streams": {MaxStreams: 3}, "buffers": {MaxBuffers: 20000}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			first := must.Get(opened(t, s, params))(t)
			for time.Since(began) < contendedBeginTimeout {
				if _, err := opened(t, s, params); !errors.Is(err, ErrBusy) {
					t.Errorf("%s: after %v with the first: %v", name, time.Since(began), err)
				}
				time.Sleep(contendedBeginTimeout / 4)
			}
			if _, err := opened(t, s, params); err != nil {
				t.Errorf("%s: after %v: %v", name, time.Since(began), err)
			}
			if _, err := first.expect(t.Context(), time.Minute, TestStart); !errors.Is(err, ErrBusy) {
				t.Errorf("%s: the first got %v", name, err)
			}
		})
	}
}

// TestServer_EndsIdleClients stops a client at each step before its test begins.
func TestServer_EndsIdleClients(t *testing.T) {
	const patience = 10 * time.Second
	for _, tt := range []struct{ name, params, want string }{
		{"on the parameters", "", "no answer"},
		{"on its streams", `{"tcp":true,"time":1,"parallel":2}`, "opened 0 of its 2 streams"},
		{"on its UDP streams", `{"udp":true,"time":1,"parallel":2}`, "opened 0 of its 2 UDP streams"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ended := make(chan error, 1)
			s := &Server{UDP: true, Report: func(r Report) { ended <- r.Err }}
			began := time.Now()
			if tt.params != "" {
				must.Get(opened(t, s, tt.params))(t)
			} else {
				near, far := net.Pipe()
				go s.serve(t.Context(), far, netip.MustParseAddrPort("192.0.2.1:40000"), NewCookie(), false)
				ReadState(near)
			}
			err := <-ended
			if took := time.Since(began); took != patience || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
		})
	}
}
