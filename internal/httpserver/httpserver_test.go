package httpserver

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

func TestMain(m *testing.M) { testenv.RunWithoutLeaks(m) }

// testTimeout is when a test gives up waiting.
const testTimeout = 20 * time.Second

// certificate returns a TLS configuration for both ends.
func certificate() (server, client *tls.Config) {
	site := httptest.NewTLSServer(nil)
	defer site.Close()
	return &tls.Config{Certificates: site.TLS.Certificates}, site.Client().Transport.(*http.Transport).TLSClientConfig
}

// site is a server with few slots on loopback.
type site struct {
	*Server
	listener *Listener
	address  string
	client   *http.Client
	url      string
	said     chan string // its error log
}

// open returns the number of connections from loopback with a slot.
func (s *site) open() int64 {
	return s.listener.Places.LoadOf(admission.Host(netip.MustParseAddr("127.0.0.1")))[admission.Slots]
}

type reports chan string

func (r reports) Write(p []byte) (int, error) { r <- string(p); return len(p), nil }

func serve(t *testing.T, secure bool, places int, handler http.Handler) *site {
	t.Helper()
	tcp, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	said := make(reports, 1000)
	s := &site{listener: Listen(tcp, nil), address: tcp.Addr().String(), said: said,
		client: &http.Client{Timeout: testTimeout, Transport: &http.Transport{DisableKeepAlives: true}}}
	bound := admission.Load{int64(places)}
	s.listener.Places.Limits = admission.Limits{Total: bound, PerHost: bound}
	log := serverlog.New(serverlog.Config{Out: said})
	c := Config{Handler: handler, Log: log,
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) }}
	s.url = "http://" + s.address
	if secure {
		s.url = "https://" + s.address
		c.TLS, s.client.Transport.(*http.Transport).TLSClientConfig = certificate()
	}
	s.Server = start(s.listener, c)
	t.Cleanup(func() { s.Close(); log.Close() })
	return s
}

type connKey struct{}

// connect opens a connection that sends text and reports on ended when the connection is closed.
func (s *site) connect(t *testing.T, sends string, ended chan<- bool) {
	t.Helper()
	c := must.Get(net.Dial("tcp", s.address))(t)
	t.Cleanup(func() { c.Close() })
	must.Get(io.WriteString(c, sends))(t)
	go func() {
		io.Copy(io.Discard, c)
		ended <- true
	}()
}

func await(t *testing.T, text string, ended <-chan bool, n int) {
	t.Helper()
	for i := range n {
		select {
		case <-ended:
		case <-time.After(testTimeout):
			t.Fatalf("%s: %d of %d", text, i, n)
		}
	}
}

// clientHello returns the first message of a TLS handshake.
func clientHello() string {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	go tls.Client(near, &tls.Config{InsecureSkipVerify: true}).Handshake()
	hello := make([]byte, 16<<10)
	n, _ := far.Read(hello)
	return string(hello[:n])
}

// TestServer_HostileClients fills a server of 8 slots with 40 connections that never send a whole request. It
// keeps 8 connections, and a normal client from the same address is served.
func TestServer_HostileClients(t *testing.T) {
	const places, hostile = 8, 40
	for name, c := range map[string]struct {
		secure bool
		sends  string
	}{
		"silent":                          {false, ""},
		"silent, TLS":                     {true, ""},
		"ClientHello, then nothing":       {true, clientHello()},
		"half a ClientHello":              {true, clientHello()[:20]},
		"header without an end":           {false, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: "},
		"a request and a half":            {false, "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HT"},
		"body without an end":             {false, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"},
		"a request, then silence forever": {false, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, c.secure, places, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, "metrics")
			}))
			ended := make(chan bool, hostile)
			for range hostile {
				s.connect(t, c.sends, ended)
			}
			await(t, "evicted", ended, hostile-places)
			if open := s.open(); open != places {
				t.Errorf("%d connections are open, want %d", open, places)
			}
			answer := must.Get(s.client.Get(s.url))(t)
			page, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || string(page) != "metrics" {
				t.Errorf("%q, %v", page, err)
			}
			await(t, "evicted by the proper client", ended, 1)
			select {
			case <-ended:
				t.Error("more than one was evicted by it")
			default:
			}
		})
	}
}

// TestServer_ActiveRequestsSurvive checks which active requests survive a flood of silent connections: all, unless
// others are served and the newcomer is one more of them.
func TestServer_ActiveRequestsSurvive(t *testing.T) {
	const places, hostile = 4, 40
	for name, c := range map[string]struct {
		kept, silent int // surviving requests, and silent connections after the requests
		requests     int // in total
		survive      int
	}{
		"one among silent ones":                {0, hostile, 1, 1},
		"three among silent ones":              {0, hostile, 3, 3},
		"more than there are places":           {0, 0, places + 2, places},
		"kept, with others that have to leave": {3, 0, places + 2, places},
	} {
		t.Run(name, func(t *testing.T) {
			release, served := make(chan bool), make(chan bool)
			s := serve(t, false, places, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				conn := r.Context().Value(connKey{}).(*Conn)
				conn.Keep(r.URL.Path == "/kept")
				served <- true
				<-release
				conn.Keep(false)
				fmt.Fprint(w, r.URL.Path)
			}))
			responses := make(chan string, c.requests)
			var asking sync.WaitGroup
			for n := range c.requests {
				path := "/other"
				if n < c.kept {
					path = "/kept"
				}
				asking.Go(func() {
					answer, err := s.client.Get(s.url + path)
					if err != nil {
						responses <- ""
						return
					}
					page, _ := io.ReadAll(answer.Body)
					answer.Body.Close()
					responses <- string(page)
				})
				await(t, "served", served, 1)
			}
			ended := make(chan bool, hostile)
			for range c.silent {
				s.connect(t, "", ended)
			}
			await(t, "evicted", ended, max(c.requests+c.silent-places, 0)-(c.requests-c.survive))
			close(release)
			asking.Wait()
			survived, kept := 0, 0
			for range c.requests {
				switch <-responses {
				case "/kept":
					kept++
					fallthrough
				case "/other":
					survived++
				}
			}
			if survived != c.survive || kept != c.kept {
				t.Errorf("%d requests survived, %d of those kept; want %d, %d", survived, kept, c.survive, c.kept)
			}
		})
	}
}

// TestServer_ErrorsGoToTheLog causes a failed handshake and a handler's panic.
func TestServer_ErrorsGoToTheLog(t *testing.T) {
	for secure, want := range map[bool]string{true: "http: TLS handshake error from 127.0.0.1",
		false: "http: panic serving"} {
		s := serve(t, secure, 4, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("oops") }))
		ended := make(chan bool, 1)
		s.connect(t, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended)
		await(t, "closed", ended, 1)
		if said := <-s.said; !strings.HasPrefix(said, want) {
			t.Errorf("%q, want %q", said, want)
		}
	}
}

// TestServer_Close checks that Close ends connections and is idempotent.
func TestServer_Close(t *testing.T) {
	s := serve(t, false, 1, http.NotFoundHandler())
	ended := make(chan bool, 2)
	s.connect(t, "", ended)
	s.connect(t, "GET / HT", ended)
	await(t, "evicted", ended, 1) // so that both are accepted
	s.Close()
	s.Close()
	await(t, "closed", ended, 1)
	<-s.Ended()
	if s.Err() != http.ErrServerClosed || s.open() != 0 {
		t.Errorf("%v, %d open", s.Err(), s.open())
	}
}
