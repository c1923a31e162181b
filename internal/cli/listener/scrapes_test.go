package listener

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/serverlog"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/watch"
)

func TestMetrics_Scrape(t *testing.T) {
	l, _, err := (&ListenFlags{Address: "127.0.0.1:0"}).Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := watch.NewMetrics()
	e := &Exporter{Metrics: m}
	log := serverlog.New(serverlog.Config{Out: t.Output()})
	defer log.Close()
	defer e.serve(l, "", nil, log, front("watch", "limiters")).Close()
	c := &watch.Connection{Owner: watch.Owner{Program: "rsync"}}
	c.Local, c.Remote = netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("192.0.2.7:22")
	m.Add(&watch.View{Length: time.Second,
		Connections: []watch.Observed{{Connection: c, Flows: []watch.Flow{{Direction: transfer.Up, Bytes: 1234,
			Verdict: verdict.Verdict{Shares: verdict.Shares{verdict.Bottleneck: 1}}}}}}})
	for _, accept := range []string{"", "application/openmetrics-text; version=1.0.0"} {
		request, err := http.NewRequest(http.MethodGet, "http://"+l.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Accept", accept)
		answer := must.Get(http.DefaultClient.Do(request))(t)
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		open := strings.HasSuffix(string(text), "# EOF\n")
		if err != nil || answer.StatusCode != http.StatusOK || open != (accept != "") ||
			strings.HasPrefix(answer.Header.Get("Content-Type"), "application/openmetrics-text") != open ||
			!strings.Contains(string(text), `sent_bytes_total{program="rsync",unit="",network="192.0.2.0/24",port="22"} 1234`) {
			t.Errorf("%q: %v, %s, %v\n%s", accept, answer.Status, answer.Header, err, text)
		}
	}
}

// TestFrontPage_LinksExist checks that each link of the page at / that leads to this server has an answer.
func TestFrontPage_LinksExist(t *testing.T) {
	l, _, err := (&ListenFlags{Address: "127.0.0.1:0"}).Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	log := serverlog.New(serverlog.Config{Out: t.Output()})
	defer log.Close()
	e := &Exporter{Metrics: watch.NewMetrics()}
	defer e.serve(l, "", nil, log, front("watch", "limiters")).Close()
	get := func(path string) (string, int) {
		answer := must.Get(http.Get("http://" + l.Addr().String() + path))(t)
		defer answer.Body.Close()
		text := must.Get(io.ReadAll(answer.Body))(t)
		return string(text), answer.StatusCode
	}
	page, _ := get("/")
	links := regexp.MustCompile(`href="(/[^"]*)"`).FindAllStringSubmatch(page, -1)
	if len(links) == 0 || !strings.Contains(page, "fullpipe watch") {
		t.Errorf("%d links in\n%s", len(links), page)
	}
	for _, link := range links {
		if _, code := get(link[1]); code != http.StatusOK {
			t.Errorf("%s: %d", link[1], code)
		}
	}
	if _, code := get("/other"); code != http.StatusNotFound {
		t.Errorf("/other: %d", code)
	}
}

// TestExporter_SharesThePage checks that scrapes share a page until the metrics change.
func TestExporter_SharesThePage(t *testing.T) {
	m := watch.NewMetrics()
	e := &Exporter{Metrics: m}
	first := must.Get(e.page(true))(t)
	same, _ := e.page(true)
	e.Update(func() { m.Add(&watch.View{Standing: 3}) })
	next, _ := e.page(true)
	if &first[0] != &same[0] || !strings.Contains(string(next), "fullpipe_watch_connections 3\n") {
		t.Errorf("%s", next)
	}
}

func TestMetrics_OtherHostsNeedTLS(t *testing.T) {
	for _, f := range []ListenFlags{{Address: "0.0.0.0:9909"}, {Address: ":9909"}, {Address: "[::]:9909"},
		{Address: "192.0.2.1:9909"}, {Address: "localhost"}, {Address: "127.0.0.1"},
		{Address: "192.0.2.1:9909", Cert: "c", Key: "k"}, {Address: "192.0.2.1:9909", Token: "t"},
		{Address: "127.0.0.1:0", Cert: "c"}, {Address: "127.0.0.1:0", Key: "k"},
		{Address: "127.0.0.1:0", Cert: "/dev/null", Key: "/dev/null"}, {Address: "127.0.0.1:0", Token: "/dev/null"},
		{Address: "127.0.0.1:0", Cert: "/dev/zero", Key: "/dev/zero"}, // neither has an end
		{Address: "127.0.0.1:0", Token: "/proc/self/pagemap"}} {
		var usage *exit.UsageError
		if l, _, err := f.Listen(t.Context()); !errors.As(err, &usage) {
			t.Errorf("%+v: %v, %v", f, l, err)
		}
	}
}

// Requests need the complete token, with TLS too. Other users cannot read its file.
func TestMetrics_RequireToken(t *testing.T) {
	dir := t.TempDir()
	const secret = "0123456789abcdef"
	file := filepath.Join(dir, "token")
	must.Do(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	site := httptest.NewTLSServer(nil) // for its certificate
	site.Close()
	pair := site.TLS.Certificates[0]
	der := must.Get(x509.MarshalPKCS8PrivateKey(pair.PrivateKey))(t)
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600))
		return path
	}
	f := ListenFlags{Address: "127.0.0.1:0", Token: file, Cert: write("cert", "CERTIFICATE", pair.Certificate[0]),
		Key: write("key", "PRIVATE KEY", der)}
	l, token, err := f.Listen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e := &Exporter{Metrics: watch.NewMetrics()}
	log := serverlog.New(serverlog.Config{Out: t.Output()})
	defer log.Close()
	defer e.serve(l, token, f.TLS, log, front("watch", "")).Close()
	for brought, want := range map[string]int{"": 401, secret: 401, "Bearer " + secret[1:]: 401,
		"Bearer " + secret + "0": 401,
		"Bearer " + secret:       200} {
		request, err := http.NewRequest(http.MethodGet, "https://"+l.Addr().String()+"/metrics", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", brought)
		answer := must.Get(site.Client().Do(request))(t)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("%q: %s", brought, answer.Status)
		}
	}
	for mode, text := range map[os.FileMode]string{0o644: secret, 0o600: "short", 0o400: secret + " " + secret} {
		os.Chmod(file, 0o600)
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		os.Chmod(file, mode)
		if _, err := ReadToken(t.Context(), "--listen-token-file", file); err == nil {
			t.Errorf("%v, %q: taken", mode, text)
		}
	}
}

