package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// inline matches inline scripts and styles, which the policy blocks, and addresses of other hosts.
var inline = regexp.MustCompile(`(?i)<script(?: type="module")?>|<style| style=|javascript:|` +
	`(?:src|href)="(?:https?:)?//`)

// TestPages_HaveNoActiveContent requests every page, with results of every kind whose texts contain markup and
// bidirectional controls. Pages contain nothing inline, nothing from other hosts and no control characters.
func TestPages_HaveNoActiveContent(t *testing.T) {
	s, id, key := newTestServer(t, Config{Opening: "opening-token-0123", Note: "of <b>one</b> host",
		Watch: nil})
	base, cookie := openedBy(t, s, "opening-token-0123")
	pages := []string{"/", "/paths/" + key, "/paths/" + key + "?span=week", "/runs/" + id,
		"/compare?first=" + id + "&second=" + id, "/live", "/nothing"}
	stored, err := filepath.Glob("../render/testdata/*.txtar")
	if err != nil || len(stored) < 15 {
		t.Fatal(stored, err)
	}
	const attack = "\"><img src=x onerror=alert(1)>\u202e'"
	kept := 0
	for i, file := range stored {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var doc, samples []byte
		for _, part := range archive.Files {
			switch part.Name {
			case "record.json":
				doc = part.Data
			case "samples.json":
				samples = part.Data
			}
		}
		var object map[string]any
		must.Do(t, json.Unmarshal(doc, &object))
		own := fmt.Sprintf("019aa000-0000-7000-8000-%012d", i)
		object["id"], object["path_key"] = own, record.SeriesID{Far: file}.Key()
		object["outcome"], object["origin"] = "done", "manual"
		object["labels"] = map[string]string{attack: attack}
		for _, name := range []string{"peer", "version"} {
			if object[name] != nil {
				object[name] = attack
			}
		}
		if doc, err = json.Marshal(object); err != nil {
			t.Fatal(err)
		}
		if added, err := s.cfg.History.Add(t.Context(), doc, samples); err == nil && added {
			pages = append(pages, "/runs/"+own, "/paths/"+record.SeriesID{Far: file}.Key())
			kept++
		}
	}
	if kept < 8 {
		t.Errorf("only %d stored documents are results", kept)
	}
	for _, page := range pages {
		w := ask(s, "GET", base+page, func(r *http.Request) {
			r.AddCookie(cookie)
			r.Header.Set("Accept", "text/html")
		})
		want := 200
		if page == "/nothing" {
			want = 404
		}
		body := w.Body.String()
		if w.Code != want || !strings.Contains(body, "</html>") {
			t.Errorf("%s: %d: %.300s", page, w.Code, body)
		}
		if found := inline.FindString(body); found != "" || strings.ContainsAny(body, "\u202e") {
			at := strings.Index(body, found)
			t.Errorf("%s: %q in %.200s", page, found, body[max(at-80, 0):])
		}
		if !strings.Contains(body, "of &lt;b&gt;one&lt;/b&gt; host") {
			t.Errorf("%s: without the note", page)
		}
	}
}

// TestSeries_ShowsWholeSpan checks that a selected span is shown from its beginning, for any number of results.
func TestSeries_ShowsWholeSpan(t *testing.T) {
	s, _, _ := newTestServer(t, Config{Opening: "opening-token-0123"})
	base, cookie := openedBy(t, s, "opening-token-0123")
	at := time.Date(2026, 11, 2, 0, 30, 0, 0, time.UTC) // never at the time of the other path's results
	var key string
	for n := range defaultRuns + 100 {
		doc := measureDocument(at.Add(time.Duration(n)*time.Hour), n, "often.example.net", 90e6)
		encoded := must.Get(record.Encode(doc))(t)
		must.Get(s.cfg.History.Add(t.Context(), encoded, nil))(t)
		key = doc.PathKey
	}
	for span, want := range map[string]int{"month": defaultRuns + 100, "day": 25, "": defaultRuns} {
		w := ask(s, "GET", base+"/paths/"+key+"?span="+span, func(r *http.Request) { r.AddCookie(cookie) })
		if query := fmt.Sprintf("runs?limit=%d&amp;since=", want); !strings.Contains(w.Body.String(), query) {
			_, rest, _ := strings.Cut(w.Body.String(), "/runs?")
			t.Errorf("%q: not %d results: %.60s", span, want, rest)
		}
		if older := `<a href="?before=2026-`; span == "" && !strings.Contains(w.Body.String(), older) {
			t.Errorf("no link to older results: %s", older)
		}
	}
}

// TestSeries_TuneDecision checks that a path's page says how sure the gain of a tune is.
func TestSeries_TuneDecision(t *testing.T) {
	s, _, _ := newTestServer(t, Config{Opening: "opening-token-0123"})
	base, cookie := openedBy(t, s, "opening-token-0123")
	measured := measureDocument(time.Date(2026, 11, 3, 0, 30, 0, 0, time.UTC), 1, "tuned.example.net", 90e6)
	doc := &record.Tune{Header: measured.Header, Peer: measured.Peer, Directions: []record.TuneDirection{{Direction: "up",
		Verdict: search.Change, Decision: &record.TuneDecision{Strength: search.Likely, Tried: []string{"bbr"}},
		Before: record.TuneMeasured{Direction: measured.Directions[0], MedianBps: 90e6}}}}
	doc.Schema = "fullpipe/tune/v1"
	encoded := must.Get(record.Encode(doc))(t)
	must.Get(s.cfg.History.Add(t.Context(), encoded, nil))(t)
	w := ask(s, "GET", base+"/paths/"+doc.PathKey, func(r *http.Request) { r.AddCookie(cookie) })
	if !strings.Contains(w.Body.String(), "(change likely to help)") {
		t.Errorf("%d: without the decision", w.Code)
	}
}

