package download

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// site serves /endless, /object (1 MiB with ranges), /small and misbehaviour, over TLS
// with HTTP/2 or plainly.
type site struct {
	*httptest.Server
	requests atomic.Int64
	ranged   atomic.Bool
	thinks   atomic.Pointer[func()] // nil: at once
}

func newSite(t *testing.T, secure bool) *site {
	t.Helper()
	s := &site{}
	mux := http.NewServeMux()
	mux.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		for block := make([]byte, 64<<10); r.Method == http.MethodGet; {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
	mux.HandleFunc("/object", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			s.ranged.Store(true)
		}
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.Repeat("0123456789abcdef", 1<<16)))
	})
	mux.HandleFunc("/small", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "a few bytes") })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/object",
			http.StatusFound)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/round",
			http.StatusFound)
	})
	mux.HandleFunc("/down", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://localhost/object", http.StatusFound)
	})
	mux.HandleFunc("/nohead", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			http.Error(w, "no", http.StatusMethodNotAllowed)
			return
		}
		w.Write(make([]byte, 1<<20))
	})
	mux.HandleFunc("/headless", func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Write(make([]byte, 1<<20))
			return
		}
		switch r.URL.RawQuery {
		case "not-implemented":
			w.WriteHeader(http.StatusNotImplemented)
		case "empty":
			w.Header().Set("Content-Length", "0")
		default: // closes the connection
			panic(http.ErrAbortHandler)
		}
	})
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "30000000")
		if r.Method == http.MethodGet {
			w.Write(make([]byte, 1<<20))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
	})
	mux.HandleFunc("/cut", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "10000000")
		w.Write(make([]byte, 1000))
	})
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		if think := s.thinks.Load(); think != nil {
			(*think)()
		}
		mux.ServeHTTP(w, r)
	}))
	s.EnableHTTP2 = true
	if s.Config.ErrorLog = nil; secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

func (s *site) config() Config {
	if s.Certificate() == nil {
		return Config{}
	}
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return Config{TLS: &tls.Config{RootCAs: roots}}
}

func open(t *testing.T, s *site, path string, c Config) *Peer {
	t.Helper()
	p := must.Get(Open(t.Context(), s.URL+path, c))(t)
	t.Cleanup(func() { p.Close() })
	return p
}

func TestRun_Fetches(t *testing.T) {
	plain, secure := newSite(t, false), newSite(t, true)
	http1 := secure.config()
	http1.HTTP1 = true
	for _, c := range []struct {
		name   string
		site   *site
		path   string
		config Config
		spec   transfer.Spec
		proto  string
		ranged bool
	}{
		{"HTTP/1.1", plain, "/endless", Config{}, transfer.Spec{Bytes: 4 << 20}, "HTTP/1.1", false},
		{"HTTP/1.1 over TLS", secure, "/endless", http1, transfer.Spec{Bytes: 4 << 20}, "HTTP/1.1", false},
		{"HTTP/2", secure, "/endless", secure.config(), transfer.Spec{Bytes: 4 << 20}, "HTTP/2.0", false},
		{"a time", plain, "/endless", Config{}, transfer.Spec{Time: time.Second}, "HTTP/1.1", false},
		{"a range", plain, "/object", Config{}, transfer.Spec{Bytes: 500_000}, "HTTP/1.1", true},
		{"a range by redirect", plain, "/moved", Config{}, transfer.Spec{Bytes: 500_000}, "HTTP/1.1", true},
		{"HEAD refused", plain, "/nohead", Config{}, transfer.Spec{Bytes: 500_000}, "HTTP/1.1", false},
		{"HEAD not implemented", plain, "/headless?not-implemented", Config{}, transfer.Spec{Bytes: 500_000}, "HTTP/1.1",
			false},
		{"HEAD says empty", plain, "/headless?empty", Config{}, transfer.Spec{Bytes: 500_000}, "HTTP/1.1", false},
		{"HEAD closes the connection", plain, "/headless?closes", Config{}, transfer.Spec{Bytes: 500_000}, "HTTP/1.1",
			false},
		{"streams", plain, "/endless", Config{}, transfer.Spec{Bytes: 4 << 20, Streams: 3}, "HTTP/1.1", false},
		{"a slow reader", plain, "/endless", Config{}, transfer.Spec{Bytes: 200_000,
			Program: transfer.Program{ReadBps: 16e6}}, "HTTP/1.1", false},
		{"a window", plain, "/endless", Config{}, transfer.Spec{Bytes: 1 << 20,
			Near: transfer.Socket{ReceiveBuffer: 16 << 10}}, "HTTP/1.1", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := open(t, c.site, c.path, c.config)
			if p.object.proto != c.proto {
				t.Errorf("over %s, want %s", p.object.proto, c.proto)
			}
			c.site.ranged.Store(false)
			c.spec.Direction = transfer.Down
			var reported int64
			result, err := transfer.Run(t.Context(), p, c.spec, func(i transfer.Interval) { reported += i.Bytes })
			if err != nil {
				t.Fatal(err)
			}
			span, ok := result.Received()
			if !ok || !result.Complete || span.Bytes < c.spec.Bytes || span.Bytes == 0 || span.Bps() <= 0 {
				t.Errorf("%d bytes of %d, complete %v", span.Bytes, c.spec.Bytes, result.Complete)
			}
			if reported != span.Bytes {
				t.Errorf("the intervals have %d bytes, the result %d", reported, span.Bytes)
			}
			if got := c.site.ranged.Load(); got != c.ranged {
				t.Errorf("range requested: %v", got)
			}
			if c.spec.Near.ReceiveBuffer > 0 {
				b := result.Near.Streams[0].ReceiveBuffer
				if b.Requested != c.spec.Near.ReceiveBuffer || b.Effective > 2*b.Requested {
					t.Errorf("window %+v", b)
				}
			}
		})
	}
}

