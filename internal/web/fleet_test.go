package web

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

const fleetAdmin = "admin-token-of-the-hub"

// fleetSite returns the pages of a fleet with agents that have measured each other.
func fleetSite(t testing.TB, agents int) *Server {
	t.Helper()
	ctx := context.Background()
	f, err := store.OpenFleet(ctx, t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	now := time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)
	if err := f.AddEnrolment(ctx, store.Enrolment{Hash: "h", Uses: agents, Until: now.Add(time.Hour)}, now); err != nil {
		t.Fatal(err)
	}
	for i := range agents {
		name := fmt.Sprintf("host<%d>", i)
		_, err := f.Enrol(ctx, "h", store.Agent{ID: fmt.Sprintf("id%03d", i), Name: name, NKey: fmt.Sprint("k", i)},
			netip.MustParseAddr("127.0.0.1"), now)
		if err != nil {
			t.Fatal(err)
		}
	}
	lead, err := f.TakeLead(ctx, "one", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []store.Job
	for a := range agents {
		for b := a + 1; b < agents; b++ {
			id := record.NewID(now, [10]byte{1: byte(a), 5: byte(b)})
			jobs = append(jobs, store.Job{ID: id, Pair: fmt.Sprint(a, b), Task: "t", A: fmt.Sprintf("id%03d", a),
				B: fmt.Sprintf("id%03d", b), Origin: record.Scheduled, Due: now, Late: now})
		}
	}
	if err := f.Due(ctx, lead, jobs, nil); err != nil {
		t.Fatal(err)
	}
	for i, j := range jobs {
		if i%7 == 3 {
			end := store.End{State: mesh.Skipped, Reason: mesh.HostTaken}
			if err := f.Finish(ctx, map[string]store.End{j.ID: end}, now); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if _, err := f.Grant(ctx, lead, now, store.Grant{ID: j.ID, Near: j.A, Lasts: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if _, err := f.AddResult(ctx, j.A, fleetDocument(t, j, now, nil), now); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetLevels(ctx, []store.Levels{usually("id000", "id001", 9e8, 1.35e8),
		usually("id001", "id000", 3e8, 1.5e8)}); err != nil {
		t.Fatal(err)
	}
	s := New(Config{History: f.Store(), Version: "test", Opening: fleetAdmin, Viewer: "viewer-token-45678",
		Operator: "operator-token-9012", Ours: func(*http.Request) bool { return true }, Fleet: &Fleet{Store: f,
			Request: func(context.Context, string, string) (store.Job, error) { return store.Job{ID: "asked"}, nil },
			Token:   func(context.Context, string) (string, error) { return "fph1.x", nil }}})
	t.Cleanup(s.Close)
	return s
}

// usually returns the usual goodput of a direction.
func usually(sender, receiver string, bps, within float64) store.Levels {
	return store.Levels{Task: "t", Sender: sender, Receiver: receiver,
		Goodput: recheck.Level{Usual: changepoint.Past{Level: bps, Within: within}}}
}

func TestFleet_Roles(t *testing.T) {
	s := fleetSite(t, 3)
	for _, c := range []struct {
		method, path string
		least        Role
		body         string
	}{
		{"GET", "/fleet", Viewer, ""}, {"GET", "/fleet/hosts", Viewer, ""}, {"GET", "/fleet/runs", Viewer, ""},
		{"GET", "/fleet/incidents", Viewer, ""}, {"GET", "/api/v1/fleet/incidents", Viewer, ""},
		{"POST", "/api/v1/fleet/silences?kind=host&name=host<0>&for=1h", Operator, ""},
		{"DELETE", "/api/v1/fleet/silences/x", Operator, ""},
		{"GET", "/fleet/events", Viewer, ""}, {"GET", "/fleet/mesh", Viewer, ""}, {"GET", "/metrics", Viewer, ""},
		{"GET", "/api/v1/fleet/grid", Viewer, ""}, {"GET", "/api/v1/fleet/hosts", Viewer, ""},
		{"GET", "/api/v1/fleet/runs?state=skipped", Viewer, ""}, {"GET", "/api/v1/fleet/events", Viewer, ""},
		{"GET", "/api/v1/fleet/mesh", Viewer, ""},
		{"POST", "/api/v1/fleet/test?a=host<0>&b=host<1>", Operator, ""},
		{"POST", "/api/v1/fleet/mesh", Admin, "[task.t]\nbetween = [\"*\"]\nevery = \"1h\"\n"},
		{"POST", "/api/v1/fleet/tokens", Admin, ""},
		{"DELETE", "/api/v1/fleet/hosts/host<2>", Admin, ""},
	} {
		for token, role := range map[string]Role{"": Nobody, "viewer-token-45678": Viewer, "operator-token-9012": Operator,
			fleetAdmin: Admin} {
			path := strings.NewReplacer("<", "%3C", ">", "%3E").Replace(c.path)
			status := ask(s, c.method, path, func(r *http.Request) {
				r.Body = http.NoBody
				if c.body != "" {
					r.Body = readCloser{strings.NewReader(c.body)}
				}
				r.RemoteAddr = fmt.Sprintf("198.18.0.%d:1", role)
				if token != "" {
					r.Header.Set("Authorization", "Bearer "+token)
				}
			}).Code
			want := http.StatusOK
			switch {
			case role == Nobody:
				want = http.StatusUnauthorized
			case role < c.least:
				want = http.StatusForbidden
			}
			if c.method == "DELETE" && role == Admin && status == http.StatusNotFound {
				continue // removed before
			}
			if status != want {
				t.Errorf("%s %s as %v: %d, want %d", c.method, c.path, role, status, want)
			}
		}
	}
}

type readCloser struct{ *strings.Reader }

func (readCloser) Close() error { return nil }

// TestFleet_GridPage checks the cells: colour by the past, letter by limiter, reason without a result, names escaped.
func TestFleet_GridPage(t *testing.T) {
	s := fleetSite(t, 8)
	body := ask(s, "GET", "/fleet", func(r *http.Request) {
		r.Header.Set("Authorization",
			"Bearer "+fleetAdmin)
	}).Body.String()
	for _, want := range []string{`class="lower"`, `class="usual"`, `class="few shade-`, `class="missing"`, "skipped: host-taken",
		"limited by receiver-window", "host&lt;0&gt;", "Packets lost at: receiver-host/firewall.", `class="self"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if strings.Contains(body, "host<0>") {
		t.Error("a name is not escaped")
	}
	metrics := ask(s, "GET", "/metrics", func(r *http.Request) {
		r.Header.Set("Authorization",
			"Bearer "+fleetAdmin)
	}).Body.String()
	for _, want := range []string{`fullpipe_fleet_goodput_bps{task="t",from="host<0>",to="host<1>"} 1e+08`,
		`fullpipe_fleet_usual_bps{task="t",from="host<0>",to="host<1>"} 9e+08`,
		`fullpipe_fleet_usual_low_bps{task="t",from="host<0>",to="host<1>"} 7.65e+08`,
		`fullpipe_fleet_runs{state="skipped",reason="host-taken"}`, `limiter="receiver-window"} 1`,
		`place="receiver-host/firewall"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s in\n%.600s", want, metrics)
		}
	}
}

// TestFleet_PlacesOfLoss checks the page and the document of runs.
func TestFleet_PlacesOfLoss(t *testing.T) {
	s := fleetSite(t, 3)
	for path, want := range map[string]string{"/fleet/runs": "lost at receiver-host/firewall",
		"/api/v1/fleet/runs": `"lost_at":["receiver-host/firewall"]`} {
		body := ask(s, "GET", path, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+fleetAdmin)
		}).Body.String()
		if !strings.Contains(strings.Join(strings.Fields(body), ""), strings.ReplaceAll(want, " ", "")) {
			t.Errorf("%s has no %s: %.900s", path, want, body)
		}
	}
}

// TestFleet_HostileText checks that texts of agents and of their documents are text on each page.
func TestFleet_HostileText(t *testing.T) {
	s := fleetSite(t, 3)
	ctx := context.Background()
	const hostile = "x\x1b[2J\u202e\u2028<img src=x onerror=hurt()>\nFORGED"
	f := s.cfg.Fleet.Store
	hello := bus.Encode(bus.Hello{V: 1, Version: hostile, Kernel: hostile, Limits: bus.Limits{Broken: hostile}})
	now := time.Now()
	if err := errors.Join(f.Saw(ctx, "id000", hello, 0, now), f.SetLabels(ctx, "id000", map[string]string{"a": hostile}),
		f.AddEvents(ctx, []store.Event{{Run: "r", Task: "t", Sender: "id000", Receiver: hostile, Metric: hostile,
			Kind: hostile, At: now, Old: hostile, New: hostile}}),
		f.Finish(ctx, map[string]store.End{record.NewID(now, [10]byte{9}): {Detail: hostile}}, now)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/fleet", "/fleet/hosts", "/fleet/runs", "/fleet/events", "/metrics"} {
		page := ask(s, "GET", path, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+fleetAdmin)
		})
		body := page.Body.String()
		if page.Code != http.StatusOK {
			t.Fatalf("%s: %d", path, page.Code)
		}
		if strings.ContainsAny(body, "\x1b\u202e\u2028") || path != "/metrics" && strings.Contains(body, "<img src=x") ||
			strings.Contains(body, "\nFORGED") {
			t.Errorf("%s obeys the text", path)
		}
		if path == "/fleet/events" || path == "/fleet/hosts" {
			if !strings.Contains(body, "&lt;img src=x") {
				t.Errorf("%s does not show the text", path)
			}
		}
	}
}

