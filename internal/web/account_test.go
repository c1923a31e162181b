package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// typed opens a session with a typed token. Without a session cookie is nil.
func typed(s *Server, token, from string) (base string, cookie *http.Cookie) {
	r := httptest.NewRequest("POST", "/open", strings.NewReader(url.Values{"token": {token}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.RemoteAddr = from
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		return strings.TrimSuffix(c.Path, "/"), c
	}
	return "", nil
}

// TestSession_RoleOfNow changes a user while a session of the user is open: the session may what the token may, on the
// next request and on each following server.
func TestSession_RoleOfNow(t *testing.T) {
	const token = "bobs-token-0123456789"
	s := fleetSite(t, 3)
	fleet := s.cfg.Fleet.Store
	set := func(role, token string) {
		t.Helper()
		err := fleet.SetAccount(t.Context(), store.Account{Name: "bob", Role: role, TokenHash: hashOf(token)})
		if err != nil {
			t.Fatal(err)
		}
	}
	set("admin", token)
	base, cookie := typed(s, token, "192.0.2.1:1")
	if cookie == nil {
		t.Fatal("no session")
	}
	requests := []struct{ method, path string }{{"GET", "/api/v1/fleet/hosts"}, {"POST", "/api/v1/fleet/test?a=x&b=y"},
		{"POST", "/api/v1/fleet/tokens"}, {"POST", meshPath}, {"DELETE", "/api/v1/fleet/hosts/nobody"}}
	for _, step := range []struct {
		name, role, token string
		want              [5]int // of requests; unknown hosts are other errors
	}{
		{"an admin", "admin", token, [5]int{200, 400, 200, 200, 404}},
		{"an operator", "operator", token, [5]int{200, 400, 403, 403, 403}},
		{"a viewer", "viewer", token, [5]int{200, 403, 403, 403, 403}},
		{"an unknown role", "root", token, [5]int{401, 401, 401, 401, 401}},
	} {
		set(step.role, step.token)
		for i, one := range requests {
			got := ask(s, one.method, base+one.path, func(r *http.Request) { r.AddCookie(cookie) }).Code
			if got != step.want[i] {
				t.Errorf("%s: %s %s: %d, want %d", step.name, one.method, one.path, got, step.want[i])
			}
		}
	}
	for name, change := range map[string]func(){
		"removed":          func() { set("", "") },
		"has a new token":  func() { set("admin", "another-token-012345") },
		"hub starts again": func() { s = New(s.cfg); t.Cleanup(s.Close) },
	} {
		set("admin", token)
		base, cookie := typed(s, token, "192.0.2.1:1")
		change()
		if w := ask(s, "POST", base+"/api/v1/fleet/tokens", func(r *http.Request) { r.AddCookie(cookie) }); w.Code != 401 {
			t.Errorf("%s: the session gets %d", name, w.Code)
		}
		set("admin", token)
		if w := ask(s, "GET", base+"/fleet", func(r *http.Request) { r.AddCookie(cookie) }); w.Code != 401 {
			t.Errorf("%s: the ended session gets %d after the user is back", name, w.Code)
		}
	}
}

// TestSession_StreamOfARemovedUser checks that a stream which was open before gets nothing after.
func TestSession_StreamOfARemovedUser(t *testing.T) {
	const token = "bobs-token-0123456789"
	s := fleetSite(t, 3)
	fleet := s.cfg.Fleet.Store
	bob := store.Account{Name: "bob", Role: "viewer", TokenHash: hashOf(token)}
	must.Do(t, fleet.SetAccount(t.Context(), bob))
	site := httptest.NewServer(s)
	defer site.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	base, cookie := typed(s, token, "192.0.2.1:1")
	r := must.Get(http.NewRequestWithContext(ctx, "GET", site.URL+base+"/api/v1/fleet/live", nil))(t)
	r.AddCookie(cookie)
	answer, err := site.Client().Do(r)
	if err != nil || answer.StatusCode != 200 {
		t.Fatal(answer, err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "revision") {
	}
	must.Do(t, fleet.SetAccount(ctx, store.Account{Name: "bob"}))
	if err := fleet.RemoveAgent(ctx, "id002", time.Now()); err != nil { // a change of the grid
		t.Fatal(err)
	}
	for lines.Scan() {
		if strings.Contains(lines.Text(), "revision") {
			t.Error("the removed user got a change")
		}
	}
	if ctx.Err() != nil {
		t.Error("the stream did not end")
	}
}

// TestSession_IdleStreamEnds has a stream without changes. It ends soon after its token, and after its session.
func TestSession_IdleStreamEnds(t *testing.T) {
	for name, c := range map[string]struct {
		token string
		after time.Duration // it has no role from then on
	}{"token": {"another", 0}, "session": {"token", 24 * time.Hour}} {
		synctest.Test(t, func(t *testing.T) {
			s := &Server{sessions: map[string]*session{}, cfg: Config{Viewer: "token"}}
			idle := newLive(func(ctx context.Context, _ func(any)) error {
				<-ctx.Done()
				return nil
			})
			id, _ := s.begin(hashOf("token"))
			v := visitor{account: account{role: Viewer, token: hashOf(c.token)}, session: s.session(id)}
			r := httptest.NewRequestWithContext(context.WithValue(t.Context(), visitorKey{}, v), "GET", "/", nil)
			began := time.Now()
			s.stream(idle, httptest.NewRecorder(), r)
			if took := time.Since(began); took < max(c.after, mayEvery) || took > c.after+mayEvery {
				t.Errorf("%s: the stream ended after %v, not within %v of %v", name, took, mayEvery, c.after)
			}
		})
	}
}

// TestSession_MaxAge uses a session each hour: it ends after a day.
func TestSession_MaxAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Server{sessions: map[string]*session{}}
		used, _ := s.begin("token")
		idle, _ := s.begin("token")
		for hour := range 30 {
			if alive := s.session(used) != nil; alive != (hour <= 24) {
				t.Fatalf("after %d h: alive %v", hour, alive)
			}
			time.Sleep(time.Hour)
		}
		if s.session(idle) != nil {
			t.Error("an idle one is alive")
		}
	})
}

