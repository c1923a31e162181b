package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// Paths that each role may read, written independently of the tested table.
var (
	looksWithoutToken = []string{"/static/"}
	looksAsViewer     = []string{"/{$}", "/paths/{key}", "/runs/{id}", "/runs/{id}/style.css", "/compare", "/live",
		"/api/v1/paths", "/api/v1/paths/{key}/runs", "/api/v1/paths/{key}/changes", "/api/v1/runs/{id}",
		"/api/v1/runs/{id}/samples", "/api/v1/compare", "/api/v1/retest", "/api/v1/live", "/api/v1/openapi.json",
		"/test/{id}"}
	looksAsOperator = []string{"/ndt/v7/download", "/ndt/v7/upload", "/test", "/test/may", "/test/echo"}
)

// TestRoutes_Roles requests every route with every role and method: a viewer only reads and starts no test.
func TestRoutes_Roles(t *testing.T) {
	const viewer, operator = "viewer-token-45678", "operator-token-9012"
	s, id, key := newTestServer(t, Config{Viewer: viewer, Operator: operator,
		Speed: NewSpeed(SpeedConfig{Version: "test"})})
	s.inside.mux.HandleFunc("/later", func(http.ResponseWriter, *http.Request) {}) // not in the table
	paths := map[string]bool{"/later": true, "/nothing": true}
	for _, one := range s.routes() {
		method, path, ok := strings.Cut(one.pattern, " ")
		if !ok {
			t.Errorf("%s: a pattern without a method", one.pattern)
		}
		if known := slices.Concat(looksWithoutToken, looksAsViewer, looksAsOperator); method == "GET" &&
			!slices.Contains(known, path) {
			t.Errorf("%s: no role is listed in this test", one.pattern)
		}
		paths[path] = true
	}
	asked := 0
	status := func(method, path, token string) int {
		path = strings.NewReplacer("{$}", "", "{key}", key, "{id}", id, "{name}", "site", "{run}", "x").Replace(path)
		if path == "/static/" {
			path += "ui.css"
		}
		return ask(s, method, path, func(r *http.Request) {
			asked++ // each from a different address, so that none is limited
			r.RemoteAddr = fmt.Sprintf("198.18.%d.%d:1", asked/256, asked%256)
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
		}).Code
	}
	for path := range paths {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"} {
			readOnly := method == "GET" || method == "HEAD"
			public := readOnly && slices.Contains(looksWithoutToken, path)
			if got := status(method, path, ""); (got == 401) == public {
				t.Errorf("%s %s without a token: %d", method, path, got)
			}
			may := readOnly && !slices.Contains(looksAsOperator, path)
			if got := status(method, path, viewer); got == 401 && !public || (got == 403) == may {
				t.Errorf("%s %s as a viewer: %d", method, path, got)
			}
			if got := status(method, path, operator); got == 401 || got == 403 {
				t.Errorf("%s %s as an operator: %d", method, path, got)
			}
		}
	}
}