// TestFleet_MeshPage checks that the mesh file has its lines on the page.
func TestFleet_MeshPage(t *testing.T) {
	s := fleetSite(t, 2)
	const file = "[task.t]\nbetween = [\"*\"]\nevery = \"1h\"\n"
	if _, err := s.cfg.Fleet.Store.SetMesh(t.Context(), file, "test", time.Now()); err != nil {
		t.Fatal(err)
	}
	body := ask(s, "GET", "/fleet/mesh", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+fleetAdmin)
	}).Body.String()
	if !strings.Contains(html.UnescapeString(body), file) || strings.Contains(body, `\u000a`) {
		t.Errorf("the file's lines are not on the page:\n%s", body)
	}
}

// TestFleet_MeshFileSize sends mesh files up to the parser's limit and above it.
func TestFleet_MeshFileSize(t *testing.T) {
	s := fleetSite(t, 2)
	post := func(token, text string) (int, string) {
		reply := ask(s, "POST", meshPath, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+token)
			r.Body = readCloser{strings.NewReader(text)}
		})
		return reply.Code, reply.Body.String()
	}
	var file strings.Builder
	for i := range 500 {
		fmt.Fprintf(&file, "[site.s%[1]d]\nagents = [\"host-%[1]d\"]\nuplink = \"wan-%[1]d\"\n[link.wan-%[1]d]\n", i)
	}
	file.WriteString("[task.t]\nbetween = [\"*\"]\nevery = \"24h\"\n")
	full := file.String() + strings.Repeat("#", mesh.MaxFile-file.Len())
	for name, c := range map[string]struct {
		token, text string
		status      int
	}{
		"500 sites":       {fleetAdmin, file.String(), http.StatusOK},
		"the limit":       {fleetAdmin, full, http.StatusOK},
		"a byte more":     {fleetAdmin, full + "#", http.StatusBadRequest},
		"two bytes more":  {fleetAdmin, full + "##", http.StatusRequestEntityTooLarge},
		"of an operator":  {"operator-token-9012", full, http.StatusForbidden},
		"of a stranger":   {"", full, http.StatusUnauthorized},
		"not a mesh file": {fleetAdmin, strings.Repeat("x", 1000), http.StatusBadRequest},
	} {
		status, reply := post(c.token, c.text)
		if status != c.status || status == http.StatusRequestEntityTooLarge && !strings.Contains(reply, "1048576 bytes") {
			t.Errorf("%s: status %d, want %d: %.200s", name, status, c.status, reply)
		}
	}
}

