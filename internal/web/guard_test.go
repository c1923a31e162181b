package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// newTestServer returns a server with a history of one path, and the ID and path key of its newest result.
func newTestServer(t testing.TB, cfg Config) (s *Server, id, key string) {
	t.Helper()
	history := must.Get(store.Open(t.Context(), t.TempDir()))(t)
	t.Cleanup(func() { history.Close() })
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	for n := range 80 {
		bps := 90e6 + 1e5*float64(n%7)
		if n >= 65 {
			bps /= 2
		}
		doc := measureDocument(at.Add(time.Duration(n)*4*time.Hour), n, "far.example.net", bps)
		encoded := must.Get(record.Encode(doc))(t)
		must.Do(t, history.Keep(t.Context(), encoded, []byte(`{"series":[]}`)))
		id, key = doc.ID, doc.PathKey
	}
	cfg.History, cfg.Version = history, "test"
	if cfg.Ours == nil {
		cfg.Ours = func(r *http.Request) bool { return r.Host == "example.com" } // the Host of httptest.NewRequest
	}
	s = New(cfg)
	t.Cleanup(s.Close)
	return s, id, key
}

// measureDocument returns the document of a measurement.
func measureDocument(at time.Time, n int, far string, bps float64) *record.Measure {
	d := record.Direction{Direction: "up", GoodputBps: &bps, RTTMin: units.Duration(40 * time.Millisecond),
		Streams: []record.Stream{}}
	d.Limiter = "bottleneck"
	return &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test", StartedAt: at,
		Envelope: &record.Envelope{ID: record.NewID(at, [10]byte{byte(n), byte(n >> 8), byte(n >> 16)}),
			Origin: record.Manual, Outcome: record.Done, PathKey: record.SeriesID{Far: far}.Key()}},
		Peer: far, Directions: []record.Direction{d}}
}