// TestRead_CountsFromResponse checks that HTTP/2 settings and TLS session tickets do not count: they arrive before the
// response.
func TestRead_CountsFromResponse(t *testing.T) {
	for _, http1 := range []bool{true, false} {
		s := newSite(t, true)
		config := s.config()
		config.HTTP1 = http1
		p := open(t, s, "/endless", config)
		var respondedAt atomic.Int64
		f := p.newFetch(transfer.Socket{})
		think := func() {
			for c := f.current(); !c.reads(); { // the server's data before the response
				runtime.Gosched()
			}
			respondedAt.Store(int64(time.Since(f.clock)))
		}
		s.thinks.Store(&think)
		must.Get(f.do(t.Context(), http.MethodGet, p.object.url, ""))(t)
		must.Get(f.read(1<<20, 0))(t)
		came := f.current().received()
		f.release()
		answered := time.Duration(respondedAt.Load())
		if came.First < answered || came.FirstReadBytes == 0 || came.Bytes < 1<<20 || came.FirstReadBytes >= came.Bytes {
			t.Errorf("HTTP/1.1 %v: %+v, the server responded after %v", http1, came, answered)
		}
	}
}

// reads reports whether a connection waits for more data.
func (c *conn) reads() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting > 0 && c.latest > 0
}

func TestRun_TooSmallObject(t *testing.T) {
	p := open(t, newSite(t, false), "/small", Config{})
	var small *TooSmall
	result, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: transfer.Down, Time: time.Second}, nil)
	if !errors.As(err, &small) || result == nil {
		t.Errorf("%v", err)
	}
}

// TestRun_ShortTimeIsNotTooSmall fetches an object from a server without ranges (HTTP/1.0) for less time than it takes.
func TestRun_ShortTimeIsNotTooSmall(t *testing.T) {
	p := open(t, newSite(t, false), "/large", Config{})
	result, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: transfer.Down, Time: 50 * time.Millisecond}, nil)
	if err != nil || result == nil {
		t.Errorf("%v, %v", result, err)
	}
}

// TestRun_SharesBytes checks that connections fetch all of the bytes and no more, also where there are fewer bytes than
// connections.
func TestRun_SharesBytes(t *testing.T) {
	p := open(t, newSite(t, false), "/object", Config{})
	for _, c := range []struct {
		bytes            int64
		streams, fetches int
	}{{500_002, 3, 3}, {2, 3, 2}, {1, 5, 1}} {
		spec := transfer.Spec{Direction: transfer.Down, Bytes: c.bytes, Streams: c.streams}
		result := must.Get(transfer.Run(t.Context(), p, spec, nil))(t)
		total := int64(0)
		for _, s := range result.Near.Streams {
			total += s.Bytes
		}
		const header = 1000 // of a response, at most
		if total < c.bytes || total > c.bytes+int64(c.fetches)*header || len(result.Near.Streams) != c.fetches {
			t.Errorf("%+v: %d bytes by %d connections", c, total, len(result.Near.Streams))
		}
	}
}

