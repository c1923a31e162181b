package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// speedSite returns a server of the speed test on loopback, and the documents that it stores.
func speedSite(t *testing.T, cfg SpeedConfig, token string) (site *httptest.Server, kept chan *record.Measure) {
	t.Helper()
	kept = make(chan *record.Measure, 8)
	n := 0
	cfg.Seal = func(doc *record.Measure, _ time.Duration) {
		n++
		doc.Envelope = &record.Envelope{ID: fmt.Sprintf("00000000-0000-7000-8000-%012d", n)}
	}
	cfg.Keep = func(_ context.Context, doc *record.Measure) error { kept <- doc; return nil }
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		t.Fatal(err)
	}
	site = httptest.NewUnstartedServer(NewPublic(NewSpeed(cfg), token))
	site.Listener.Close()
	site.Listener, site.Config.ConnState = httpserver.Listen(l, ndt7.Accepted), httpserver.TrackState
	site.Config.ConnContext = ndt7.WithConn
	site.Start()
	t.Cleanup(site.Close)
	return site, kept
}

func post(t *testing.T, address string, body any) (status int, answer struct {
	ID    string
	Error *record.Failure
}) {
	t.Helper()
	text := must.Get(json.Marshal(body))(t)
	r := must.Get(http.Post(address, "application/json", bytes.NewReader(text)))(t)
	defer r.Body.Close()
	must.Do(t, json.NewDecoder(r.Body).Decode(&answer))
	return r.StatusCode, answer
}

// download downloads as the page's worker does.
func download(t *testing.T, site, run string) (bytes int64, first, last time.Time) {
	t.Helper()
	q := url.Values{runKey: {run}, phaseKey: {"down1"}, ndt7.LengthKey: {"700"}}
	c, _, err := websocket.Dial(t.Context(), site+ndt7.DownloadPath+"?"+q.Encode(),
		&websocket.DialOptions{Subprotocols: []string{ndt7.Protocol}})
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(1 << 24)
	for {
		kind, message, err := c.Read(t.Context())
		if err != nil {
			return bytes, first, last
		}
		if kind == websocket.MessageBinary {
			if last = time.Now(); first.IsZero() {
				first = last
			}
			bytes += int64(len(message))
		}
	}
}

// TestSpeed_StoresResult makes the page's requests without a browser and checks the stored document and its page.
func TestSpeed_StoresResult(t *testing.T) {
	site, kept := speedSite(t, SpeedConfig{}, "")
	_, begun := post(t, site.URL+"/test/begin", struct{}{})
	n, first, last := download(t, site.URL, begun.ID)
	report := browserReport{IdleRTTMs: []float64{1, 1.1, 1}, Phases: []browserPhase{{Name: "down1", Connections: 1,
		Bytes: n, LastMs: float64(last.Sub(first)) / 1e6, RTTMs: []float64{2, 2, 3}}}}
	status, result := post(t, site.URL+"/test/"+begun.ID+"/result", report)
	if status != http.StatusOK {
		t.Fatalf("%d: %+v", status, result.Error)
	}
	doc := <-kept
	if doc.Peer != "browser://127.0.0.1" || len(doc.Directions) != 1 || doc.Directions[0].Direction != transfer.Up ||
		*doc.Directions[0].Bytes == 0 || doc.Directions[0].Latency == nil || doc.Directions[0].Limiter == "" {
		t.Errorf("%+v", doc)
	}
	if status, _ := post(t, site.URL+"/test/"+begun.ID+"/result", report); status != http.StatusNotFound {
		t.Errorf("the same result again: %d", status)
	}
	for path, want := range map[string]string{"/test/" + result.ID: "Your download of",
		"/": "What limits your connection?", "/static/test.js": "postMessage"} {
		r := must.Get(http.Get(site.URL + path))(t)
		var page bytes.Buffer
		page.ReadFrom(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK || !strings.Contains(page.String(), want) ||
			!strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: %d %s", path, r.StatusCode, page.String())
		}
	}
}

// TestUseBrowserCounts_OnlyConsistent checks which counts of a browser replace those of the acknowledgements:
// 1 MB in one second.
func TestUseBrowserCounts_OnlyConsistent(t *testing.T) {
	r := &transfer.Result{Spec: transfer.Spec{Direction: transfer.Up}, Complete: true, Near: &transfer.End{
		Streams: []transfer.Stream{{Bytes: 1e6, Last: time.Second}}}}
	for _, c := range []struct {
		bytes       int64
		first, last float64 // ms
		believed    bool
	}{
		{1e6, 0, 1000, true}, {1e6, 500, 1500, true}, {1.02e6, 0, 1200, true}, {0.8e6, 0, 800, true},
		{1.021e6, 0, 1000, false}, {0.799e6, 0, 1000, false}, {1e6, 0, 1201, false}, {1e6, 0, 799, false},
		{1e6, 1000, 1000, false}, {0, 0, 1000, false}, {-1e6, 0, 1000, false}, {1e6, 0, math.NaN(), false},
	} {
		var d record.Direction
		useBrowserCounts(&d, r, &browserPhase{Bytes: c.bytes, FirstMs: c.first, LastMs: c.last})
		if believed := d.Bytes != nil && *d.Bytes == c.bytes; believed != c.believed || believed == (len(d.Warnings) > 0) {
			t.Errorf("%+v: %+v", c, d)
		}
	}
}

