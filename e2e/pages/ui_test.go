//go:build linux

package pages

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// servedUI is a `fullpipe ui` that runs, with a history of its own.
type servedUI struct {
	address, open string // the page, and it with the token
	cmd           *exec.Cmd
}

// nobody is another user of this host.
const nobody = 65534

// startUI serves a history of one result.
func startUI(t *testing.T, args ...string) *servedUI {
	t.Helper()
	program := harness.Program(t)
	dir := t.TempDir()
	env := append(os.Environ(), "FULLPIPE_HISTORY="+dir, "FULLPIPE_CONFIG=")
	imported := exec.Command(program, "history", "import", "-")
	imported.Stdin, imported.Env = strings.NewReader(iperf3Result), env
	if out, err := imported.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return runUI(t, program, env, args...)
}

// runUI serves the history that the environment names.
func runUI(t *testing.T, program string, env []string, args ...string) *servedUI {
	t.Helper()
	ui := &servedUI{cmd: exec.Command(program, append([]string{"ui", "--no-open", "--json"}, args...)...)}
	ui.cmd.Env = env
	ui.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its tests are of its group
	output, err := ui.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	harness.StartCommand(t, ui.cmd)
	var doc struct{ Address, URL string }
	if err := json.NewDecoder(output).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	ui.address, ui.open = strings.TrimSuffix(doc.Address, "/"), doc.URL
	return ui
}

// iperf3Result is the smallest document that import accepts as one of iperf3.
const iperf3Result = `{"start": {"version": "iperf 3.12", "timestamp": {"timesecs": 1763000000},
"connecting_to": {"host": "<img src=x onerror=hurt()>", "port": 5201},
"test_start": {"protocol": "TCP", "num_streams": 1, "duration": 1, "reverse": 0}}, "intervals": [],
"end": {"streams": [], "sum_sent": {"start": 0, "end": 1, "seconds": 1,
"bytes": 12500000, "bits_per_second": 1e8, "retransmits": 0, "sender": true},
"sum_received": {"start": 0, "end": 1, "seconds": 1, "bytes": 12500000, "bits_per_second": 1e8, "sender": true}}}`

// TestUIAnotherUser has another user of this host try to read the history: the page, the file and the arguments of
// programs reveal nothing.
func TestUIAnotherUser(t *testing.T) {
	testenv.Need(t, testenv.Root) // to become another user
	t.Parallel()
	ui := startUI(t)
	token := ui.open[strings.Index(ui.open, "=")+1:]
	asNobody := func(command ...string) string {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		cmd.Dir = "/"
		out, _ := cmd.CombinedOutput() // only the output counts
		return string(out)
	}
	for _, path := range []string{"/", "/api/v1/paths", "/api/v1/live", "/open", "/open?token=guessed", "/s/guessed/"} {
		if out := asNobody("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", ui.address+path); out != "401" {
			t.Errorf("%s: %s", path, out)
		}
	}
	if out := asNobody("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"); strings.Contains(out, token) {
		t.Error("every user can read the token")
	}
	for _, one := range ui.cmd.Env {
		if dir, is := strings.CutPrefix(one, "FULLPIPE_HISTORY="); is {
			if out := asNobody("cat", filepath.Join(dir, "history.db")); strings.Contains(out, "SQLite") {
				t.Error("the history's file can be read")
			}
		}
	}
}

// TestUIOpensABrowserSecretly starts it as a user with a desktop: the browser is given a file that no other user can
// read, and the file's name reveals nothing.
func TestUIOpensABrowserSecretly(t *testing.T) {
	testenv.Need(t, testenv.Root) // to become a user with a desktop
	t.Parallel()
	program := harness.Program(t)
	dir, err := os.MkdirTemp("", "fullpipe-ui-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o666); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\n"+
		`{ stat -c '%%a %%U' "$1" "$(dirname "$1")"; echo "$@"; cat "$1"; } > %s`+"\n", pipe)
	copied := filepath.Join(dir, "fullpipe")
	binary, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"xdg-open": []byte(script), "fullpipe": binary} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir, pipe} {
		if err := os.Chown(path, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(copied, "ui", "--json")
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "DISPLAY=:9", "HOME=" + dir,
		"FULLPIPE_HISTORY=" + dir, "FULLPIPE_CONFIG="}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	harness.StartCommand(t, cmd)
	var doc struct{ URL string }
	if err := json.NewDecoder(out).Decode(&doc); err != nil {
		t.Fatal(err)
	}
	saw, err := os.ReadFile(pipe) // once the desktop's program has written it
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitN(string(saw), "\n", 4)
	token := doc.URL[strings.Index(doc.URL, "=")+1:]
	if len(lines) < 4 || lines[0] != "600 nobody" || lines[1] != "700 nobody" || strings.Contains(lines[2], token) ||
		!strings.Contains(lines[3], token) {
		t.Errorf("%s", saw)
	}
	file := lines[2]
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the file stays")
	}
}

