package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestRetests checks that one test runs at a time, that all followers see it, and that an operator or the server's
// shutdown stops it.
func TestRetests(t *testing.T) {
	news, ends := make(chan TestNews), make(chan error)
	s, _, key := newTestServer(t, Config{Viewer: "viewer's token", Operator: "operator's token",
		Ours: func(*http.Request) bool { return true },
		Tests: &Tests{May: func(_ context.Context, p store.Series) error {
			if p.Far != "far.example.net" {
				return errors.New("not that one")
			}
			return nil
		}, Run: func(ctx context.Context, _ store.Series, each func(TestNews)) error {
			for {
				select {
				case n := <-news:
					each(n)
				case err := <-ends:
					return err
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}}})
	testenv.NoGoroutineLeft(t) // after the streams are closed
	site := httptest.NewServer(s)
	t.Cleanup(site.Close)
	// Keep-alive connections could become idle after Close has closed the idle ones.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ask := func(method, path, token string) *http.Response {
		t.Helper()
		r := must.Get(http.NewRequest(method, site.URL+path, nil))(t)
		r.Header.Set("Authorization", "Bearer "+token)
		answer := must.Get(client.Do(r))(t)
		return answer
	}
	status := func(method, path, token string) int {
		t.Helper()
		answer := ask(method, path, token)
		answer.Body.Close()
		return answer.StatusCode
	}
	begin := "/api/v1/paths/" + key + "/retest"
	follow := func() func() record.PageTest {
		answer := ask("GET", "/api/v1/retest", "viewer's token")
		t.Cleanup(func() { answer.Body.Close() })
		lines := bufio.NewScanner(answer.Body)
		return func() (doc record.PageTest) {
			for lines.Scan() {
				if text, is := strings.CutPrefix(lines.Text(), "data: "); is {
					if err := json.Unmarshal([]byte(text), &doc); err != nil {
						t.Error(err)
					}
					return doc
				}
			}
			doc.State = "the stream has ended"
			return doc
		}
	}
	if doc := follow()(); doc.State != record.NoTest {
		t.Errorf("%+v", doc)
	}
	for _, c := range []struct {
		method, path, token string
		want                int
	}{{"POST", begin, "viewer's token", 403}, {"POST", "/api/v1/paths/0123/retest", "operator's token", 404},
		{"POST", begin, "operator's token", 200}, {"POST", begin, "operator's token", 409},
		{"DELETE", "/api/v1/retest", "viewer's token", 403}} {
		if got := status(c.method, c.path, c.token); got != c.want {
			t.Errorf("%s %s by %s: %d, want %d", c.method, c.path, c.token, got, c.want)
		}
	}
	next := follow()
	if doc := next(); doc.State != record.TestRuns || doc.PathKey != key {
		t.Errorf("%+v", doc)
	}
	news <- TestNews{Direction: "up", AtS: 1, GoodputBps: 9e7}
	if doc := next(); doc.GoodputBps == nil || *doc.GoodputBps != 9e7 || doc.Direction != "up" {
		t.Errorf("%+v", doc)
	}
	news <- TestNews{Said: "a dip\u202e"}
	if doc := next(); doc.Results != 1 || doc.Said != `a dip\u202e` || doc.GoodputBps != nil {
		t.Errorf("%+v", doc)
	}
	ends <- errors.New("the far end is <b>gone</b>")
	if doc := next(); doc.State != record.TestFailed || doc.Error == nil || next().State != "the stream has ended" {
		t.Errorf("%+v", doc)
	}
	for _, c := range []struct {
		token, want string
	}{{"operator's token", "failed: the far end is &lt;b&gt;gone&lt;/b&gt;"}, {"operator's token", "test again now"}} {
		answer := ask("GET", "/paths/"+key, c.token)
		page := new(strings.Builder)
		_, err := bufio.NewReader(answer.Body).WriteTo(page)
		answer.Body.Close()
		if err != nil || !strings.Contains(page.String(), c.want) {
			t.Errorf("no %s in %s", c.want, page)
		}
	}
	if got := status("POST", "/paths/"+key+"/retest", "operator's token"); got != 200 { // and led back
		t.Errorf("the form: %d", got)
	}
	next = follow()
	next()
	if got := status("DELETE", "/api/v1/retest", "operator's token"); got != 200 {
		t.Errorf("to stop it: %d", got)
	}
	if doc := next(); doc.State != record.TestStopped {
		t.Errorf("%+v", doc)
	}
	if got := status("POST", begin, "operator's token"); got != 200 {
		t.Errorf("after a stop: %d", got)
	}
	s.Close() // which ends the test
	if got := status("POST", begin, "operator's token"); got != 503 {
		t.Errorf("after the end: %d", got)
	}
	site.Close()
}

// TestRetest_ImportedPath checks that a path is not tested if all its results were imported, also from
// this host's export.
func TestRetest_ImportedPath(t *testing.T) {
	s, id, key := newTestServer(t, Config{Operator: "operator's token",
		Tests: &Tests{May: func(context.Context, store.Series) error { return nil },
			Run: func(context.Context, store.Series, func(TestNews)) error { return nil }}})
	asOperator := func(r *http.Request) { r.Header.Set("Authorization", "Bearer operator's token") }
	retest := "/api/v1/paths/" + key + "/retest"
	if w := ask(s, "POST", retest, asOperator); w.Code != http.StatusOK {
		t.Errorf("measured here: %d: %s", w.Code, w.Body)
	}
	exported, samples, err := s.cfg.History.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	other := must.Get(store.Open(t.Context(), t.TempDir()))(t)
	defer other.Close()
	must.Get(other.Add(t.Context(), exported, samples))(t)
	s.retests.running.Wait()
	s.cfg.History = other
	if w := ask(s, "POST", retest, asOperator); w.Code != http.StatusNotImplemented ||
		!strings.Contains(w.Body.String(), "measured on this host") {
		t.Errorf("imported: %d: %s", w.Code, w.Body)
	}
}
