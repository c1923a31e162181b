package iperf3

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// opened begins a test with a server in a synctest bubble and returns what the server says to its parameters.
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

// TestStreamsAreShared: what one test leaves of streams and buffers another one gets. A client that has not begun
// after one second makes room.
func TestStreamsAreShared(t *testing.T) {
	const params = `{"tcp":true,"time":1,"parallel":2,"window":4096}`
	for name, s := range map[string]*Server{"streams": {MaxStreams: 3}, "buffers": {MaxBuffers: 20000}} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			first, err := opened(t, s, params)
			if err != nil {
				t.Fatal(err)
			}
			for time.Since(began) < dawdling {
				if _, err := opened(t, s, params); !errors.Is(err, ErrBusy) {
					t.Errorf("%s: after %v beside the first: %v", name, time.Since(began), err)
				}
				time.Sleep(dawdling / 4)
			}
			if _, err := opened(t, s, params); err != nil {
				t.Errorf("%s: after %v: %v", name, time.Since(began), err)
			}
			if _, err := first.expect(t.Context(), time.Minute, TestStart); !errors.Is(err, ErrBusy) {
				t.Errorf("%s: the first is told %v", name, err)
			}
		})
	}
}

// TestServer_LeavesSilentClients has a client stop at each step before its test begins.
func TestServer_LeavesSilentClients(t *testing.T) {
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
				if _, err := opened(t, s, tt.params); err != nil {
					t.Fatal(err)
				}
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
