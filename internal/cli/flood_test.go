package cli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
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
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]},
		key: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestServers_FloodedLogs has 60 clients fail at each server: 30 lines of their kind are printed,
// and how many more there were. A reader that does not read delays no server.
func TestServers_FloodedLogs(t *testing.T) {
	const clients, atOnce = 60, 30
	t.Setenv("FULLPIPE_HISTORY", t.TempDir())
	cert, key := pemFiles(t)
	keys := filepath.Join(t.TempDir(), "keys.toml")
	notTLS := "no ClientHello"
	cookie := iperf3.NewCookie()
	foul := string(cookie[:]) + "\x00\x00\x00\x01?" // no parameters
	for name, c := range map[string]struct {
		args    []string
		address string // in its output
		sends   string
		kind    string // of the lines that are counted
		more    string // the summary; "": as text
	}{
		"serve": {[]string{"serve", "--listen", "127.0.0.1:0"}, `listens on (\S+)\n`, strings.Repeat("x", 37), "refused",
			""},
		"serve --json": {[]string{"serve", "--listen", "127.0.0.1:0", "--json"}, `"listen":"([^"]+)"`,
			strings.Repeat("x", 37), `"event":"refused"`, `"event":"suppressed","of":"refused","count":30`},
		"serve --keys, the file missing": {[]string{"serve", "--listen", "127.0.0.1:0", "--keys", keys},
			`listens on (\S+)\n`, string(probe.Marker[:]) + notTLS, "no proof of the key", ""},
		"serve --web": {[]string{"serve", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0", "--web-cert", cert,
			"--web-key", key, "--no-history"}, `https://([^/]+)/test\n`, notTLS, "TLS handshake error", ""},
		"ui": {[]string{"ui", "--no-open", "--listen-cert", cert, "--listen-key", key}, `https://([^/]+)/`, notTLS,
			"TLS handshake error", ""},
		"watch --listen": {[]string{"watch", "--listen", "127.0.0.1:0", "--listen-cert", cert, "--listen-key", key},
			`https://([^/]+)/`, notTLS, "TLS handshake error", ""},
		"recheck --listen": {[]string{"recheck", "127.0.0.1:1", "--key", strings.Repeat("5a", 32), "--every", "6h",
			"--listen", "127.0.0.1:0", "--listen-cert", cert, "--listen-key", key}, `https://([^/]+)/`,
			notTLS, "TLS handshake error", ""},
		"iperf3 -s": {[]string{"iperf3", "-s", "-B", "127.0.0.1", "-p", strconv.Itoa(testenv.FreePort(t, 1))},
			`listening on (\d+) `, foul, "iperf3: error", ""},
	} {
		for _, read := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, read %v", name, read), func(t *testing.T) {
				if err := os.WriteFile(keys, []byte("[key.a]\nsecret = \""+strings.Repeat("5a", 32)+"\"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				out := newSaid()
				prints, errs := &pausable{Writer: out}, &pausable{Writer: out}
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan int, 1)
				go func() { ended <- run(ctx, c.args, console.NewStreams(strings.NewReader(""), prints, errs)) }()
				defer func() { stop(); <-ended }()
				address := out.await(t, regexp.MustCompile(c.address))
				if !strings.Contains(address, ":") {
					address = "127.0.0.1:" + address
				}
				if err := os.Remove(keys); err != nil {
					t.Fatal(err)
				}
				if !read {
					prints.paused.Lock()
					errs.paused.Lock()
				}
				threw := flood(t, address, c.sends, clients)
				if !read {
					prints.paused.Unlock()
					errs.paused.Unlock()
				}
				if threw != clients {
					t.Errorf("%d of %d clients were thrown out", threw, clients)
				}
				stop()
				ended <- <-ended
				if n := strings.Count(out.String(), "the keys stay as they were"); read && n > 1 {
					t.Errorf("said %d times that the keys stay as they were", n)
				}
				if n := strings.Count(out.String(), "Server listening"); read && name == "iperf3 -s" && n != atOnce+2 {
					t.Errorf("standard output has %d clients, want one before, %d at once and one in the summary", n, atOnce)
				}
				if read {
					checkFlooded(t, out.String(), c.kind, cmp.Or(c.more, "30 more of this kind, the last: "), atOnce)
				}
			})
		}
	}
}

// checkFlooded counts the lines of a kind, and looks for their summary.
func checkFlooded(t *testing.T, text, kind, more string, atOnce int) {
	t.Helper()
	lines := strings.Count(text, kind)
	if more[0] != '"' {
		lines-- // the last one in the summary
	}
	if lines != atOnce || !strings.Contains(text, more) {
		t.Errorf("%d lines, want %d and %s: %s", lines, atOnce, more, text)
	}
}

// flood has clients come one after the other and send something, and counts those that were thrown
// out. It ends at one that was not.
func flood(t *testing.T, address, sends string, clients int) (threw int) {
	t.Helper()
	for threw = range clients {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return threw
		}
		c.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(c, sends)
		_, err = io.Copy(io.Discard, c)
		c.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return threw
		}
	}
	return clients
}