func TestRun_Budget(t *testing.T) {
	s := newSite(t, false)
	p := open(t, s, "/endless", Config{MaxBytes: 1 << 20})
	spec := transfer.Spec{Direction: transfer.Down, Time: time.Minute}
	result, err := transfer.Run(t.Context(), p, spec, nil)
	if err != nil || result.Near.Streams[0].Bytes > 2<<20 {
		t.Errorf("%v", err)
	}
	if _, err := transfer.Run(t.Context(), p, spec, nil); err == nil {
		t.Error("fetched beyond the bound of bytes")
	}
	before := s.requests.Load()
	p = open(t, s, "/endless", Config{MaxRequests: 3})
	spec.Bytes = 1000
	for range 5 {
		transfer.Run(t.Context(), p, spec, nil)
	}
	if n := s.requests.Load() - before; n != 3 {
		t.Errorf("%d requests where 3 are the bound", n)
	}
}

func TestOpen_Errors(t *testing.T) {
	plain, secure := newSite(t, false), newSite(t, true)
	for _, c := range []struct{ address, want string }{
		{plain.URL + "/nosuch", "404"},
		{plain.URL + "/round", "redirects"},
		{secure.URL + "/down", "less safe"},
		{secure.URL + "/object", "certificate"},
		{"http://127.0.0.1:1/", "refused"},
		{"ftp://127.0.0.1/", "not an http"},
		{"http:///x", "not an http"},
	} {
		config := secure.config()
		if strings.HasSuffix(c.address, "/object") {
			config = Config{}
		}
		if p, err := Open(t.Context(), c.address, config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.address, p, err, c.want)
		}
	}
	p := open(t, plain, "/cut", Config{})
	if _, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: transfer.Down, Time: time.Minute},
		nil); err == nil {
		t.Error("an object cut short passed")
	}
}

func TestRun_CancelAndClose(t *testing.T) {
	s := newSite(t, false)
	for name, end := range map[string]func(cancel func(), p *Peer){
		"cancelled": func(cancel func(), _ *Peer) { cancel() },
		"closed":    func(_ func(), p *Peer) { p.Close() },
	} {
		p := open(t, s, "/endless", Config{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		result, err := transfer.Run(ctx, p, transfer.Spec{Direction: transfer.Down, Time: time.Minute},
			func(transfer.Interval) { end(cancel, p) })
		if err == nil || result == nil || result.Complete {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
	}
}

func TestCheck_Unsupported(t *testing.T) {
	p := &Peer{object: object{proto: "HTTP/2.0"}}
	for field, spec := range map[string]transfer.Spec{
		"Direction":         {Direction: transfer.Up},
		"Far.SendBuffer":    {Direction: transfer.Down, Far: transfer.Socket{SendBuffer: 1}},
		"Far.ReceiveBuffer": {Direction: transfer.Down, Far: transfer.Socket{ReceiveBuffer: 1}},
		"Far.Congestion":    {Direction: transfer.Down, Far: transfer.Socket{Congestion: "reno"}},
		"Far":               {Direction: transfer.Down, Far: transfer.Socket{MSS: 500}},
		"Streams":           {Direction: transfer.Down, Streams: 9},
		"Program":           {Direction: transfer.Down, Program: transfer.Program{RequestResponse: true}},
		"Program.ReadBps":   {Direction: transfer.Down, Program: transfer.Program{ReadBps: 1}},
	} {
		var u *transfer.Unsupported
		spec.Time = time.Second
		if err := p.Check(transfer.TCP(spec)); !errors.As(err, &u) || u.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := p.Check(transfer.TCP(transfer.Spec{Direction: transfer.Down, Bytes: 1,
		Near: transfer.Socket{ReceiveBuffer: 65536}})); err != nil {
		t.Error(err)
	}
}

// TestRun_LatencyUnderLoad measures the RTT during a fetch by ICMP echo or by TCP connections.
func TestRun_LatencyUnderLoad(t *testing.T) {
	p := open(t, newSite(t, false), "/endless", Config{})
	r, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: transfer.Down, Time: 700 * time.Millisecond,
		Latency: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l := r.Latency; l == nil || len(l.Idle) == 0 || len(l.Loaded) == 0 || l.Method == "" {
		t.Errorf("%+v; %v", l, r.Warnings)
	}
}
