//go:build linux

package pages

import (
	"context"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

//go:embed contrast.js
var contrastScript string

// TestPages_CanBeRead takes a screenshot of each page, 380 to 1300 pixels wide, light and dark. No page is wider than
// the screen, and every text has the contrast of WCAG 2.2 AA. FULLPIPE_SHOTS names a directory for the screenshots.
func TestPages_CanBeRead(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	harness.FillHistory(t, s, "backup.example.org", 336)
	harness.FillHistory(t, s, "fullpipe://[2001:db8:85a3::8a2e:370:7334]:5201", 40)
	harness.FillHistory(t, s, "https://downloads.example.net/an/object/with/a/rather/long/name.iso", 4)
	kinds := storedOf(t, s)
	add := func(id, kind string, doc record.Document) string {
		t.Helper()
		h := doc.Head()
		h.Schema = "fullpipe/" + kind + "/v1"
		h.Version = "test"
		h.StartedAt = time.Date(2026, 11, 22, 6, 53, 11, 0, time.UTC)
		h.Envelope = &record.Envelope{ID: id, PathKey: record.SeriesID{Far: id}.Key(), Outcome: record.Done,
			Origin: record.Manual}
		text, err := record.Encode(doc)
		if err != nil {
			t.Fatal(err)
		}
		samples, err := record.EncodeSamples(doc)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(t.Context(), text, samples); err != nil {
			t.Fatal(err)
		}
		return id
	}
	tuned := add("019aa000-0000-7000-8000-000000000101", "tune", tunedPath(t))
	tested := add("019aa000-0000-7000-8000-000000000102", "measure", browserTest())
	site, open := harness.ServePages(t, s)
	ctx := scripted(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(open), chromedp.WaitVisible(chromedp.CSS("nav"))); err != nil {
		t.Fatal(err)
	}
	base := site.URL + evaluate(t, ctx, `location.pathname`)
	canBeRead(t, ctx, base, []pageToRead{
		{"ui", "", `document.querySelectorAll('svg.strip').length > 3`},
		{"tune", "runs/" + tuned, `document.querySelectorAll('svg.chart').length >= 3`},
		{"speed", "test/" + tested, `document.querySelectorAll('svg.chart').length == 4`},
		{"diagnose", "runs/" + kinds["diagnose"], `document.querySelectorAll('svg.chart').length >= 4`},
		{"live", "live", `document.querySelectorAll('#rows tr').length == 1`},
		{"run", "runs/" + kinds["measure"], `document.querySelector('svg.shares') != null`},
		{"series", "paths/" +
			record.SeriesID{Far: "backup.example.org"}.Key(),
			`document.querySelectorAll('.zoom canvas').length >= 2`},
	})
}

// pageToRead is a page below an address. ready is the condition, in JavaScript, that it is complete.
type pageToRead struct{ name, path, ready string }

// canBeRead checks the width and the contrast of pages, and takes their screenshots.
func canBeRead(t *testing.T, ctx context.Context, base string, pages []pageToRead) {
	t.Helper()
	dir := os.Getenv("FULLPIPE_SHOTS")
	if dir == "" {
		dir = t.ArtifactDir()
	}
	for _, page := range pages {
		for _, view := range []struct {
			width  int64
			scheme string
		}{{380, "light"}, {380, "dark"}, {1024, "light"}, {1300, "dark"}} {
			name := fmt.Sprintf("%s-%d-%s", page.name, view.width, view.scheme)
			if err := chromedp.Do(ctx, emulate(view.scheme), chromedp.EmulateViewport(view.width, 900),
				chromedp.Navigate(base+page.path)); err != nil {
				t.Fatal(err)
			}
			pollPage(t, ctx, page.ready)
			if saw := evaluate(t, ctx, `String(document.documentElement.scrollWidth)`); saw != fmt.Sprint(view.width) {
				t.Errorf("%s: the page is %s wide", name, saw)
			}
			if saw := evaluate(t, ctx, contrastScript); saw != "" {
				t.Errorf("%s: contrast too low:\n%s", name, saw)
			}
			shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name+".png"), shot, 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestTimes_LocalTimeAndUTC opens the paths in Tokyo, 9 hours ahead of UTC, and on Kiritimati, where it is the
// next day.
func TestTimes_LocalTimeAndUTC(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	harness.FillHistory(t, s, "backup.example.org", 3) // the newest at 12:00 UTC
	_, open := harness.ServePages(t, s)
	ctx := scripted(t)
	for zone, want := range map[string]string{"Asia/Tokyo": "2026-11-22 21:00", "Pacific/Kiritimati": "2026-11-23 02:00",
		"UTC": "2026-11-22 12:00"} {
		inZone := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetTimezoneOverride,
				emulation.SetTimezoneOverrideParams{TimezoneID: zone})
			return err
		})
		if err := chromedp.Do(ctx, inZone, chromedp.Navigate(open), chromedp.WaitVisible(chromedp.CSS("nav"))); err != nil {
			t.Fatal(err)
		}
		pollPage(t, ctx, `document.readyState == 'complete'`)
		const read = `document.querySelector('.when time').textContent`
		saw := evaluate(t, ctx, read)
		if foot := evaluate(t, ctx, `document.getElementById('zone').innerText`); saw != want ||
			strings.HasPrefix(foot, "Times are of "+zone) != (zone != "UTC") {
			t.Errorf("%s: %q, and %q", zone, saw, foot)
		}
		const showUTC = `(document.querySelector('#zone button')?.click(), ` + read + `)`
		if saw := evaluate(t, ctx, showUTC); saw != "2026-11-22 12:00" {
			t.Errorf("%s: UTC on demand is %q", zone, saw)
		}
		evaluate(t, ctx, `(sessionStorage.clear(), '')`)
	}
}

