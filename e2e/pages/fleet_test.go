//go:build linux

package pages

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

// fleetMesh has twelve sites, some with long names.
func fleetMesh() string {
	var text strings.Builder
	for i := range 12 {
		fmt.Fprintf(&text, "[site.%s]\nagents = [\"%s-*\"]\n", siteName(i), siteName(i))
	}
	text.WriteString("[task.throughput]\nbetween = [\"*\"]\nevery = \"6h\"\n")
	return text.String()
}

func siteName(i int) string {
	return []string{"berlin", "frankfurt-am-main-2", "oslo", "reykjavik", "sao-paulo", "tokyo", "perth", "lagos", "quito",
		"new-york-east-17", "ulaanbaatar", "bern"}[i]
}

// fleetOf returns the pages of a fleet. Its hosts have measured their neighbours: with all limiters, with a path below
// its usual range, with results of one host alone, and with runs without a result.
func fleetOf(t *testing.T, hosts int) (base string, ctx context.Context) {
	t.Helper()
	f, err := store.OpenFleet(t.Context(), t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	now := time.Date(2026, 11, 22, 6, 53, 11, 0, time.UTC)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = f.SetMesh(t.Context(), fleetMesh(), "test", now)
	must(err)
	must(f.AddEnrolment(t.Context(), store.Enrolment{Hash: "h", Uses: hosts, Until: now.Add(time.Hour)}, now))
	for i := range hosts {
		_, err := f.Enrol(t.Context(), "h", store.Agent{ID: fmt.Sprintf("id%03d", i), NKey: fmt.Sprint("key", i),
			Name: fmt.Sprintf("%s-%d", siteName(i%12), i/12+1)}, netip.MustParseAddr("192.0.2.1"), now)
		must(err)
	}
	lead, err := f.TakeLead(t.Context(), "one", time.Hour)
	must(err)
	var jobs []store.Job
	var grants []store.Grant
	ends := map[string]store.End{}
	for a := range hosts {
		for b := a + 1; b < hosts; b++ {
			var random [10]byte
			binary.BigEndian.PutUint64(random[:], uint64(len(jobs)))
			job := store.Job{ID: record.NewID(now, random), Task: "throughput", A: fmt.Sprintf("id%03d", a),
				B: fmt.Sprintf("id%03d", b), Origin: record.Scheduled, Due: now, Late: now.Add(time.Hour)}
			job.Pair = mesh.Pair{Task: job.Task, A: job.A, B: job.B}.Key()
			jobs = append(jobs, job)
			if len(jobs)%11 == 0 {
				ends[job.ID] = store.End{State: mesh.Skipped, Reason: mesh.HostTaken, Detail: "berlin-1 " + job.ID}
			} else {
				grants = append(grants, store.Grant{ID: job.ID, Near: job.A, Lasts: time.Minute})
			}
		}
	}
	must(f.Due(t.Context(), lead, jobs, nil))
	_, err = f.Grant(t.Context(), lead, now, grants...)
	must(err)
	must(f.Finish(t.Context(), ends, now))
	var work sync.WaitGroup
	for i, job := range jobs {
		if _, ended := ends[job.ID]; !ended {
			work.Go(func() { deliverRun(t, f, job, i, now) })
		}
	}
	work.Wait()
	usual := func(sender, receiver string, bps float64) store.Levels {
		return store.Levels{Task: "throughput", Sender: sender, Receiver: receiver,
			Goodput: recheck.Level{Usual: changepoint.Past{Level: bps, Within: 1e8}}}
	}
	must(f.SetLevels(t.Context(), []store.Levels{usual("id000", "id001", 9e8), usual("id001", "id000", 1e8)}))
	must(f.SaveDecision(t.Context(), lead, incident.Decision{Incidents: fleetIncidents(now)}, nil, now))
	must(f.AddSilence(t.Context(), incident.Silence{ID: "s", Kind: "host", Name: siteName(3) + "-1",
		Until: time.Now().Add(time.Hour), By: "operator"}))
	const token = "a token for tests alone"
	pages := web.New(web.Config{History: f.Store(), Version: "test", Opening: token, Fleet: &web.Fleet{Store: f},
		Ours: func(*http.Request) bool { return true }})
	site := httptest.NewServer(pages)
	t.Cleanup(func() { site.CloseClientConnections(); site.Close(); pages.Close() })
	ctx = scripted(t)
	err = chromedp.Do(ctx, chromedp.Navigate(site.URL+"/open?token="+url.QueryEscape(token)),
		chromedp.WaitVisible(chromedp.CSS("nav")))
	must(err)
	return site.URL + strings.TrimSuffix(evaluate(t, ctx, `location.pathname`), "fleet"), ctx
}

// fleetIncidents returns incidents of each kind, more than a summary shows, and one that is resolved.
func fleetIncidents(now time.Time) []incident.Incident {
	paths := func(to string, from ...string) (all []incident.Path) {
		for _, id := range from {
			all = append(all, incident.Path{Task: "throughput", From: id, To: to, GoodputBps: 41.7e6, UsualBps: 940e6,
				RTTMinS: 0.0123, UsualRTTS: 0.0119, Limiter: "receiver-window"})
		}
		return all
	}
	at := func(ago time.Duration) time.Time { return now.Add(-ago) }
	all := []incident.Incident{
		{ID: "1", Cause: incident.Cause{Kind: incident.HostReceives, ID: "id001"}, Symptoms: []incident.Symptom{incident.Slow,
			incident.Limited}, Limiter: "receiver-window", Window: 65536, Confirmed: true, Affected: 5, Of: 5,
			Paths: paths("id001", "id000", "id002", "id004", "id005", "id006"), SinceAt: at(9 * time.Hour)},
		{ID: "2", Cause: incident.Cause{Kind: incident.OneHost, ID: "id003"}, Symptoms: []incident.Symptom{incident.Away},
			Confirmed: true, Affected: 1, Of: 1, Hosts: []string{"id003"}, SinceAt: at(2 * time.Hour), Silenced: true},
		{ID: "3", Cause: incident.Cause{Kind: incident.SiteSends, ID: siteName(9)}, Symptoms: []incident.Symptom{
			incident.Delayed}, Affected: 3, Of: 4, Paths: paths("id002", "id009"), SinceAt: at(time.Hour)},
		{ID: "4", Cause: incident.Cause{Kind: incident.OnePath, ID: "id007 id008"}, Symptoms: []incident.Symptom{
			incident.Unreachable}, Confirmed: true, Affected: 1, Of: 1, Paths: paths("id008", "id007"), SinceAt: at(time.Hour)},
		{ID: "5", Cause: incident.Cause{Kind: incident.OneLink, ID: "berlin-wan"}, Symptoms: []incident.Symptom{
			incident.Slow}, Confirmed: true, Affected: 4, Of: 4, Paths: paths("id010", "id000"), SinceAt: at(time.Hour)},
		{ID: "6", Cause: incident.Cause{Kind: incident.OnePath, ID: "id010 id011"}, Symptoms: []incident.Symptom{
			incident.Slow}, Confirmed: true, Affected: 1, Of: 1, Paths: paths("id011", "id010"), SinceAt: at(time.Hour)},
		{ID: "7", Cause: incident.Cause{Kind: incident.OneSite, ID: "oslo"}, Symptoms: []incident.Symptom{incident.Slow},
			Confirmed: true, Affected: 3, Of: 3, Paths: paths("id002", "id000"), SinceAt: at(30 * time.Hour),
			ResolvedAt: time.Now()}}
	for i := range all {
		all[i].OpenedAt = all[i].SinceAt.Add(20 * time.Minute)
	}
	return all
}

// deliverRun stores the result of a run. Every third is one host's word, or counted differently by the other.
func deliverRun(t *testing.T, f *store.Fleet, job store.Job, i int, at time.Time) {
	limiters := verdict.Names()
	doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: "test", StartedAt: at,
		Envelope: &record.Envelope{ID: job.ID, TestID: job.ID, Origin: record.Scheduled, Outcome: record.Done,
			PathKey: store.FleetPathKey(job.Task, job.A, job.B)}}, Peer: job.B}
	for k, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		bps := 1e6 * float64(1+(37*i+k)%997)
		bytes := int64(100e6)
		d := record.Direction{Direction: direction, GoodputBps: &bps, Bytes: &bytes, Streams: []record.Stream{}}
		d.Limiter = limiters[(i+k)%len(limiters)]
		d.RTTMin = units.Duration(time.Duration(1+i%90) * time.Millisecond)
		doc.Directions = append(doc.Directions, d)
	}
	encoded, err := record.Encode(doc)
	if err == nil {
		_, err = f.AddResult(t.Context(), job.A, encoded, at)
	}
	if err == nil && i%3 > 0 {
		count := func(k int, bytes int64) store.FarCount {
			seconds := 8 * 100e6 / *doc.Directions[k].GoodputBps
			return store.FarCount{Bytes: bytes, Span: time.Duration(seconds * float64(time.Second))}
		}
		err = f.AddServed(t.Context(), job.B, job.ID, count(0, 100e6), count(1, int64(i%3)*100e6))
	}
	if err != nil {
		t.Error(err)
	}
}