// TestUIInABrowser opens the page as its user does, in a real browser. The browser then visits hostile pages: under a
// name that leads here, on another site, and on another port of this host.
func TestUIInABrowser(t *testing.T) {
	t.Parallel()
	ui := startUI(t)
	at, err := url.Parse(ui.address)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards cookies
	var cookies []string
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		cookies = append(cookies, r.Header.Get("Cookie"))
		w.Header().Set("Content-Type", "text/html")
		io.WriteString(w, "<!doctype html><title>attacker</title><body>hello")
	}))
	defer attacker.Close()
	elsewhere, err := url.Parse(attacker.URL)
	if err != nil {
		t.Fatal(err)
	}
	ctx := harness.StartBrowser(t, func(any) {}, chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"))
	read := func(address, script string) string {
		t.Helper()
		if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil && !strings.Contains(err.Error(), "ERR_") {
			t.Fatal(err)
		}
		saw, err := chromedp.Run(ctx, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
		if err != nil {
			t.Fatal(err)
		}
		return saw
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(ui.open), chromedp.WaitVisible(chromedp.CSS("nav"))); err != nil {
		t.Fatal(err)
	}
	saw, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.pathname + ' ' + document.querySelectorAll(
		'img, [onerror]').length + ' ' + document.body.innerText.includes('onerror=hurt()')`))
	if err != nil {
		t.Fatal(err)
	}
	session, rest, _ := strings.Cut(saw, " ")
	if !strings.HasPrefix(session, "/s/") || rest != "0 true" {
		t.Fatalf("opened: %q", saw)
	}
	page := ui.address + session
	text := `document.body.innerText.includes('hurt()') ? 'history' : 'nothing'`
	if saw := read(page, text); saw != "history" {
		t.Errorf("opened again: %s", saw)
	}
	run := ui.address + read(page, `document.querySelector('a[href*="/runs/"]').getAttribute('href')`)
	if saw := read("http://rebound.test:"+at.Port()+session, text); saw != "nothing" {
		t.Errorf("by a name that leads here: %s", saw)
	}
	for name, host := range map[string]string{"another site": "http://attacker.test:" + elsewhere.Port(),
		"another port": "http://127.0.0.1:" + elsewhere.Port()} {
		script := fmt.Sprintf(`(async () => {
			const all = [];
			for (const mode of ['cors', 'no-cors']) for (const credentials of ['include', 'omit'])
				all.push(await fetch(%[1]q + 'api/v1/paths', {mode, credentials}).then(a => a.text()).catch(() => ''));
			const frame = document.createElement('iframe');
			const loaded = new Promise(done => { frame.onload = done; setTimeout(done, 2000); });
			frame.src = %[1]q;
			document.body.append(frame);
			await loaded;
			try { all.push(frame.contentDocument?.body?.innerText ?? ''); } catch { }
			await fetch(%[2]q, {method: 'POST', mode: 'no-cors', credentials: 'include',
				body: new URLSearchParams({name: 'forged', value: 'b'})}).catch(() => '');
			return all.join('').includes('hurt') ? 'history' : 'nothing';
		})()`, page, run+"/label")
		if saw := read(host+"/", script); saw != "nothing" {
			t.Errorf("%s reads %s", name, saw)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(cookies) < 2 || strings.Join(cookies, "") != "" {
		t.Errorf("another port was sent the cookies %q", cookies)
	}
	if saw := read(run, `String(document.body.innerText.includes('forged')) +
		document.querySelectorAll('h1').length`); saw != "false1" {
		t.Errorf("afterwards: %s", saw)
	}
}
