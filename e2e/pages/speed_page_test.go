//go:build linux

package pages

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// shownPage is a browser, under a debugger, that looks at pages.
type shownPage struct {
	t        *testing.T
	ctx      context.Context
	mu       sync.Mutex // guards problems
	problems []string   // messages of the browser's console, and exceptions
}

func newShownPage(t *testing.T) *shownPage {
	t.Helper()
	p := &shownPage{t: t}
	p.ctx = harness.StartBrowser(t, func(event any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if entry, is := event.(*log.EventEntryAdded); is {
			p.problems = append(p.problems, entry.Entry.Text)
		}
		if strings.Contains(fmt.Sprintf("%T", event), "ExceptionThrown") {
			p.problems = append(p.problems, fmt.Sprintf("%+v", event))
		}
	})
	return p
}

func (p *shownPage) open(address string) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, chromedp.Navigate(address)); err != nil {
		p.t.Fatal(err)
	}
}

// until waits until a script returns true, also on a page that follows.
func (p *shownPage) until(condition string) {
	p.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; {
		_, err := chromedp.Run(p.ctx, chromedp.Poll[bool](condition, chromedp.WithPollingTimeout(time.Minute)))
		if err == nil {
			return
		}
		left := strings.Contains(err.Error(), "context with specified id") ||
			strings.Contains(err.Error(), "navigated or closed")
		if !left || time.Now().After(deadline) {
			p.t.Fatalf("%s: %v: the page says %s", condition, err, p.ask(`document.body.innerText`))
		}
	}
}

func (p *shownPage) ask(script string) string {
	p.t.Helper()
	saw, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return saw
}

// look views the page light, dark and narrow: no view is wider than the window. FULLPIPE_SHOTS names a directory for
// screenshots.
func (p *shownPage) look(name string) {
	p.t.Helper()
	for _, view := range []struct {
		name, scheme string
		width        int64
	}{{"light", "light", 1200}, {"dark", "dark", 1200}, {"narrow", "light", 380}} {
		if err := chromedp.Do(p.ctx, emulate(view.scheme), chromedp.EmulateViewport(view.width, 900)); err != nil {
			p.t.Fatal(err)
		}
		if saw := p.ask(`String(document.documentElement.scrollWidth)`); saw != fmt.Sprint(view.width) {
			p.t.Errorf("%s, %s: the page is %s wide", name, view.name, saw)
		}
		if dir := os.Getenv("FULLPIPE_SHOTS"); dir != "" {
			shot, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
			if err != nil {
				p.t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+view.name+".png"), shot, 0o644); err != nil {
				p.t.Fatal(err)
			}
		}
	}
}

// silentConsole checks that no page had a refused request or an exception.
func (p *shownPage) silentConsole() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.problems) > 0 {
		p.t.Errorf("%s", strings.Join(p.problems, "\n"))
	}
}

// TestSpeedTestInUI goes from the page of `ui` to its speed test and from its result to the record in
// the history.
func TestSpeedTestInUI(t *testing.T) {
	t.Parallel()
	ui := startUI(t)
	p := newShownPage(t)
	p.open(ui.open)
	p.until(`document.querySelector('nav a[href$="/test"]') != null`)
	test := ui.address + p.ask(`document.querySelector('nav a[href$="/test"]').getAttribute('href')`)
	p.open(test)
	p.until(`!document.getElementById('start').hidden`)
	p.look("test")
	p.open(test + "?start&only=download&many=0&ms=500")
	p.until(`document.querySelector('section[data-goodput]') != null`)
	p.look("tested")
	if saw := p.ask(`document.querySelector('h1').innerText + document.querySelector('.finding').innerText`); !strings.Contains(saw,
		"bit/s") || !strings.Contains(saw, "Your download of ") {
		t.Errorf("the result says %q", saw)
	}
	if saw := p.ask(`String(document.querySelectorAll('svg.chart').length)`); saw != "2" {
		t.Errorf("%s charts, not those of goodput and round trip", saw)
	}
	p.open(ui.address + p.ask(`document.querySelector('a[href*="/runs/"]').getAttribute('href')`))
	if saw := p.ask(`document.querySelector('.facts').innerText`); !strings.Contains(saw, "browser://127.0.0.1") {
		t.Errorf("the record says %q", saw)
	}
	p.silentConsole()
}

// TestSpeedTestSaysWhyNot uses up the daily quota of the browser's address: the page reports it, before a test and in
// the middle of one.
func TestSpeedTestSaysWhyNot(t *testing.T) {
	t.Parallel()
	s := startSpeed(t, "--web-bytes", "64KiB")
	p := newShownPage(t)
	const why = "your address has moved the 64 KiB that it may in a day: again in 24 hours"
	said := fmt.Sprintf(`document.getElementById('state').textContent == %q`, "The test failed: "+why)
	p.open(s.address + "/test?start&only=download&many=2&ms=500") // the first connection uses all, several follow
	p.until(said)
	p.open(s.address + "/test?start")
	p.until(said)
	p.look("refused")
}

// TestSpeedTestOverTLS serves the page by https: a browser tests over wss, and our own ndt7 client
// by the certificate.
func TestSpeedTestOverTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	harness.WriteCertificate(t, dir, net.IPv4(127, 0, 0, 1))
	cert := filepath.Join(dir, "cert.pem")
	s := startSpeed(t, "--web-cert", cert, "--web-key", filepath.Join(dir, "key.pem"))
	if !strings.HasPrefix(s.address, "https://") {
		t.Fatal(s.address)
	}
	args := harness.ChromiumCommand(t, s.address+"/test?start&only=download&many=0&ms=500")
	args = append(args, "--ignore-certificate-errors")
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() }()
	select {
	case result := <-s.results:
		if len(result.Directions) != 1 || result.Directions[0].GoodputBps < 1e6 {
			t.Errorf("%+v", result)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the browser came to no result")
	}
	peer := "ndt7://" + strings.TrimPrefix(s.address, "https://")
	for _, direction := range []string{"up", "down"} {
		measure := exec.CommandContext(t.Context(), harness.Program(t), "measure", peer, "-d", direction, "-t", "500ms",
			"--json", "--no-history")
		measure.Env = append(s.env, "SSL_CERT_FILE="+cert)
		out, err := measure.Output()
		var doc struct {
			Directions []harness.MeasuredTransfer
		}
		if jerr := json.Unmarshal(out, &doc); err != nil || jerr != nil || len(doc.Directions) != 1 ||
			doc.Directions[0].GoodputBps < 1e6 || strings.Contains(string(out), "no TLS") {
			t.Errorf("%s: %v, %v: %s", direction, err, jerr, out)
		}
	}
	stranger := exec.CommandContext(t.Context(), harness.Program(t), "measure", peer, "-t", "500ms")
	stranger.Env = append(s.env, "SSL_CERT_FILE=/dev/null", "SSL_CERT_DIR="+t.TempDir())
	if out, err := stranger.CombinedOutput(); err == nil || !strings.Contains(string(out), "SSL_CERT_FILE") {
		t.Errorf("by an unknown certificate: %v: %s", err, out)
	}
}
