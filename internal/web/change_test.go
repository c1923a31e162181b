package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// recorder keeps what a Server records.
type recorder struct {
	mu  sync.Mutex
	all []Change
}

func (c *recorder) record(_ context.Context, one Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, one)
}

// take returns what was recorded since the last call.
func (c *recorder) take() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.all
	c.all = nil
	return all
}

// TestChanges_EachUnsafeRoute requests each route with an unsafe method, as an admin by a bearer token, as a user of a
// session, and as a stranger: one change is recorded for each, with the account, before the client has the response.
func TestChanges_EachUnsafeRoute(t *testing.T) {
	s := fleetSite(t, 3)
	var log recorder
	s.cfg.Record = log.record
	s.cfg.Speed = NewSpeed(SpeedConfig{Version: "test"})
	s.inside = newInside(s)
	const token = "bobs-token-0123456789"
	must.Do(t, s.cfg.Fleet.Store.SetAccount(t.Context(), store.Account{Name: "bob", Role: "viewer",
		TokenHash: hashOf(token)}))
	base, cookie := typed(s, token, "192.0.2.1:1")
	if login := log.take(); len(login) != 1 || login[0].By != "bob" || login[0].Action != "POST /open" ||
		login[0].Refused() {
		t.Errorf("a login: %+v", login)
	}
	unsafe := 0
	for _, one := range s.routes() {
		method, path, _ := strings.Cut(one.pattern, " ")
		if isReadOnly(method) {
			continue
		}
		unsafe++
		path = strings.NewReplacer("{key}", "0123", "{id}", "4567", "{name}", "site", "{run}", "x").Replace(path)
		for name, c := range map[string]struct {
			by, prefix string
			change     func(*http.Request)
		}{
			"an admin":   {openingName, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+fleetAdmin) }},
			"a session":  {"bob", base, func(r *http.Request) { r.AddCookie(cookie) }},
			"a stranger": {"203.0.113.5", "", func(*http.Request) {}},
		} {
			w := ask(s, method, c.prefix+path+"?value=Bern&access_token=s3cret", func(r *http.Request) {
				r.RemoteAddr = "203.0.113.5:1"
				c.change(r)
			})
			all := log.take()
			if len(all) != 1 || all[0].By != c.by || all[0].Status != w.Code || strings.Contains(all[0].Detail, "s3cret") ||
				name == "an admin" && (all[0].Action != one.pattern || !strings.HasPrefix(all[0].Detail, path)) {
				t.Errorf("%s, %s: status %d, %+v", name, one.pattern, w.Code, all)
			}
		}
	}
	if unsafe < 10 {
		t.Errorf("%d routes", unsafe)
	}
	ask(s, "GET", "/fleet", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+fleetAdmin) })
	if all := log.take(); len(all) > 0 {
		t.Errorf("a page that was read: %+v", all)
	}
}

// TestChanges_InTheResponsesOrder checks that a change is recorded when its client has the response, and that refused
// ones are counted.
func TestChanges_InTheResponsesOrder(t *testing.T) {
	s := fleetSite(t, 3)
	var log recorder
	s.cfg.Record = log.record
	site := httptest.NewServer(s)
	defer site.Close()
	post := func(path, token string) int {
		r, err := http.NewRequestWithContext(t.Context(), "POST", site.URL+path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		answer := must.Get(site.Client().Do(r))(t)
		answer.Body.Close()
		return answer.StatusCode
	}
	for range 20 {
		if status := post("/api/v1/fleet/tokens", fleetAdmin); status != 200 {
			t.Fatal(status)
		}
		if all := log.take(); len(all) != 1 || all[0].Refused() {
			t.Fatalf("%+v", all)
		}
	}
	var statuses []int
	for i := range 15 {
		statuses = append(statuses, post("/api/v1/fleet/tokens", []string{"operator-token-9012", "guess"}[i%2]))
	}
	slices.Sort(statuses)
	if fmt.Sprint(slices.Compact(statuses)) != "[401 403]" || len(log.take()) != 15 || s.refusedChanges.Load() != 15 {
		t.Errorf("%v, %d counted", statuses, s.refusedChanges.Load())
	}
	metrics := ask(s, "GET", "/metrics", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+fleetAdmin) })
	if !strings.Contains(metrics.Body.String(), "fullpipe_fleet_refused_changes_total 15\n") {
		t.Error("the metrics do not have them")
	}
}