// TestFleetPages_CanBeRead looks at a fleet's pages: the grid of its hosts, and of its sites where the hosts are more
// than 40.
func TestFleetPages_CanBeRead(t *testing.T) {
	t.Parallel()
	base, ctx := fleetOf(t, 12)
	const filled = `document.querySelectorAll('table tbody tr').length > 3`
	canBeRead(t, ctx, base, []pageToRead{
		{"fleet-hosts-grid", "fleet", `document.querySelectorAll('.matrix tbody tr').length == 12`},
		{"fleet-hosts", "fleet/hosts", filled},
		{"fleet-runs", "fleet/runs", filled},
		{"fleet-incidents", "fleet/incidents", `document.querySelectorAll('details').length == 7`},
		{"fleet-mesh", "fleet/mesh", `document.querySelector('pre') != null`}})
	base, ctx = fleetOf(t, 48)
	canBeRead(t, ctx, base, []pageToRead{
		{"fleet-sites-grid", "fleet", `document.querySelectorAll('.matrix tbody tr').length == 12`}})
	saw := evaluate(t, ctx, `document.querySelector('h1 ~ *').parentElement.innerText`)
	if !strings.Contains(saw, "Each cell is the worst of its pairs.") || !strings.Contains(saw, "frankfurt-am-main-2") {
		t.Errorf("the grid does not show sites:\n%s", saw)
	}
}