// A web page on this host cannot read metrics by DNS rebinding.
func TestMetrics_RejectRebinding(t *testing.T) {
	e := &Exporter{Metrics: watch.NewMetrics()}
	for host, want := range map[string]int{"127.0.0.1:9909": 200, "[::1]:9909": 200, "localhost:9909": 200,
		"127.0.0.1": 200,
		"localhost": 200, "::1": 200,
		"evil.example:9909": 403, "127.0.0.1.evil.example": 403,
		"localhost.evil.example:9909": 403,
		"":                            403, "a:b:c:d": 403} {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Host = host
		answer := httptest.NewRecorder()
		requireToken(e, "").ServeHTTP(answer, request)
		if answer.Code != want {
			t.Errorf("%q is answered %d, want %d", host, answer.Code, want)
		}
	}
}

// A program's name cannot add a line or label to the metrics.
func TestMetrics_EscapeProgramNames(t *testing.T) {
	metrics := watch.NewMetrics()
	c := &watch.Connection{Owner: watch.Owner{Program: "a\"} 1\nforged{x=\"\\\u202e\x1b[2J"}}
	c.Local, c.Remote = netip.MustParseAddrPort("10.0.0.1:40000"), netip.MustParseAddrPort("192.0.2.7:22")
	metrics.Add(&watch.View{Length: time.Second,
		Connections: []watch.Observed{{Connection: c, Flows: []watch.Flow{{Direction: transfer.Up, Bytes: 1234}}}}})
	for _, open := range []bool{false, true} {
		var page strings.Builder
		must.Do(t, metrics.Write(&page, open, "test\"\n"))
		for line := range strings.Lines(page.String()) {
			if !strings.HasPrefix(line, "fullpipe_") && !strings.HasPrefix(line, "# ") {
				t.Errorf("a line of its own: %q", line)
			}
		}
		if strings.Contains(page.String(), "\x1b") || !strings.Contains(page.String(), `a\"} 1\n`) {
			t.Errorf("%q", page.String())
		}
	}
}
