//go:build linux

package harness

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// StartBrowser starts headless Chromium for the test and calls problem with each browser event. It needs
// testenv.Chromium.
func StartBrowser(t *testing.T, problem func(event any), more ...chromedp.ExecAllocatorOption) context.Context {
	t.Helper()
	program := testenv.Program(t, testenv.Chromium)
	ctx, cancel := chromedp.NewContext(t.Context(), chromedp.WithListener(problem),
		chromedp.WithAllocatorOptions(append(more, chromedp.ExecPath(program), chromedp.NoSandbox,
			chromedp.WindowSize(1200, 1000))...))
	t.Cleanup(cancel)
	return ctx
}

// BrowserResult is the line that `serve --web --json` prints for a browser's test.
type BrowserResult struct {
	Event, Web, Page, Client string
	Directions               []BrowserDirection
}

// BrowserDirection is one direction of a BrowserResult. Directions are the server's: "up" is the browser's
// download.
type BrowserDirection struct {
	Direction, Limiter, Confidence string
	Streams                        int
	Candidates                     []string
	GoodputBps                     float64 `json:"goodput_bps"`
	DurationS                      float64 `json:"duration_s"`
}

// ReadWebEvents reads the lines that `serve --web --json` prints and calls each with those of browser tests.
func ReadWebEvents(out io.Reader, each func(BrowserResult)) {
	for lines := bufio.NewScanner(out); lines.Scan(); {
		var one BrowserResult
		if json.Unmarshal(lines.Bytes(), &one) == nil && strings.HasPrefix(one.Event, "web") {
			each(one)
		}
	}
}

// ChromiumCommand returns a command line that shows a page in Chromium until it is killed. It uses no debugger,
// which makes a WebSocket 15 times slower.
func ChromiumCommand(t *testing.T, page string) []string {
	t.Helper()
	return []string{testenv.Program(t, testenv.Chromium), "--headless=new", "--no-sandbox", "--disable-gpu",
		"--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--user-data-dir=" + profileDir(t), page}
}

// profileDir returns a directory that is removed after the test, even while the browser still writes to it.
func profileDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fullpipe-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