func TestFleet_AccountTokens(t *testing.T) {
	s := fleetSite(t, 2)
	status := func(token, method, path string) int {
		return ask(s, method, path, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }).Code
	}
	if got := status("anns-secret-token", "GET", "/fleet"); got != http.StatusUnauthorized {
		t.Errorf("an unknown token: %d", got)
	}
	err := s.cfg.Fleet.Store.SetAccount(context.Background(), store.Account{Name: "ann", Role: "operator",
		TokenHash: hashOf("anns-secret-token")})
	if err != nil {
		t.Fatal(err)
	}
	if got := status("anns-secret-token", "GET", "/fleet"); got != http.StatusOK {
		t.Errorf("ann: %d", got)
	}
	if got := status("anns-secret-token", "POST", "/api/v1/fleet/tokens"); got != http.StatusForbidden {
		t.Errorf("ann makes tokens: %d", got)
	}
}

// TestFleet_Live follows the grid with two clients: each gets the revision of the page, then a new one for a change.
func TestFleet_Live(t *testing.T) {
	s := fleetSite(t, 3)
	site := httptest.NewServer(s)
	defer site.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	follow := func() func() string {
		r, err := http.NewRequestWithContext(ctx, "GET", site.URL+"/api/v1/fleet/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+fleetAdmin)
		answer, err := site.Client().Do(r)
		if err != nil || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatal(answer, err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		lines := bufio.NewScanner(answer.Body)
		return func() string {
			for lines.Scan() {
				_, rest, found := strings.Cut(lines.Text(), `"revision":"`)
				if found {
					revision, _, _ := strings.Cut(rest, `"`)
					return revision
				}
			}
			return "the stream has ended"
		}
	}
	one := follow()
	two := follow()
	first := one()
	if again := two(); first == "" || again != first {
		t.Errorf("%q and %q", first, again)
	}
	body := ask(s, "GET", "/fleet", func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+fleetAdmin)
	}).Body.String()
	if !strings.Contains(body, `data-revision="`+first+`"`) {
		t.Errorf("the page has another revision than %s", first)
	}
	for what, change := range map[string]func() error{
		"a host leaves": func() error { return s.cfg.Fleet.Store.RemoveAgent(t.Context(), "id002", time.Now()) },
		"a usual goodput": func() error {
			return s.cfg.Fleet.Store.SetLevels(t.Context(), []store.Levels{usually("id000", "id002", 1e9, 1e8)})
		},
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if next := one(); next == first || next != two() {
			t.Errorf("%s: %q after %q", what, next, first)
		} else {
			first = next
		}
	}
}

