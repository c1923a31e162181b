package hub

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// alertmanagerServer is an Alertmanager: it keeps the alerts that it gets until they end.
type alertmanagerServer struct {
	mu     sync.Mutex
	alerts map[string]postedAlert // by labels
	faults []string
	posts  int
}

type postedAlert struct {
	Labels, Annotations map[string]string
	StartsAt, EndsAt    time.Time
	GeneratorURL        string
}

var labelName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

func (a *alertmanagerServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var posted []postedAlert
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&posted); err != nil || r.Method != http.MethodPost || r.URL.Path != "/am/api/v2/alerts" {
		a.faults = append(a.faults, r.Method+" "+r.URL.Path)
	}
	a.posts++
	for _, one := range posted {
		keys := slices.Sorted(maps.Keys(one.Labels))
		key := ""
		for _, k := range keys {
			if !labelName.MatchString(k) || one.Labels[k] == "" {
				a.faults = append(a.faults, "label "+k)
			}
			key += k + "=" + one.Labels[k] + " "
		}
		if one.EndsAt.Before(one.StartsAt) || len(keys) == 0 {
			a.faults = append(a.faults, "it ends before it starts: "+key)
		}
		a.alerts[key] = one
	}
}

// restart forgets all.
func (a *alertmanagerServer) restart() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.alerts = map[string]postedAlert{}
}

// firing returns the open alerts by their labels.
func (a *alertmanagerServer) firing(now time.Time) (all []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key, one := range a.alerts {
		if one.EndsAt.After(now) {
			all = append(all, strings.TrimSpace(key))
		}
	}
	slices.Sort(all)
	return all
}

// noOrders is a bus on which no agent replies.
type noOrders struct{}

func (noOrders) Order(context.Context, string, bus.Order) (bus.OrderReply, error) {
	return bus.OrderReply{Refused: mesh.Busy}, nil
}
func (noOrders) Stop(string, string)                       {}
func (noOrders) Ping(context.Context, string, string) bool { return false }
func (noOrders) AnotherLeads(context.Context, string) bool { return false }
func (noOrders) Disconnect(string)                         {}

// TestAlertmanager checks that an Alertmanager has the open incidents: also 2 minutes after it was restarted, and
// without those that a silence covers. An incident that ends is not open there.
func TestAlertmanager(t *testing.T) {
	am := &alertmanagerServer{alerts: map[string]postedAlert{}}
	server := httptest.NewUnstartedServer(am)
	server.Config.SetKeepAlivesEnabled(false) // an idle connection would stop the virtual clock
	server.Start()
	defer server.Close()
	synctest.Test(t, func(t *testing.T) {
		f := must.Get(store.OpenFleet(t.Context(), t.TempDir(), ""))(t)
		defer f.Close()
		now := time.Now()
		meshFile := "[site.berlin]\nagents = [\"ber-*\"]\n[alert.am]\nalertmanager = \"" + server.URL + "/am\"\n"
		must.Get(f.SetMesh(t.Context(), meshFile, "test", now))(t)
		must.Do(t, f.AddEnrolment(t.Context(), store.Enrolment{Hash: "h", Uses: 3, Until: now.Add(time.Hour)}, now))
		for id, name := range map[string]string{"id0": "ber-1", "id1": "ber-2", "id2": "fra-1"} {
			must.Get(f.Enrol(t.Context(), "h", store.Agent{ID: id, Name: name, NKey: id},
				netip.MustParseAddr("192.0.2.1"), now))(t)
			must.Do(t, f.Saw(t.Context(), id, bus.Encode(bus.Hello{V: bus.Version}), 0, now))
		}
		ctx, cancel := context.WithCancel(t.Context())
		h := hub.New(hub.Config{Fleet: f, Orders: noOrders{}, Sync: newAlertmanagers("https://hub.example").sync})
		var work sync.WaitGroup
		work.Go(func() { _ = h.Run(ctx) })
		// pass lets time pass, in which only these hosts are there.
		pass := func(lasts time.Duration, hosts ...string) {
			for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(20 * time.Second) {
				for _, id := range hosts {
					h.Here(ctx, id, bus.Here{V: bus.Version, ClockNs: time.Now().UnixNano()})
				}
			}
		}
		expect := func(when string, want ...string) {
			t.Helper()
			if got := am.firing(time.Now()); !slices.Equal(got, want) {
				t.Errorf("%s: open are %q, not %q", when, got, want)
			}
		}
		ber1 := "alertname=FullpipeIncident host=ber-1 site=berlin symptom=away"
		fra1 := "alertname=FullpipeIncident host=fra-1 symptom=away"
		pass(4*time.Minute, "id1")
		expect("hosts are away for 4 minutes")
		pass(3*time.Minute, "id1")
		expect("hosts are away for 7 minutes", ber1, fra1)
		am.restart()
		pass(2*time.Minute, "id1")
		expect("2 minutes after its restart", ber1, fra1)

		pages := &web.Fleet{Store: f}
		must.Do(t, pages.Silence(t.Context(), "site", "berlin", time.Hour, "ann"))
		if err := pages.Silence(t.Context(), "host", "ber-9", time.Hour, "ann"); err == nil {
			t.Error("a host that does not exist is silenced")
		}
		pass(time.Minute, "id1")
		doc := must.Get(pages.Incidents(t.Context(), "test"))(t)
		if len(doc.Open) != 2 || doc.Open[0].Silenced || !doc.Open[1].Silenced || len(doc.Silences) != 1 {
			t.Errorf("the page has %+v", doc)
		}
		am.restart()
		pass(20*time.Minute, "id1", "id2") // fra-1 is back
		expect("in a silence of berlin")
		if !hasEnded(am, fra1) {
			t.Error("the end of fra-1 was not sent")
		}
		posts := am.posts
		pass(20*time.Minute, "id1", "id2")
		if am.posts != posts {
			t.Errorf("%d messages though all is silenced", am.posts-posts)
		}
		pass(21*time.Minute, "id1", "id2")
		expect("after the silence", ber1)
		pass(3*time.Minute, "id0", "id1", "id2")
		expect("all are back")
		cancel()
		work.Wait()
		for _, fault := range am.faults {
			t.Error(fault)
		}
	})
}

// hasEnded reports whether an alert came with its end.
func hasEnded(a *alertmanagerServer, key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	one, ok := a.alerts[key+" "]
	return ok && !one.EndsAt.After(time.Now())
}
