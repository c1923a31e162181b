//go:build linux

package pages

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// scripted is a browser in which a page's script may not fail.
func scripted(t *testing.T) context.Context {
	t.Helper()
	var mu sync.Mutex // guards problems
	var problems []string
	t.Cleanup(func() { // after the browser's end
		mu.Lock()
		defer mu.Unlock()
		for _, problem := range problems {
			t.Error(problem)
		}
	})
	return harness.StartBrowser(t, func(event any) {
		if kind := fmt.Sprintf("%T", event); strings.Contains(kind, "ExceptionThrown") {
			mu.Lock()
			defer mu.Unlock()
			problems = append(problems, fmt.Sprintf("%s: %+v", kind, event))
		}
	})
}

// servedPage serves a page until the test ends, and returns its address.
func servedPage(t *testing.T, html []byte) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(html)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// emulate sets the colour scheme that the user prefers.
func emulate(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	})
}

// eachView shows a page on a desk and on a phone, light and dark, and checks each once an element of it is there: the
// page fits, and has the background of its scheme.
func eachView(t *testing.T, ctx context.Context, url, element string, look func(name string)) {
	t.Helper()
	for _, view := range []struct {
		scheme string
		width  int64
	}{{"light", 1200}, {"dark", 1200}, {"light", 390}, {"dark", 390}} {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(view.width, 900), emulate(view.scheme), chromedp.Navigate(url),
			chromedp.WaitVisible(chromedp.CSS(element))); err != nil {
			t.Fatal(err)
		}
		name := fmt.Sprintf("%s, %d wide", view.scheme, view.width)
		if got := evaluate(t, ctx, `String(document.documentElement.scrollWidth - innerWidth)`); got != "0" {
			t.Errorf("%s: the page is %s pixels wider than the screen", name, got)
		}
		want := map[string]string{"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 31)"}[view.scheme]
		if got := evaluate(t, ctx, `getComputedStyle(document.body).backgroundColor`); got != want {
			t.Errorf("%s: the paper is %s", name, got)
		}
		look(name)
	}
}

// prints prints the open page.
func prints(t *testing.T, ctx context.Context) {
	t.Helper()
	pdf, err := chromedp.Run(ctx, chromedp.PrintToPDF())
	if err != nil || !bytes.HasPrefix(pdf, []byte("%PDF")) || len(pdf) < 10_000 {
		t.Errorf("printed: %d bytes, %v", len(pdf), err)
	}
}

func evaluate(t *testing.T, ctx context.Context, expression string) string {
	t.Helper()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](expression))
	if err != nil {
		t.Fatal(err)
	}
	return text
}