// BenchmarkFleetGrid makes the page of 100 hosts: of their sites, as it is served, and with all 9,900 cells.
func BenchmarkFleetGrid(b *testing.B) {
	s := fleetSite(b, 100)
	for name, sitesAbove := range map[string]int{"sites": sitesAbove, "hosts": 1000} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				grid, err := s.cfg.Fleet.Grid(b.Context(), "test", "", sitesAbove)
				if err != nil || grid.Sites != (name == "sites") {
					b.Fatal(err)
				}
				w := httptest.NewRecorder()
				s.render(w, httptest.NewRequest("GET", "/fleet", nil), http.StatusOK, "fleet",
					func(v view) templ.Component { return fleetPage(v, render.Document(grid)) })
				b.ReportMetric(float64(w.Body.Len()), "bytes")
			}
		})
	}
	b.Run("metrics", func(b *testing.B) {
		for b.Loop() {
			page := ask(s, "GET", "/metrics", func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+fleetAdmin)
			})
			b.ReportMetric(float64(strings.Count(page.Body.String(), "\n")), "lines")
		}
	})
}

// TestFleetMetrics_Directions checks that the metrics have each direction that was measured, and those of one site if
// it is asked for.
func TestFleetMetrics_Directions(t *testing.T) {
	const agents = 30
	s := fleetSite(t, agents)
	f := s.cfg.Fleet.Store
	_, err := f.SetMesh(t.Context(), "[site.x]\nagents = [\"host?0?\"]\n", "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cells, err := f.Grid(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	measured := 0
	ofSite := 0
	for _, c := range cells {
		if c.GoodputBps != nil {
			measured++
			if c.Sender == "id000" || c.Receiver == "id000" {
				ofSite++
			}
		}
	}
	for query, want := range map[string]int{"": measured, "?site=x": ofSite, "?site=y": 0} {
		answer := ask(s, "GET", "/metrics"+query, func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer "+fleetAdmin)
		})
		got := strings.Count(answer.Body.String(), "\nfullpipe_fleet_goodput_bps{")
		if got != want || answer.Code != http.StatusOK || ofSite == 0 || ofSite == measured {
			t.Errorf("%q: %d directions, not %d: %d", query, got, want, answer.Code)
		}
	}
}
