package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/hub"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// said is the output of a command.
type said struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
	more chan bool // has room for one: text has grown
}

func newSaid() *said { return &said{more: make(chan bool, 1)} }

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.more <- true:
	default:
	}
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// await waits for a match in the output and returns its last part.
func (s *said) await(t *testing.T, pattern *regexp.Regexp) string {
	t.Helper()
	late := time.After(20 * time.Second)
	for {
		if found := pattern.FindAllStringSubmatch(s.String(), -1); found != nil {
			return found[len(found)-1][1]
		}
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("not said: %v: %s", pattern, s)
		}
	}
}

// pausable is an output that nobody reads for a while.
type pausable struct {
	io.Writer
	paused sync.RWMutex // locked for writing: there is no reader
}

func (p *pausable) Write(text []byte) (int, error) {
	p.paused.RLock()
	defer p.paused.RUnlock()
	return p.Writer.Write(text)
}

// pemFiles writes a certificate and its key.
func pemFiles(t *testing.T) (cert, key string) {
	t.Helper()
	site := httptest.NewTLSServer(nil) // for its certificate
	site.Close()
	pair := site.TLS.Certificates[0]
	der := must.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		key: {Type: "PRIVATE KEY", Bytes: der}} {
		must.Do(t, os.WriteFile(name, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// floodedServer is a command with listeners.
type floodedServer struct {
	args      []string
	hub       bool     // a command of fullpipe-hub
	member    bool     // of a fleet: needs a hub
	addresses []string // patterns of its output, one for each listener
	udp       bool     // the last one has a port for datagrams too
	quiet     bool     // strangers cause no line
}

// floodedServers returns a row for each listener of the programs: TestEveryListenerIsFlooded compares.
func floodedServers(t *testing.T, cert, key, keys string) map[string]floodedServer {
	const (
		native = `listens on (\S+)\n`
		web    = `speed test for browsers: https?://([^/]+)/test`
		page   = `https?://([^/\s]+)/`
		port   = "127.0.0.1:0"
	)
	with := func(args []string, more ...string) []string { return append(args[:len(args):len(args)], more...) }
	serve := []string{"serve", "--listen", port}
	serveWeb := with(serve, "--no-history", "--web", port)
	ui := []string{"ui", "--no-open"}
	watch := []string{"watch", "--listen", port}
	recheck := []string{"recheck", "127.0.0.1:1", "--key", strings.Repeat("5a", 32), "--every", "6h", "--listen", port}
	pair := []string{"--listen-cert", cert, "--listen-key", key}
	iperf3Port := strconv.Itoa(testenv.FreePort(t, 1))
	return map[string]floodedServer{
		"serve":                 {args: serve, addresses: []string{native}},
		"serve --json":          {args: with(serve, "--json"), addresses: []string{`"listen":"([^"]+)"`}},
		"serve --keys, no file": {args: with(serve, "--keys", keys), addresses: []string{native}},
		"serve --iperf3":        {args: with(serve, "--iperf3"), addresses: []string{native}, udp: true},
		"serve --iperf2": {args: with(serve, "--iperf2="+port), udp: true,
			addresses: []string{native, `iperf -c \S+ -p (\d+)`}},
		"serve --web": {args: serveWeb, addresses: []string{native, web}},
		"serve --web, TLS": {args: with(serveWeb, "--web-cert", cert, "--web-key", key),
			addresses: []string{native, web}},
		"iperf3 -s": {args: []string{"iperf3", "-s", "-B", "127.0.0.1", "-p", iperf3Port}, udp: true,
			addresses: []string{`listening on (\d+) `}},
		"ui":                    {quiet: true, args: ui, addresses: []string{page}},
		"ui, TLS":               {args: with(ui, pair...), addresses: []string{page}},
		"watch --listen":        {quiet: true, args: watch, addresses: []string{page}},
		"watch --listen, TLS":   {args: with(watch, pair...), addresses: []string{page}},
		"recheck --listen":      {quiet: true, args: recheck, addresses: []string{page}},
		"recheck --listen, TLS": {args: with(recheck, pair...), addresses: []string{page}},
		"fullpipe-hub serve": {hub: true, args: []string{"serve", "--json", "--listen", port, "--page", port},
			addresses: []string{`"urls":\["https://([^"]+)"`, `"open":"http://([^/]+)/`}},
		"agent": {quiet: true, member: true, args: []string{"agent", "--listen", port}, addresses: []string{`ready  (\S+)`}},
	}
}

// attacks returns what strangers send, by kind. It returns false if the listener has no TLS.
func attacks() map[string]func(c net.Conn) bool {
	send := func(text string) func(net.Conn) bool {
		return func(c net.Conn) bool { io.WriteString(c, text); return true }
	}
	inTLS := func(text string) func(net.Conn) bool {
		return func(c net.Conn) bool {
			c.SetDeadline(time.Now().Add(5 * time.Second))
			secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
			if secure.Handshake() != nil {
				return false
			}
			io.WriteString(secure, text)
			io.Copy(io.Discard, secure)
			return true
		}
	}
	cookie := iperf3.NewCookie()
	const request = " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
	return map[string]func(net.Conn) bool{
		"silent":                    send(""),
		"garbage":                   send(strings.Repeat("x", 200)),
		"broken ClientHello":        send("\x16\x03\x01\x00\x10" + strings.Repeat("\xff", 16)),
		"ClientHello of TLS 1.0":    send(clientHello(tls.VersionTLS10)),
		"half a ClientHello":        send(clientHello(tls.VersionTLS13)[:20]),
		"marker without TLS":        send(string(probe.Marker[:]) + "no ClientHello"),
		"iperf3 without parameters": send(string(cookie[:]) + "\x00\x00\x00\x01?"),
		"request":                   send("GET /" + request + "\r\n"),
		"garbage in TLS":            inTLS(strings.Repeat("x", 200) + "\r\n\r\n"),
		"join in TLS":               inTLS("POST " + bus.JoinPath + request + "Content-Length: 2\r\n\r\n{}"),
	}
}

// clientHello returns the first message of a TLS handshake up to a version.
func clientHello(version uint16) string {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: version}
	go tls.Client(near, config).Handshake()
	hello := make([]byte, 16<<10)
	n, _ := far.Read(hello)
	return string(hello[:n])
}

// TestServers_FloodedLogs has strangers of many kinds connect to each listener while nobody reads the command's output:
// at most 36 lines are printed, a burst of 24, 6 in a minute and how many more there were of each kind. A command may
// print a few lines of its own, as about its connection to a hub.
func TestServers_FloodedLogs(t *testing.T) {
	const clients, maxLines, ownLines = 40, 36, 3
	t.Setenv("FULLPIPE_HISTORY", t.TempDir())
	cert, key := pemFiles(t)
	keys := filepath.Join(t.TempDir(), "keys.toml")
	servers := floodedServers(t, cert, key, keys)
	for name, c := range servers {
		t.Run(name, func(t *testing.T) {
			t.Setenv("FULLPIPE_STATE", t.TempDir())
			if c.member {
				_, join, end := startFlooded(t, servers["fullpipe-hub serve"], `"join":"([^"]+)"`)
				defer end()
				t.Setenv(secret.Join, join[0])
			}
			if err := os.WriteFile(keys, []byte("[key.a]\nsecret = \""+strings.Repeat("5a", 32)+"\"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			out, addresses, end := startFlooded(t, c, c.addresses...)
			defer end()
			must.Do(t, os.Remove(keys))
			before := strings.Count(out.text.String(), "\n")
			out.paused.Lock()
			for i, address := range addresses {
				if !strings.Contains(address, ":") {
					address = "127.0.0.1:" + address
				}
				for kind, attack := range attacks() {
					if !flood(address, attack, clients) {
						t.Errorf("%s: %s: not all clients were thrown out", address, kind)
					}
				}
				if c.udp && i == len(addresses)-1 {
					floodDatagrams(t, address, clients)
				}
			}
			out.paused.Unlock()
			end()
			text := out.text.String()
			lines := strings.Count(text, "\n") - before
			most := maxLines
			if c.quiet {
				most = ownLines
			}
			if lines > most || !c.quiet && !summary.MatchString(text) {
				t.Errorf("%d lines, want at most %d and a summary: %s", lines, most, text)
			}
			if n := strings.Count(text, "the keys stay as they were"); n > 1 {
				t.Errorf("said %d times that the keys stay as they were", n)
			}
		})
	}
}

// summary is the last line of a flooded log.
var summary = regexp.MustCompile(`\d+ more (of this kind|clients failed)|"event":"suppressed"`)

// floodedOutput is both outputs of a command.
type floodedOutput struct {
	pausable
	text *said
}

// startFlooded starts a command in this process, and returns what its output has at each pattern. end waits for it.
func startFlooded(t *testing.T, c floodedServer, patterns ...string) (out *floodedOutput, found []string, end func()) {
	t.Helper()
	text := newSaid()
	out = &floodedOutput{pausable: pausable{Writer: text}, text: text}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		if c.hub {
			ended <- hub.Run(ctx, append([]string{"fullpipe-hub"}, c.args...), strings.NewReader(""), out, out)
			return
		}
		ended <- run(ctx, c.args, console.NewStreams(strings.NewReader(""), out, out))
	}()
	for _, pattern := range patterns {
		found = append(found, text.await(t, regexp.MustCompile(pattern)))
	}
	return out, found, sync.OnceFunc(func() { stop(); <-ended })
}

// flood has clients of a kind come at once, and reports whether all were thrown out.
func flood(address string, attack func(net.Conn) bool, clients int) bool {
	var coming sync.WaitGroup
	var stayed atomic.Int32
	for range clients {
		coming.Go(func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				stayed.Add(1)
				return
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(20 * time.Second))
			if !attack(c) {
				return
			}
			c.(*net.TCPConn).CloseWrite()
			_, err = io.CopyN(io.Discard, c, 64<<10) // iperf 2 may take it for a request to send
			if errors.Is(err, os.ErrDeadlineExceeded) {
				stayed.Add(1)
			}
		})
	}
	coming.Wait()
	return stayed.Load() == 0
}

// floodDatagrams sends datagrams, empty and of several sizes.
func floodDatagrams(t *testing.T, address string, count int) {
	t.Helper()
	c := must.Get(net.Dial("udp", address))(t)
	defer c.Close()
	for i := range count {
		c.Write(bytes.Repeat([]byte{byte(i)}, 4*i)) // a datagram that is lost is no fault
	}
}
