//go:build linux

package pages

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
)

// page returns the output of diagnose --html for a recorded capture.
func page(t *testing.T, file string) []byte {
	t.Helper()
	read := func(cfg capture.Config) *capture.Analysis {
		f, err := capture.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		a, err := capture.Analyze(t.Context(), cfg, f)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	doc := diagnose.New(read(capture.Config{}), 1)
	doc.Draw(read(capture.Config{Flow: doc.Graphs(5)}))
	var out bytes.Buffer
	if err := html.Write(&out, doc.Record); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestDiagnosePage opens the page in a real browser: the charts are drawn, a drag zooms all of a transfer's graphs,
// hovering reads values, a double click goes back, nothing fails.
func TestDiagnosePage(t *testing.T) {
	t.Parallel()
	html := page(t, "../../internal/diagnose/testdata/loss-1pc-cubic.near.pcap.zst")
	if n := bytes.Count(html, []byte(`<svg class="chart"`)); n < 4 {
		t.Fatalf("%d graphs without scripts", n)
	}
	for _, outside := range []string{"http://", "https://", "src=", "@import"} {
		if bytes.Contains(bytes.ReplaceAll(html, []byte("http://www.w3.org/2000/svg"), nil), []byte(outside)) {
			t.Errorf("the page asks for something outside itself: %s", outside)
		}
	}
	ctx := scripted(t)
	if err := chromedp.Do(ctx, chromedp.Navigate(servedPage(t, html)),
		chromedp.WaitVisible(chromedp.CSS("svg.chart"))); err != nil {
		t.Fatal(err)
	}
	const line = `document.querySelector('path[data-line="data"]').getAttribute('d')`
	const axis = `[...document.querySelectorAll('svg.chart')].map(s => [...s.querySelectorAll('text.below')].map(t => t.textContent).join()).join('|')`
	first := `document.querySelector('svg.chart text.below').textContent`
	before, axisBefore, tick := evaluate(t, ctx, line), evaluate(t, ctx, axis), evaluate(t, ctx, first)
	box := evaluate(t, ctx,
		`(() => { const r = document.querySelector('svg.chart').getBoundingClientRect(); return [r.x, r.y, r.width, r.height].join(' ') })()`)
	var x, y, width, height float64
	if _, err := fmt.Sscan(box, &x, &y, &width, &height); err != nil {
		t.Fatal(err)
	}
	middle := y + height/2
	poll := func(condition string) chromedp.Action[chromedp.Void] {
		return func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
			_, err := chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(time.Minute))(ctx, target)
			return chromedp.Void{}, err
		}
	}
	if err := chromedp.Do(ctx, chromedp.DragAndDropXY(x+0.3*width, middle, x+0.5*width, middle),
		poll(first+` !== '`+tick+`'`)); err != nil {
		t.Fatal(err)
	}
	zoomed, axisZoomed, read := evaluate(t, ctx, line), evaluate(t, ctx, axis),
		evaluate(t, ctx, `document.querySelector('.direction output').textContent`)
	if err := chromedp.Do(ctx, chromedp.MouseClickXY(x+0.5*width, middle, chromedp.ClickCount(2)),
		poll(first+` === '`+tick+`'`)); err != nil {
		t.Fatal(err)
	}
	back := evaluate(t, ctx, axis)
	if zoomed == before {
		t.Error("the line is the same after zooming")
	}
	for i, one := range strings.Split(axisZoomed, "|") {
		if one == strings.Split(axisBefore, "|")[i] {
			t.Errorf("graph %d did not follow the zoom: %s", i, one)
		}
	}
	if back != axisBefore {
		t.Errorf("a double click leads to %q, not back to %q", back, axisBefore)
	}
	for _, want := range []string{"outstanding ", "window ", "round trip ", "bit/s"} {
		if !strings.Contains(read, want) {
			t.Errorf("hovering reads %q, without %q", read, want)
		}
	}
}
