//go:build linux

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/rogpeppe/go-internal/txtar"
)

// hostilePages are the pages of all stored documents, with their samples if any. Every text in them is markup.
func hostilePages(t *testing.T) map[string][]byte {
	t.Helper()
	program := harness.Program(t)
	stored, err := filepath.Glob("../../internal/render/testdata/*.txtar")
	if err != nil || len(stored) < 20 {
		t.Fatalf("%d stored documents, %v", len(stored), err)
	}
	pages := map[string][]byte{}
	for _, file := range stored {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		doc := map[string]json.RawMessage{}
		for _, part := range archive.Files {
			switch part.Name {
			case "record.json":
				err = json.Unmarshal(part.Data, &doc)
			case "samples.json":
				doc["samples"] = part.Data
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		mark := exec.CommandContext(t.Context(), harness.HostileProgram(t), "markup")
		mark.Stdin = bytes.NewReader(text)
		if text, err = mark.Output(); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		dir := t.TempDir()
		from, to := filepath.Join(dir, "document"), filepath.Join(dir, "page")
		if err := os.WriteFile(from, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), program, "show", from, "--html", to).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", file, err, out)
			continue
		}
		page, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		pages["/"+filepath.Base(file)] = page
	}
	return pages
}

// TestHostilePages opens the pages of documents whose texts are markup in a real browser: no script of theirs runs,
// only the page itself is requested, and the texts can be read.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	pages := hostilePages(t)
	pages["/control"] = []byte(`<!doctype html><title>x</title><body>hurt()<img src=x onerror=hurt()>`)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(pages[r.URL.Path])
	}))
	defer server.Close()
	var mu sync.Mutex // guards what follows
	var thrown, asked []string
	ctx := harness.StartBrowser(t, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		if kind := fmt.Sprintf("%T", event); strings.Contains(kind, "ExceptionThrown") {
			thrown = append(thrown, fmt.Sprintf("%+v", event))
		}
		if request, ok := event.(*network.EventRequestWillBeSent); ok && !strings.HasSuffix(request.Request.URL,
			"favicon.ico") {
			asked = append(asked, request.Request.URL)
		}
	})
	if err := chromedp.Do(ctx, func(ctx context.Context, target *chromedp.Target) (chromedp.Void, error) {
		_, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{})
		return chromedp.Void{}, err
	}); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		mu.Lock()
		thrown, asked = nil, nil
		mu.Unlock()
		if err := chromedp.Do(ctx, chromedp.Navigate(server.URL+name)); err != nil {
			t.Fatal(err)
		}
		// A request that the page makes at once goes to this host and fails within a moment.
		saw, err := chromedp.Run(ctx, chromedp.Evaluate[string](`new Promise(done => setTimeout(() => done([
			document.querySelectorAll('img, iframe, object, embed, [onload], [onerror], [href^="javascript:"]').length,
			document.body.innerText.includes('hurt()')].join(' ')), 50))`,
			chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		problems := fmt.Sprintf("%d exceptions, %d requests, %s: %v %v", len(thrown), len(asked), saw, thrown, asked)
		safe := len(thrown) == 0 && len(asked) == 1 && saw == "0 true"
		if name == "/control" {
			safe = len(thrown) > 0 && len(asked) > 1
		}
		mu.Unlock()
		if !safe {
			t.Errorf("%s: %s", name, problems)
		}
	}
}
