package ndt7

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestMain(m *testing.M) { testenv.RunWithoutLeaks(m) }

type serving struct {
	*httptest.Server
	address string
	done    chan *Test
}

func serve(t *testing.T, secure bool, cfg Config) *serving {
	t.Helper()
	return serveWithin(t, secure, cfg, admission.Limits{})
}

// serveWithin limits the listener's connections unless places is zero.
func serveWithin(t *testing.T, secure bool, cfg Config, places admission.Limits) *serving {
	t.Helper()
	s := &serving{done: make(chan *Test, 64)}
	cfg.Done = func(one *Test) { s.done <- one }
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/ndt/v7/", NewServer(cfg))
	s.Server = httptest.NewUnstartedServer(mux)
	s.Listener.Close()
	listener := httpserver.Listen(l, Accepted)
	if places != (admission.Limits{}) {
		listener.Places.Limits = places
	}
	s.Listener, s.Config.ConnState = listener, httpserver.TrackState
	s.Config.ConnContext = WithConn
	s.address = l.Addr().String()
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *serving) peer(t *testing.T) *Peer {
	p := NewPeer(s.address)
	t.Cleanup(func() { p.Close() })
	if s.Certificate() != nil {
		roots := x509.NewCertPool()
		roots.AddCert(s.Certificate())
		p.TLS = &tls.Config{RootCAs: roots}
	}
	return p
}

func TestRun_BothRoles(t *testing.T) {
	for name, secure := range map[string]bool{"TLS": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, secure, Config{})
			p := s.peer(t)
			for _, spec := range []transfer.Spec{{Direction: transfer.Down, Time: 600 * time.Millisecond},
				{Direction: transfer.Up, Time: 600 * time.Millisecond}, {Direction: transfer.Down, Bytes: 3 << 20},
				{Direction: transfer.Up, Bytes: 3 << 20}} {
				var reported int64
				r, err := transfer.Run(t.Context(), p, spec, func(i transfer.Interval) { reported += i.Bytes })
				if err != nil {
					t.Fatalf("%+v: %v", spec, err)
				}
				server := <-s.done
				span, ok := r.Received()
				if !ok || !r.Complete || span.Bytes < spec.Bytes*99/100 || span.Bps() <= 0 {
					t.Errorf("%+v: %d bytes, complete %v", spec, span.Bytes, r.Complete)
				}
				if server.Download != (spec.Direction == transfer.Down) || len(server.Stream.Samples) == 0 {
					t.Errorf("%+v: the server saw %+v", spec, server)
				}
				if spec.Direction == transfer.Down {
					if r.Far == nil || r.Far.MinRTT() <= 0 || reported != span.Bytes {
						t.Errorf("%+v: far end %+v, reported %d of %d bytes", spec, r.Far, reported, span.Bytes)
					}
				} else if off := math.Abs(float64(server.Stream.Bytes)/float64(span.Bytes) - 1); spec.Bytes > 0 && off > 0.01 {
					t.Errorf("%+v: the server counted %d bytes, we %d", spec, server.Stream.Bytes, span.Bytes)
				}
			}
		})
	}
}

func (s *serving) request(t *testing.T, path string, change func(*http.Request)) *http.Response {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+path, nil))(t)
	for key, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket",
		"Sec-WebSocket-Version": "13",
		"Sec-WebSocket-Key":     "DOdm+5/Cm3WwvhfcAlhJoQ==", "Sec-WebSocket-Protocol": Protocol} {
		r.Header.Set(key, value)
	}
	if change != nil {
		change(r)
	}
	answer := must.Get(s.Client().Do(r))(t)
	answer.Body.Close()
	s.Client().CloseIdleConnections()
	return answer
}

func TestServer_Refusals(t *testing.T) {
	s := serve(t, false, Config{Origins: []string{"friend.example"}})
	origin := func(o string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Origin", o) } }
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"no subprotocol":    {DownloadPath, func(r *http.Request) { r.Header.Del("Sec-WebSocket-Protocol") }, 400},
		"a long query":      {DownloadPath + "?x=" + strings.Repeat("a", 5000), nil, 400},
		"a malformed query": {DownloadPath + "?a=%zz", nil, 400},
		"a long test":       {DownloadPath + "?fullpipe_ms=60000", nil, 400},
		"a negative test":   {DownloadPath + "?fullpipe_ms=-1", nil, 400},
		"early_exit":        {DownloadPath + "?early_exit=x", nil, 400},
		"no upgrade":        {UploadPath, func(r *http.Request) { r.Header.Del("Upgrade") }, 426},
		"another site":      {UploadPath, origin("https://attacker.example"), 403},
		"a friend's site":   {DownloadPath + "?early_exit=1", origin("https://friend.example"), 101},
		"our own":           {DownloadPath + "?early_exit=1", origin(s.URL), 101},
		"no page":           {DownloadPath + "?early_exit=1", nil, 101},
	} {
		if got := s.request(t, c.path, c.change).StatusCode; got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	p := NewPeer("x:1")
	defer p.Close()
	for field, spec := range map[string]transfer.Spec{
		"Time":    {Time: 11 * time.Second},
		"Streams": {Time: time.Second, Streams: 2},
		"Far":     {Time: time.Second, Far: transfer.Socket{MSS: 500}},
		"Program": {Time: time.Second, Program: transfer.Program{WriteBps: 1e6}},
	} {
		spec.Direction = transfer.Down
		var no *transfer.Unsupported
		if err := p.Check(transfer.TCP(spec)); !errors.As(err, &no) || no.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	usual := transfer.Spec{Direction: transfer.Up, Time: time.Second, Program: transfer.Program{ByReference: true}}
	if err := p.Check(transfer.TCP(usual)); err != nil {
		t.Errorf("a sender that need not copy: %v", err)
	}
}

// TestServer_RunningTestsKeepTheirSlot fills the listener with active requests. A running test's connection is not
// evicted.
func TestServer_RunningTestsKeepTheirSlot(t *testing.T) {
	s := serveWithin(t, false, Config{}, admission.Limits{Total: admission.Load{2}, PerHost: admission.Load{2}})
	served := make(chan bool)
	s.Config.Handler.(*http.ServeMux).HandleFunc("/busy", func(_ http.ResponseWriter, r *http.Request) {
		served <- true
		<-r.Context().Done()
	})
	begun, ended := make(chan bool, 1), make(chan error, 1)
	p := s.peer(t)
	go func() {
		var first sync.Once
		spec := transfer.Spec{Direction: transfer.Down, Time: 600 * time.Millisecond}
		_, err := transfer.Run(t.Context(), p, spec, func(transfer.Interval) { first.Do(func() { begun <- true }) })
		ended <- err
	}()
	<-begun
	for range 5 { // each evicts the one before
		c := must.Get(net.Dial("tcp", s.address))(t)
		defer c.Close()
		io.WriteString(c, "GET /busy HTTP/1.1\r\nHost: a\r\n\r\n")
		<-served
	}
	if err := <-ended; err != nil {
		t.Errorf("the test: %v", err)
	}
}