// TestGrid_DistinguishesSeries checks that the grid shows the kind of each series, and the path key for series with the
// same far end and kind.
func TestGrid_DistinguishesSeries(t *testing.T) {
	s, _, _ := newTestServer(t, Config{Opening: "opening-token-0123"})
	base, cookie := openedBy(t, s, "opening-token-0123")
	at := time.Date(2026, 11, 2, 0, 30, 0, 0, time.UTC)
	keep := func(n, streams int) string {
		doc := measureDocument(at.Add(time.Duration(n)*time.Hour), n, "one.example.net", 90e6)
		doc.PathKey = record.SeriesID{Far: doc.Peer, Streams: streams}.Key()
		encoded := must.Get(record.Encode(doc))(t)
		must.Get(s.cfg.History.Add(t.Context(), encoded, nil))(t)
		return doc.PathKey
	}
	grid := func() string {
		return ask(s, "GET", base+"/", func(r *http.Request) { r.AddCookie(cookie) }).Body.String()
	}
	first := keep(901, 1)
	if body := grid(); !strings.Contains(body, `one.example.net</a> <span class="facts">measure</span>`) {
		t.Errorf("the kind is missing: %s", body)
	}
	second, body := keep(902, 8), grid()
	for _, key := range []string{first, second} {
		if !strings.Contains(body, `one.example.net</a> <span class="facts">measure `+key[:6]+`</span>`) {
			t.Errorf("the row of %s has no key", key)
		}
	}
}

// TestGrid_TroubleComesFirstOverAllPages checks that the one path with trouble, the oldest of three pages, is the first
// of the first page, and that the sums are of all paths.
func TestGrid_TroubleComesFirstOverAllPages(t *testing.T) {
	s, _, _ := newTestServer(t, Config{Opening: "opening-token-0123"})
	base, cookie := openedBy(t, s, "opening-token-0123")
	at := time.Date(2026, 10, 2, 0, 30, 0, 0, time.UTC) // before all other results
	const others = 2*maxPathsPerPage + 10
	for n := range 7 + others {
		far, bps := "slow.example.net", 90e6
		switch {
		case n == 6:
			bps = 9e6
		case n > 6:
			far = fmt.Sprintf("h%d.example.net", n)
		}
		encoded, err := record.Encode(measureDocument(at.Add(time.Duration(n)*time.Minute), 1000+n, far, bps))
		if err != nil {
			t.Fatal(err)
		}
		must.Get(s.cfg.History.Add(t.Context(), encoded, nil))(t)
	}
	paths := must.Get(s.cfg.History.Paths(t.Context(), 0, 1000))(t)
	seen := map[string]int{}
	for offset := 0; offset < len(paths); offset += maxPathsPerPage {
		url := fmt.Sprintf("%s/?offset=%d", base, offset)
		body := ask(s, "GET", url, func(r *http.Request) { r.AddCookie(cookie) }).Body.String()
		_, rows, _ := strings.Cut(body, "<tbody>")
		first, _, _ := strings.Cut(rows, "</a>")
		if trouble := strings.HasSuffix(first, ">slow.example.net"); trouble != (offset == 0) {
			t.Errorf("offset %d begins with %q", offset, first)
		}
		_, sums, _ := strings.Cut(body, `<p class="sum">`)
		sums, _, _ = strings.Cut(sums, "</p>")
		total := 0
		for _, m := range regexp.MustCompile(`>(\d+) `).FindAllStringSubmatch(sums, -1) {
			n, _ := strconv.Atoi(m[1])
			total += n
		}
		if total != len(paths) {
			t.Errorf("offset %d: %d of %d paths: %s", offset, total, len(paths), sums)
		}
		for _, p := range paths {
			seen[p.Path] += min(strings.Count(body, "/paths/"+p.Path), 1)
		}
	}
	for n, bps := range []float64{90e6, 90e6, 90e6, 90e6, 90e6, 1e6} {
		doc := measureDocument(at.Add(time.Duration(2000+n)*time.Minute), 5001+n, "h9.example.net", bps)
		encoded := must.Get(record.Encode(doc))(t)
		must.Get(s.cfg.History.Add(t.Context(), encoded, nil))(t)
	}
	body := ask(s, "GET", base+"/", func(r *http.Request) { r.AddCookie(cookie) }).Body.String()
	_, rows, _ := strings.Cut(body, "<tbody>")
	if first, _, _ := strings.Cut(rows, "</a>"); !strings.HasSuffix(first, ">h9.example.net") {
		t.Errorf("after a new result the page begins with %q", first)
	}
	for path, pages := range seen {
		if pages != 1 {
			t.Errorf("%s is on %d pages", path, pages)
		}
	}
}

// TestScripts_LimiterLetters checks that series.js has the letters of all limiters.
func TestScripts_LimiterLetters(t *testing.T) {
	script := must.Get(os.ReadFile("static/series.js"))(t)
	for _, name := range verdict.Names() {
		if entry := fmt.Sprintf("%q: %q", name, text.Letter(string(name))); !strings.Contains(string(script), entry) {
			t.Errorf("series.js does not have %s", entry)
		}
	}
}