func TestSpeed_RejectsFalseReports(t *testing.T) {
	t.Parallel()
	site, _ := speedSite(t, SpeedConfig{}, "")
	one := browserPhase{Name: "up1", Connections: 1}
	for name, body := range map[string]any{
		"phases is no list":  map[string]any{"phases": 5},
		"too many phases":    browserReport{Phases: make([]browserPhase, 5)},
		"invalid phase name": browserReport{Phases: []browserPhase{{Name: "../x", Connections: 1}}},
		"no connections":     browserReport{Phases: []browserPhase{{Name: "up1"}}},
		"duplicate phase":    browserReport{Phases: []browserPhase{one, one}},
		"negative RTT":       browserReport{IdleRTTMs: []float64{-1}},
		"too many RTTs":      browserReport{IdleRTTMs: make([]float64, maxRTTs+1)},
		"more than a MiB":    strings.Repeat("x", 1<<20),
	} {
		_, begun := post(t, site.URL+"/test/begin", struct{}{})
		if status, _ := post(t, site.URL+"/test/"+begun.ID+"/result", body); status != http.StatusBadRequest {
			t.Errorf("%s: %d", name, status)
		}
		if name == "more than a MiB" {
			break
		}
	}
	site, kept := speedSite(t, SpeedConfig{}, "")
	for _, bytes := range []int64{1 << 50, 1, -5} {
		_, begun := post(t, site.URL+"/test/begin", struct{}{})
		n, _, _ := download(t, site.URL, begun.ID)
		post(t, site.URL+"/test/"+begun.ID+"/result", browserReport{
			Phases: []browserPhase{{Name: "down1", Connections: 1, Bytes: bytes, LastMs: 600}}})
		if doc := <-kept; *doc.Directions[0].Bytes > n+n/50 || *doc.Directions[0].Bytes < n*4/5 ||
			len(doc.Directions[0].Warnings) == 0 {
			t.Errorf("%d bytes of %d are believed: %+v", bytes, n, doc.Directions[0])
		}
	}
}

// TestRuns_FewHostsLeaveSlots fills all slots from a few addresses.
func TestRuns_FewHostsLeaveSlots(t *testing.T) {
	var r runs
	now := time.Unix(1e9, 0)
	host := func(n int) netip.Prefix { return admission.Host(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})) }
	var first string
	for i := range maxActiveRuns {
		id, err := r.begin(host(i/maxRunsPerHost), now.Add(time.Duration(i)*time.Second))
		if err != nil || !r.beginEcho(id) {
			t.Fatal(i, err)
		}
		if i == 0 {
			first = id
		}
	}
	now = now.Add(maxActiveRuns * time.Second)
	if _, err := r.begin(host(0), now); err == nil {
		t.Error("one host exceeds its limit")
	}
	for i := range maxRunsPerHost - 1 {
		if id, err := r.begin(host(99), now); err != nil || !r.beginEcho(id) {
			t.Error(i, err)
		}
	}
	if r.now[first] != nil {
		t.Error("the oldest run of the busiest hosts was not evicted")
	}
	if len(r.now) != maxActiveRuns {
		t.Errorf("%d runs", len(r.now))
	}
	for id := range r.now {
		r.endEcho(id, now)
	}
	if _, err := r.begin(host(99), now.Add(leftRunTimeout+time.Second)); err != nil || len(r.now) != 1 {
		t.Errorf("%d runs of closed pages: %v", len(r.now), err)
	}
}

// TestRuns_EvictsRunsWithoutEcho fills all slots from different hosts with runs that never open their echo connection.
func TestRuns_EvictsRunsWithoutEcho(t *testing.T) {
	var r runs
	now := time.Unix(1e9, 0)
	host := func(n int) netip.Prefix { return admission.Host(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})) }
	for i := range maxActiveRuns {
		if _, err := r.begin(host(i), now); err != nil {
			t.Fatal(i, err)
		}
	}
	if _, err := r.begin(host(99), now.Add(idleRunTimeout-1)); err != errTooManyTests {
		t.Errorf("before: %v", err)
	}
	if _, err := r.begin(host(99), now.Add(idleRunTimeout)); err != nil || len(r.now) != maxActiveRuns {
		t.Errorf("after: %v, %d runs", err, len(r.now))
	}
}