// TestContrast_FindsWeakText checks the check: it reports weak text on the page, on a picture's shape and under
// opacity, and no other.
func TestContrast_FindsWeakText(t *testing.T) {
	t.Parallel()
	const page = `<!doctype html><body style="color:#000; background:#fff">
<p>one</p><p>two</p><p>three</p><p>four</p><p>five</p><p>six</p><p>seven</p><p>eight</p><p>nine</p><p>ten</p>
<p style="color:#888">weak text</p><p style="opacity:.4">faint text</p>
<p style="color:#888; font-size:30px">large text</p>
<svg width="200" height="60"><rect width="200" height="60" fill="#222"/><text x="5" y="20" fill="#fff">white text</text>
<text x="5" y="50" fill="#444">dark text</text></svg>`
	ctx := scripted(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(servedPage(t, []byte(page)))); err != nil {
		t.Fatal(err)
	}
	saw := evaluate(t, ctx, contrastScript)
	for _, text := range []string{"weak text", "faint text", "dark text"} {
		if !strings.Contains(saw, text) {
			t.Errorf("%s is not found in:\n%s", text, saw)
		}
	}
	if strings.Count(saw, "\n") != 2 {
		t.Errorf("not three texts:\n%s", saw)
	}
}

// tunedPath tunes a simulated path between hosts that stop at 64 KiB. The curves are of a recorded transfer; a larger
// window has proportionally larger values.
func tunedPath(t *testing.T) *record.Tune {
	t.Helper()
	path := &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 1e6, Harm: 1, AutoWindow: 65535,
		Noise: simpath.Noise{Dev: 0.004}}
	result, err := tune.Run(t.Context(), tune.Config{Peer: simpeer.New(path, 1),
		Directions: []transfer.Direction{transfer.Up}})
	if err != nil {
		t.Fatal(err)
	}
	doc := report.Tune(record.Header{}, "far.example.net", result, nil, nil)
	archive, err := txtar.ParseFile("../../internal/render/testdata/measure-kept.txtar")
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string][]byte{}
	for _, part := range archive.Files {
		parts[part.Name] = part.Data
	}
	kept, err := record.Decode(parts["record.json"], parts["samples.json"])
	if err != nil {
		t.Fatal(err)
	}
	curves := kept.(*record.Measure).Directions[0].Curves
	d := &doc.Directions[0]
	if d.After == nil || len(curves.InFlight) < 3 {
		t.Fatalf("%+v", d)
	}
	d.Before.Curves = curves
	d.After.Curves = curves
	d.After.Curves.Rate = times(curves.Rate, d.Gain.Factor)
	d.After.Curves.InFlight = times(curves.InFlight, d.Gain.Factor)
	return doc
}

func times(points []flow.Point, factor float64) (all []flow.Point) {
	for _, p := range points {
		all = append(all, flow.Point{At: p.At, Value: int64(float64(p.Value) * factor)})
	}
	return all
}

// browserTest returns a speed test of 93 Mbit/s down and 18 Mbit/s up with a queue of 60 ms.
func browserTest() *record.Measure {
	doc := &record.Measure{Peer: record.BrowserScheme + "192.0.2.9"}
	for _, one := range []struct {
		direction transfer.Direction
		streams   int
		bps       float64
		limiter   verdict.Name
	}{{transfer.Up, 1, 93e6, verdict.Bottleneck}, {transfer.Up, 4, 95e6, verdict.Bottleneck},
		{transfer.Down, 1, 18e6, verdict.Congestion}, {transfer.Down, 4, 41e6, verdict.Bottleneck}} {
		d := record.Direction{Direction: one.direction, GoodputBps: &one.bps, RTTMin: units.Duration(21 * time.Millisecond),
			Streams: make([]record.Stream, one.streams), Verdict: verdict.Verdict{Limiter: one.limiter,
				Confidence: verdict.High, Shares: verdict.Shares{one.limiter: 0.93, verdict.SlowStart: 0.07}}}
		var loaded []time.Duration
		for i := range 100 {
			at := float64(i) / 20
			added := 60 * (1 - math.Exp(-at)) * (1 + 0.2*math.Sin(7*at))
			loaded = append(loaded, time.Duration((21+added)*1e6))
			d.Curves.Probes = append(d.Curves.Probes, flow.Point{At: int64(at * 1e9), Value: int64(loaded[i])})
			if i%4 == 0 {
				bps := one.bps * (1 - math.Exp(-3*at)) * (1 + 0.03*math.Sin(9*at))
				d.Intervals = append(d.Intervals, record.Interval{StartS: at, EndS: at + 0.2, GoodputBps: bps})
			}
		}
		d.Latency = report.Latency(&transfer.Latency{Method: transfer.EchoMethod, Loaded: loaded,
			Idle: []time.Duration{21e6, 21e6, 22e6, 23e6}}, &d)
		doc.Directions = append(doc.Directions, d)
	}
	return doc
}
