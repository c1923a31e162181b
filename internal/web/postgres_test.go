package web

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/store/pgtest"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// askedAt matches the time of the request, the only difference between responses.
var askedAt = regexp.MustCompile(`(?m)^  "started_at": .*$`)

// TestPages_SameOnPostgreSQL checks that every page and document is the same with SQLite and PostgreSQL, that pages
// report a stopped database server, and that they recover.
func TestPages_SameOnPostgreSQL(t *testing.T) {
	database := pgtest.Start(t)
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	var id, key string
	serve := func(url string) *Server {
		history := must.Get(store.OpenAt(t.Context(), t.TempDir(), url))(t)
		t.Cleanup(func() { history.Close() })
		for n := range 80 {
			far, bps := "far.example.net", 90e6+1e5*float64(n%7)
			if n >= 65 {
				bps /= 2
			}
			if n%5 == 0 {
				far = "other.example.net"
			}
			doc := measureDocument(at.Add(time.Duration(n)*4*time.Hour), n, far, bps)
			encoded := must.Get(record.Encode(doc))(t)
			must.Get(history.Add(t.Context(), encoded, []byte(`{"series":[]}`)))(t)
			id, key = doc.ID, doc.PathKey
		}
		s := New(Config{History: history, Version: "test", Operator: "operator's token",
			Ours: func(*http.Request) bool { return true }})
		t.Cleanup(s.Close)
		return s
	}
	file, server := serve(""), serve(database.URL(t))
	get := func(s *Server, method, path string) (int, string) {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("Authorization", "Bearer operator's token")
		r.Header.Set("Accept", "text/html")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w.Code, askedAt.ReplaceAllString(w.Body.String(), "")
	}
	pages := []string{"/", "/?offset=1", "/paths/" + key, "/paths/" + key + "?span=week", "/paths/" + key + "?limit=3",
		"/paths/" + key + "?before=2026-11-05T00:00:00Z", "/paths/0123", "/runs/" + id,
		"/compare?first=" + id + "&second=" + id,
		"/api/v1/paths", "/api/v1/paths?limit=1&offset=1", "/api/v1/paths/" + key + "/runs?limit=7",
		"/api/v1/paths/" + key + "/runs?since=2026-11-03T00:00:00Z&before=2026-11-04T00:00:00Z",
		"/api/v1/paths/" + key + "/changes", "/api/v1/runs/" + id, "/api/v1/runs/" + id + "/samples",
		"/api/v1/compare?first=" + id + "&second=" + id}
	for _, method := range []string{"PUT", "DELETE"} {
		for _, page := range pages {
			status, want := get(file, "GET", page)
			if code, got := get(server, "GET", page); code != status || got != want || code == http.StatusInternalServerError {
				t.Errorf("%s: %d and %d\n%s\n%s", page, status, code, want, got)
			}
		}
		for _, s := range []*Server{file, server} {
			label := "/api/v1/runs/" + id + "/labels/site"
			if method == "PUT" {
				label += "?value=Bern"
			}
			if code, body := get(s, method, label); code != http.StatusOK {
				t.Errorf("%s a label: %d, %s", method, code, body)
			}
			if _, page := get(s, "GET", "/runs/"+id); strings.Contains(page, "site=Bern") != (method == "PUT") {
				t.Errorf("after %s: %s", method, page)
			}
		}
	}
	database.Stop(t, "immediate")
	if code, page := get(server, "GET", "/"); code != http.StatusServiceUnavailable { // by a connection that is lost
		t.Errorf("as the server ends: %d, %s", code, page)
	}
	if code, page := get(server, "GET", "/"); code != http.StatusServiceUnavailable ||
		!strings.Contains(page, "the history at postgres://") {
		t.Errorf("without the server: %d, %s", code, page)
	}
	database.Restart(t)
	if code, page := get(server, "GET", "/"); code != http.StatusOK {
		t.Errorf("with the server again: %d, %s", code, page)
	}
}
