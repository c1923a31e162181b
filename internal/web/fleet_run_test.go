package web

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// fleetDocument returns the document of a job's near agent A, which counted this payload each way.
func fleetDocument(t testing.TB, j store.Job, at time.Time, counted *int64) []byte {
	t.Helper()
	up := 1e8
	down := 2e8
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test", StartedAt: at,
		Envelope: &record.Envelope{ID: j.ID, Origin: record.Scheduled, Outcome: record.Done,
			PathKey: store.FleetPathKey(j.Task, j.A, j.B)}}, Peer: j.B, Directions: []record.Direction{
		{Direction: "up", GoodputBps: &up, Bytes: counted, Streams: []record.Stream{}},
		{Direction: "down", GoodputBps: &down, Bytes: counted, Streams: []record.Stream{}}}}
	doc.Directions[0].Limiter = "receiver-window"
	doc.Directions[0].LostAt = []record.LostAt{{Place: "firewall", Side: record.ReceiverHost}}
	doc.Directions[0].RTTMin = units.Duration(40 * time.Millisecond)
	doc.Directions[1].Limiter = "bottleneck"
	encoded := must.Get(record.Encode(doc))(t)
	return encoded
}

// bearer adds a token to a request.
func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

// asViewer returns the text of a page.
func asViewer(s *Server, path string) string {
	page := ask(s, "GET", path, bearer("viewer-token-45678"))
	return strings.Join(strings.Fields(page.Body.String()), " ")
}

// TestAPI_UnknownParameters checks that each route of the API refuses a parameter that it does not know, and takes its
// own ones.
func TestAPI_UnknownParameters(t *testing.T) {
	s := fleetSite(t, 3)
	for pattern, route := range routes {
		method, _, _ := strings.Cut(pattern, " ")
		call := strings.NewReplacer("ID", record.NewID(time.Now(), [10]byte{}), "KEY", "k").Replace(route.call)
		separator := "?"
		if strings.Contains(call, "?") {
			separator = "&"
		}
		for _, more := range []string{"limits=1", "STATE=done", "a%00b=c"} {
			reply := ask(s, method, call+separator+more, bearer(fleetAdmin))
			if reply.Code != http.StatusBadRequest || !strings.Contains(reply.Body.String(), "there is no parameter") {
				t.Errorf("%s with %s: %d %.100s", pattern, more, reply.Code, reply.Body)
			}
		}
		if strings.HasSuffix(pattern, "live") || strings.Contains(pattern, "retest") {
			continue // streams, and tests of this host
		}
		if reply := ask(s, method, call, bearer(fleetAdmin)); strings.Contains(reply.Body.String(), "there is no parameter") {
			t.Errorf("%s refuses its own parameters: %.100s", pattern, reply.Body)
		}
	}
	reply := ask(s, "GET", "/api/v1/fleet/runs?stat=done", bearer(fleetAdmin))
	if !strings.Contains(reply.Body.String(), "state?") {
		t.Errorf("no suggestion: %s", reply.Body)
	}
	if reply := ask(s, "GET", "/api/v1/fleet/runs?state=dead", bearer(fleetAdmin)); reply.Code != http.StatusBadRequest {
		t.Errorf("an unknown state: %d %s", reply.Code, reply.Body)
	}
}

// TestFleet_UnconfirmedRunPage checks that the page of a run says that its figures are one host's word, with
// both counts.
func TestFleet_UnconfirmedRunPage(t *testing.T) {
	s := fleetSite(t, 2)
	f := s.cfg.Fleet.Store
	ctx := t.Context()
	at := time.Date(2026, 4, 1, 13, 0, 0, 0, time.UTC)
	lead := must.Get(f.TakeLead(ctx, "one", time.Hour))(t)
	const none = -1
	const atRate = 8389 * time.Millisecond // of 100 MiB at the document's 100 Mbit/s
	for i, c := range []struct {
		name     string
		up, down int64 // as the far host counted it
		upSpan   time.Duration
		want     []string
	}{
		{"confirmed", 100 << 20, 100 << 20, atRate, nil},
		{"times-differ", 100 << 20, 100 << 20, time.Second, []string{"unconfirmed: times-differ",
			"up: host&lt;0&gt; counted 100 MiB at 100 Mbit/s, host&lt;1&gt; counted 100 MiB at 839 Mbit/s"}},
		{"one-end", none, none, 0, []string{"unconfirmed: one-end",
			"up: host&lt;0&gt; counted 100 MiB, host&lt;1&gt; has not",
			"down: host&lt;0&gt; counted 100 MiB, host&lt;1&gt; has not"}},
		{"one-end of one direction", 100 << 20, none, atRate, []string{"unconfirmed: one-end",
			"up: host&lt;0&gt; counted 100 MiB, host&lt;1&gt; counted 100 MiB",
			"down: host&lt;0&gt; counted 100 MiB, host&lt;1&gt; has not reported"}},
		{"counts-differ", 100 << 20, 20 << 20, atRate, []string{"unconfirmed: counts-differ",
			"up: host&lt;0&gt; counted 100 MiB, host&lt;1&gt; counted 100 MiB",
			"down: host&lt;0&gt; counted 100 MiB, host&lt;1&gt; counted 20 MiB"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := store.Job{ID: record.NewID(at, [10]byte{byte(i + 1)}), Pair: "p", Task: "t", A: "id000", B: "id001",
				Origin: record.Scheduled, Due: at, Late: at}
			counted := int64(100 << 20)
			must.Do(t, f.Due(ctx, lead, []store.Job{j}, nil))
			must.Get(f.Grant(ctx, lead, at, store.Grant{ID: j.ID, Near: j.A, Lasts: time.Minute}))(t)
			must.Get(f.AddResult(ctx, j.A, fleetDocument(t, j, at, &counted), at))(t)
			if c.up != none || c.down != none {
				if err := f.AddServed(ctx, j.B, j.ID, store.FarCount{Bytes: c.up, Span: c.upSpan}, store.FarCount{Bytes: c.down,
					Span: 4194 * time.Millisecond}); err != nil {
					t.Fatal(err)
				}
			}
			page := ask(s, "GET", "/runs/"+j.ID, func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer viewer-token-45678")
			})
			body := strings.Join(strings.Fields(page.Body.String()), " ")
			if page.Code != http.StatusOK || strings.Contains(body, "unconfirmed") != (c.want != nil) {
				t.Errorf("%d, unconfirmed %v", page.Code, strings.Contains(body, "unconfirmed"))
			}
			for name, text := range map[string]string{"run": body, "path": asViewer(s, "/paths/"+
				store.FleetPathKey(j.Task, j.A, j.B)), "paths": asViewer(s, "/")} {
				if !strings.Contains(text, "host&lt;0&gt; → host&lt;1&gt;") {
					t.Errorf("the page of the %s does not name both hosts:\n%.2000s", name, text[strings.Index(text, "<main"):])
				}
			}
			for _, want := range c.want {
				if !strings.Contains(body, want) {
					t.Errorf("the page has no %q:\n%.2000s", want, body[strings.Index(body, "<main"):])
				}
			}
		})
	}
}
