package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzRequest sends requests with any method and address, without a token and as an operator, also from another site.
// The status is never 5xx except 501, and a client without a token gets no data.
func FuzzRequest(f *testing.F) {
	const operator = "operator-token-9012"
	s, id, key := newTestServer(f, Config{Operator: operator})
	s.requests.Burst, s.failures.Burst, s.unauthenticated.Burst = 1e9, 1e9, 1e9 // other tests check the limits
	for _, target := range []string{"/", "/paths/" + key, "/runs/" + id, "/compare?first=" + id + "&second=" + id,
		"/api/v1/paths?offset=1&limit=2", "/api/v1/paths/" + key + "/runs?since=2026-11-01T00:00:00Z&limit=3",
		"/api/v1/runs/" + id + "/labels/site?value=a", "/static/units.js", "/open?token=x", "/..%2f..//x?a=%zz;b"} {
		f.Add("GET", target, "text/html", false)
		f.Add("PUT", target, "", true)
	}
	f.Fuzz(func(t *testing.T, method, target, accept string, from bool) {
		u, err := url.ParseRequestURI(target)
		if err != nil || method == "" || strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" ||
			strings.Contains(target, "/live") { // an endless stream
			return
		}
		for _, token := range []string{"", operator} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Method, r.URL, r.RequestURI = method, u, target
			r.Header.Set("Accept", accept)
			if from {
				r.Header.Set("Origin", "http://evil.example")
				r.Header.Set("Sec-Fetch-Site", "cross-site")
			}
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code >= http.StatusInternalServerError && w.Code != http.StatusNotImplemented {
				t.Errorf("%s %q: %d: %s", method, target, w.Code, w.Body)
			}
			if token == "" && strings.Contains(w.Body.String(), "far.example.net") {
				t.Errorf("%s %q: a result without a token", method, target)
			}
		}
	})
}