// TestServer_ServesRightTokensAmongWrongOnes sends wrong tokens from an address by each door, then right ones of the
// same address: each is served.
func TestServer_ServesRightTokensAmongWrongOnes(t *testing.T) {
	const token = "bobs-token-0123456789"
	s := fleetSite(t, 3)
	must.Do(t, s.cfg.Fleet.Store.SetAccount(t.Context(), store.Account{Name: "bob", Role: "viewer",
		TokenHash: hashOf(token)}))
	const from = "198.51.100.9:1"
	bearer := func(token string) int {
		return ask(s, "GET", "/api/v1/fleet/hosts", func(r *http.Request) {
			r.RemoteAddr = from
			r.Header.Set("Authorization", "Bearer "+token)
		}).Code
	}
	refused := map[int]int{}
	for i := range 1500 {
		refused[bearer(fmt.Sprint("guess ", i))]++
		typed(s, fmt.Sprint("guess ", i), from)
		ask(s, "GET", "/open?token=x", func(r *http.Request) { r.RemoteAddr = from })
		if i%30 != 0 {
			continue
		}
		for name, right := range map[string]string{"a user": token, "the admin": fleetAdmin,
			"the viewer": "viewer-token-45678"} {
			if code := bearer(right); code != 200 {
				t.Fatalf("after %d wrong ones, %s gets %d", i, name, code)
			}
			if _, cookie := typed(s, right, from); cookie == nil {
				t.Fatalf("after %d wrong ones, %s cannot log in", i, name)
			}
		}
	}
	if refused[401] > 20 || refused[429] < 1400 {
		t.Errorf("wrong tokens: %v", refused)
	}
}