// TestRuns_OneClientDropsItsOwnResults checks that many results of one client evict no result of another.
func TestRuns_OneClientDropsItsOwnResults(t *testing.T) {
	var r runs
	add := func(id, address string) {
		doc := &record.Measure{Peer: record.BrowserScheme + address}
		doc.Envelope = &record.Envelope{ID: id}
		r.addResult(doc)
	}
	add("another's", "192.0.2.1")
	for i := range 3 * maxResults {
		add(fmt.Sprint("flood ", i), fmt.Sprintf("2001:db8::%x", i+1)) // of one /64
	}
	add("a third's", "192.0.2.3")
	for id, want := range map[string]bool{"another's": true, "a third's": true, "flood 0": false,
		fmt.Sprint("flood ", 3*maxResults-1): true} {
		if got := r.result(id) != nil; got != want {
			t.Errorf("result %s found: %v, want %v", id, got, want)
		}
	}
	if len(r.results) != maxResults {
		t.Errorf("%d results", len(r.results))
	}
}

// TestSpeed_ReportsRefusal checks the refusals of a client that has used its bytes for the day.
func TestSpeed_ReportsRefusal(t *testing.T) {
	site, _ := speedSite(t, SpeedConfig{Bounds: ndt7.Limits{BytesPerDay: 1 << 20}}, "")
	_, begun := post(t, site.URL+"/test/begin", struct{}{})
	download(t, site.URL, begun.ID) // until the server ends it
	const want = "your address has moved the 1 MiB that it may in a day"
	status, answer := post(t, site.URL+"/test/begin", struct{}{})
	if status != http.StatusTooManyRequests || answer.Error == nil || answer.Error.Message != want ||
		answer.Error.Try != "again in 24 hours" {
		t.Errorf("begin: %d %+v", status, answer.Error)
	}
	may := must.Get(http.Get(site.URL + "/test/may"))(t)
	defer may.Body.Close()
	if err := json.NewDecoder(may.Body).Decode(&answer); err != nil || may.StatusCode != http.StatusTooManyRequests ||
		answer.Error.Message != want {
		t.Errorf("may: %d %v %+v", may.StatusCode, err, answer.Error)
	}
}

func TestSpeed_ShowsOnlyBrowserResults(t *testing.T) {
	const id = "11111111-1111-7111-8111-111111111111"
	doc := &record.Measure{Peer: "server.example"}
	doc.Envelope = &record.Envelope{ID: id}
	found := func(context.Context, string) (record.Document, error) { return doc, nil }
	site, _ := speedSite(t, SpeedConfig{Kept: found}, "")
	for _, path := range []string{"/test/" + id, "/test/unknown", "/runs/" + id, "/api/v1/paths", "/s/x/"} {
		r := must.Get(http.Get(site.URL + path))(t)
		r.Body.Close()
		if r.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, r.StatusCode)
		}
	}
}

// TestSpeed_LimitsHistorySearches checks the rate limit of result pages, since each search opens the history.
func TestSpeed_LimitsHistorySearches(t *testing.T) {
	searches := 0
	var fault error = errNoRun
	find := func(context.Context, string) (record.Document, error) { searches++; return nil, fault }
	site, _ := speedSite(t, SpeedConfig{Kept: find}, "")
	codes := map[int]int{}
	seek := func() int {
		r := must.Get(http.Get(site.URL + "/test/11111111-1111-7111-8111-111111111111"))(t)
		r.Body.Close()
		codes[r.StatusCode]++
		return r.StatusCode
	}
	fault = &store.Unavailable{Err: errNoRun}
	if seek() != http.StatusServiceUnavailable {
		t.Errorf("history unavailable: %v", codes)
	}
	for fault = errNoRun; codes[http.StatusTooManyRequests] < 20; {
		seek()
	}
	if searches > 30 || codes[http.StatusNotFound] < 10 {
		t.Errorf("%d searches: %v", searches, codes)
	}
}

func TestSpeed_RequiresToken(t *testing.T) {
	site, _ := speedSite(t, SpeedConfig{}, "a token of many characters")
	if status, _ := post(t, site.URL+"/test/begin", struct{}{}); status != http.StatusUnauthorized {
		t.Errorf("without: %d", status)
	}
	if status, _ := post(t, site.URL+"/test/begin?access_token="+url.QueryEscape("a token of many characters"),
		struct{}{}); status != http.StatusOK {
		t.Errorf("with it: %d", status)
	}
	for _, address := range []string{"?access_token=wrong", ""} {
		_, answer, err := websocket.Dial(t.Context(), site.URL+ndt7.UploadPath+address,
			&websocket.DialOptions{Subprotocols: []string{ndt7.Protocol}})
		if err == nil || answer == nil || answer.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %v", address, err)
		}
	}
}
