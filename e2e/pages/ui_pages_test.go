//go:build linux

package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/rogpeppe/go-internal/txtar"
)

// storedOf stores a document of each kind that has a page of its own.
func storedOf(t testing.TB, s *store.Store) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	for i, kind := range []string{"sweep", "rfc6349", "diagnose", "tune", "measure"} {
		archive, err := txtar.ParseFile("../../internal/render/testdata/" + kind + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		var samples []byte
		object := map[string]any{}
		for _, part := range archive.Files {
			switch part.Name {
			case "record.json":
				err = json.Unmarshal(part.Data, &object)
			case "samples.json":
				samples = part.Data
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		kinds[kind] = fmt.Sprintf("019aa000-0000-7000-8000-%012d", i)
		object["id"], object["path_key"] = kinds[kind], printed.SeriesID{Far: kind}.Key()
		object["outcome"], object["origin"] = printed.Done, printed.Manual
		if kind == "measure" {
			object["peer"] = "browser://192.0.2.9"
		}
		doc, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Add(context.Background(), doc, samples); err != nil {
			t.Fatal(err)
		}
	}
	return kinds
}

// TestUIPages looks at every page in a real browser, light, dark and narrow: the policy refuses nothing, nothing is
// requested from elsewhere, nothing is wider than the window. The chart zooms by keys and drags, and is drawn without
// scripts. FULLPIPE_SHOTS names a directory for the screenshots.
func TestUIPages(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	first := harness.FillHistory(t, s, "backup.example.org", 336)
	second := harness.FillHistory(t, s, "fullpipe://[2001:db8:85a3::8a2e:370:7334]:5201", 40)
	harness.FillHistory(t, s, "https://downloads.example.net/an/object/with/a/rather/long/name.iso", 4)
	kinds := storedOf(t, s)
	site, open := harness.ServePages(t, s)
	var mu sync.Mutex // guards problems
	var problems []string
	ctx := harness.StartBrowser(t, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		if request, ok := event.(*network.EventRequestWillBeSent); ok && !strings.HasPrefix(request.Request.URL, site.URL) &&
			request.Request.URL != "about:blank" {
			problems = append(problems, request.Request.URL)
		}
		if entry, ok := event.(*log.EventEntryAdded); ok && !strings.Contains(entry.Entry.Text, "404") { // a page is missing
			problems = append(problems, entry.Entry.Text)
		}
		if strings.Contains(fmt.Sprintf("%T", event), "ExceptionThrown") {
			problems = append(problems, fmt.Sprintf("%+v", event))
		}
	})
	do := func(actions ...chromedp.Action[chromedp.Void]) {
		t.Helper()
		if err := chromedp.Do(ctx, actions...); err != nil {
			t.Fatal(err)
		}
	}
	call := func(enable func(ctx context.Context, target *chromedp.Target) error) {
		t.Helper()
		do(chromedp.Func(enable))
	}
	call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{})
		return err
	})
	ask := func(script string) string {
		t.Helper()
		saw, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatalf("%s: %v", script, err)
		}
		return saw
	}
	until := func(condition string) { t.Helper(); pollPage(t, ctx, condition) }
	do(chromedp.Navigate(open), chromedp.WaitVisible(chromedp.CSS("nav"))) // the page that it leads to
	base := site.URL + ask(`location.pathname`)
	key := printed.SeriesID{Far: "backup.example.org"}.Key()
	pages := map[string]string{"grid": "", "series": "paths/" + key, "run": "runs/" + first,
		"compare": "compare?first=" + first + "&second=" + second, "live": "live", "refused": "nothing"}
	for kind, id := range kinds {
		pages[kind] = "runs/" + id
	}
	pages["test"], pages["tested"] = "test", "test/"+kinds["measure"]
	ready := map[string]string{"series": `document.querySelectorAll('.zoom canvas').length >= 2`,
		"live": `document.querySelectorAll('#rows tr').length == 1`}
	for _, view := range []struct {
		name, scheme string
		width        int64
	}{{"light", "light", 1200}, {"dark", "dark", 1200}, {"narrow", "light", 380}} {
		do(emulate(view.scheme))
		for name, path := range pages {
			do(chromedp.EmulateViewport(view.width, 900), chromedp.Navigate(base+path))
			until(`document.readyState == 'complete'`)
			if condition := ready[name]; condition != "" {
				until(condition)
			}
			if saw := ask(`String(document.documentElement.scrollWidth)`); saw != fmt.Sprint(view.width) && view.width == 380 {
				t.Errorf("%s, %s: the page is %s wide", name, view.name, saw)
			}
			if saw := ask(`[...document.querySelectorAll('.document, pre')].filter(e => e.scrollWidth > e.clientWidth &&
				e.clientWidth > 0).map(e => e.tagName).join()`); saw != "" && view.width == 380 {
				t.Errorf("%s, %s: %s scrolls sideways", name, view.name, saw)
			}
			if dir := os.Getenv("FULLPIPE_SHOTS"); dir != "" {
				shot, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name+"-"+view.name+".png"), shot, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	do(chromedp.Navigate(base + "live"))
	until(ready["live"])
	if saw := ask(`document.querySelector('#rows td').textContent + document.querySelectorAll('#rows b').length`); saw !=
		`<b>rsync</b>\u202e[4711]0` {
		t.Errorf("a program's name: %q", saw)
	}
	if saw := ask(`document.querySelector('#rows .do').textContent + document.querySelectorAll('#rows .shares rect').length`); !strings.HasPrefix(
		saw, "give both ends larger buffers") || !strings.HasSuffix(saw, ")2") {
		t.Errorf("the remedy and the bar of shares: %q", saw)
	}
	do(chromedp.EmulateViewport(1200, 900), chromedp.Navigate(base+pages["series"]))
	until(ready["series"])
	const ticks = `document.querySelector('.zoom canvas').toDataURL().length + document.querySelector('.zoom canvas').toDataURL()`
	whole := ask(ticks)
	ask(`document.querySelector('.zoom').focus(); ''`)
	do(chromedp.KeyEvent("+"))
	until(fmt.Sprintf(`(%s) != %q`, ticks, whole))
	do(chromedp.KeyEvent("0"))
	until(fmt.Sprintf(`(%s) == %q`, ticks, whole))
	call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	})
	do(chromedp.Navigate(base+pages["series"]), chromedp.WaitVisible(chromedp.CSS("svg.series")))
	mu.Lock()
	defer mu.Unlock()
	if len(problems) > 0 {
		t.Errorf("%d problems: %s", len(problems), strings.Join(problems[:min(5, len(problems))], "\n"))
	}
}

// pollPage waits until a page's script returns true.
func pollPage(t *testing.T, ctx context.Context, condition string) {
	t.Helper()
	if err := chromedp.Do(ctx, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(time.Minute))(ctx, target)
		return chromedp.Void{}, err
	}); err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
}