func ask(s *Server, method, address string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, address, nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// opened is the page's address and the cookie of who opened it.
func openedBy(t testing.TB, s *Server, token string) (base string, cookie *http.Cookie) {
	t.Helper()
	w := ask(s, "GET", "/open?token="+token, nil)
	cookies := w.Result().Cookies()
	if w.Code != http.StatusOK || len(cookies) != 1 {
		t.Fatalf("%d, %v: %s", w.Code, cookies, w.Body)
	}
	return strings.TrimSuffix(cookies[0].Path, "/"), cookies[0]
}

func TestServer_Access(t *testing.T) {
	const opening, viewer, operator = "opening-token-0123", "viewer-token-45678", "operator-token-9012"
	s, id, _ := newTestServer(t, Config{Opening: opening, Viewer: viewer, Operator: operator})
	base, cookie := openedBy(t, s, opening)
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != base+"/" || len(base) < 20 ||
		cookie.MaxAge != 0 || strings.Contains(cookie.Value, opening) {
		t.Errorf("%+v", cookie)
	}
	with := func(c *http.Cookie, headers ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.AddCookie(c)
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
		}
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	host := func(name string, more func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) { r.Host = name; more(r) }
	}
	label := "/api/v1/runs/" + id + "/labels/site?value=Bern"
	for name, c := range map[string]struct {
		method, address string
		change          func(*http.Request)
		want            int
	}{
		"the cookie":                     {"GET", base + "/", with(cookie), 200},
		"the cookie, API":                {"GET", base + "/api/v1/paths", with(cookie), 200},
		"the cookie without its path":    {"GET", "/", with(cookie), 401},
		"the path without its cookie":    {"GET", base + "/", nil, 401},
		"another cookie":                 {"GET", base + "/", with(&http.Cookie{Name: cookieName, Value: "x"}), 401},
		"another path":                   {"GET", "/s/AAAA/", with(cookie), 401},
		"nothing":                        {"GET", "/", nil, 401},
		"no token, API":                  {"GET", "/api/v1/paths", nil, 401},
		"no token, live":                 {"GET", "/api/v1/live", nil, 401},
		"a wrong token in the address":   {"GET", "/open?token=x", nil, 401},
		"no token in the address":        {"GET", "/open", nil, 401},
		"a viewer's token in an address": {"GET", "/open?token=" + viewer, nil, 401},
		"foreign host name":              {"GET", base + "/", host("attacker.example", with(cookie)), 421},
		"foreign host name with a token": {"GET", "/api/v1/paths", host("attacker.example", bearer(viewer)), 421},
		"foreign host name, /open": {"GET", "/open?token=" + opening,
			host("attacker.example", func(*http.Request) {}), 421},
		"page of another site": {"GET", base + "/api/v1/paths", with(cookie, "Sec-Fetch-Site", "cross-site"),
			403},
		"a page of another port": {"GET", base + "/", with(cookie, "Sec-Fetch-Site", "same-site"), 403},
		"form of another site": {"PUT", base + label, with(cookie, "Sec-Fetch-Site", "cross-site", "Origin",
			"https://attacker.example"), 403},
		"form of an old browser": {"PUT", base + label, with(cookie, "Origin", "https://attacker.example"), 403},
		"a viewer reads":         {"GET", "/api/v1/paths", bearer(viewer), 200},
		"a viewer labels":        {"PUT", label, bearer(viewer), 403},
		"an operator labels":     {"PUT", label, bearer(operator), 200},
		"the cookie labels":      {"PUT", base + label, with(cookie, "Sec-Fetch-Site", "same-origin"), 200},
		"half a token":           {"GET", "/api/v1/paths", bearer(viewer[1:]), 401},
		"style":                  {"GET", "/static/ui.css", nil, 200},
		"path traversal":         {"GET", "/static/../web.go", nil, 401},
		"no such page":           {"GET", base + "/nothing", with(cookie), 404},
		"no such path":           {"GET", base + "/api/v1/paths/0123/runs", with(cookie), 404},
		"no such run":            {"GET", base + "/api/v1/runs/0000", with(cookie), 404},
		"invalid number":         {"GET", base + "/api/v1/paths?limit=-1", with(cookie), 400},
	} {
		w := ask(s, c.method, c.address, c.change)
		if w.Code != c.want && !(name == "path traversal" && w.Code/100 == 3) {
			t.Errorf("%s: %d, want %d: %.200s", name, w.Code, c.want, w.Body)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") ||
			strings.Contains(csp, "unsafe") || w.Header().Get("Access-Control-Allow-Origin") != "" ||
			w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
}

// TestOpen_TypedToken checks that a typed token opens a session, except from a form of another site.
func TestOpen_TypedToken(t *testing.T) {
	const viewer = "viewer-token-45678"
	s, id, _ := newTestServer(t, Config{Viewer: viewer})
	post := func(token string, change func(*http.Request)) *httptest.ResponseRecorder {
		body := url.Values{"token": {token}}.Encode()
		r := httptest.NewRequest("POST", "https://example.com/open", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if change != nil {
			change(r)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	if w := post(viewer, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); w.Code != 403 {
		t.Errorf("another site's form: %d", w.Code)
	}
	w := post(viewer, nil)
	cookies := w.Result().Cookies()
	if w.Code != 200 || len(cookies) != 1 || !cookies[0].Secure {
		t.Fatalf("%d, %v", w.Code, cookies)
	}
	base := strings.TrimSuffix(cookies[0].Path, "/")
	if w := ask(s, "PUT", base+"/api/v1/runs/"+id+"/labels/a?value=b", func(r *http.Request) {
		r.AddCookie(cookies[0])
	}); w.Code != 403 {
		t.Errorf("a viewer labels: %d", w.Code)
	}
	codes := map[int]int{}
	for range 30 {
		codes[post("x", nil).Code]++
	}
	if codes[401] != 10 || codes[429] != 20 {
		t.Errorf("thirty wrong tokens: %v", codes)
	}
	if w := post("x", func(r *http.Request) { r.RemoteAddr = "198.51.100.7:1" }); w.Code != 401 {
		t.Errorf("from another address: %d", w.Code)
	}
}

func TestServer_LimitsRequestsPerSession(t *testing.T) {
	s, _, _ := newTestServer(t, Config{Opening: "opening-token-0123"})
	base, cookie := openedBy(t, s, "opening-token-0123")
	other, second := openedBy(t, s, "opening-token-0123")
	refused := 0
	for range 5000 {
		if w := ask(s, "GET", base+"/api/v1/openapi.json", func(r *http.Request) { r.AddCookie(cookie) }); w.Code == 429 {
			refused++
		}
	}
	if refused == 0 {
		t.Error("none of 5000 requests at once was refused")
	}
	if w := ask(s, "GET", other+"/", func(r *http.Request) { r.AddCookie(second) }); w.Code != 200 {
		t.Errorf("another session: %d", w.Code)
	}
}

func TestServer_LimitsSessions(t *testing.T) {
	s, _, _ := newTestServer(t, Config{Opening: "opening-token-0123"})
	base, cookie := openedBy(t, s, "opening-token-0123")
	for range maxSessions {
		openedBy(t, s, "opening-token-0123")
	}
	if len(s.sessions) > maxSessions {
		t.Errorf("%d sessions", len(s.sessions))
	}
	if w := ask(s, "GET", base+"/", func(r *http.Request) { r.AddCookie(cookie) }); w.Code != 401 {
		t.Errorf("the oldest: %d", w.Code)
	}
}

// TestServer_LimitsUnauthenticatedRequests checks that requests without a session are limited on every path, and that
// the refusal closes the connection.
func TestServer_LimitsUnauthenticatedRequests(t *testing.T) {
	s, _, _ := newTestServer(t, Config{Opening: "opening-token-0123"})
	base, cookie := openedBy(t, s, "opening-token-0123")
	for i, path := range []string{"/", "/open?token=x", "/static/ui.css", "/s/AAAA/", "/api/v1/paths"} {
		refused := 0
		for range 1000 {
			if w := ask(s, "GET", path, func(r *http.Request) { r.RemoteAddr = "198.51.100.7:1" }); w.Code == 429 {
				if refused++; w.Header().Get("Connection") != "close" {
					t.Fatalf("%s: the connection stays open", path)
				}
			}
		}
		if refused < 500 {
			t.Errorf("%d: %s: %d of 1000 refused", i, path, refused)
		}
	}
	if w := ask(s, "GET", base+"/", func(r *http.Request) {
		r.AddCookie(cookie)
		r.RemoteAddr = "198.51.100.7:1"
	}); w.Code != 200 {
		t.Errorf("a session of that address: %d", w.Code)
	}
}
