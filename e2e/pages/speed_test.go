//go:build linux

package pages

import (
	"bytes"
	"context"
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
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// servedSpeed is a `fullpipe serve --web` that runs on loopback, with a history of its own.
type servedSpeed struct {
	address string // without a slash at its end
	env     []string
	results chan harness.BrowserResult
}

func startSpeed(t *testing.T, args ...string) *servedSpeed {
	t.Helper()
	s := &servedSpeed{env: append(os.Environ(), "FULLPIPE_HISTORY="+t.TempDir(), "FULLPIPE_CONFIG="),
		results: make(chan harness.BrowserResult, 16)}
	cmd := exec.Command(harness.Program(t), append([]string{"serve", "--listen", "127.0.0.1:0", "--web", "127.0.0.1:0",
		"--json"}, args...)...)
	cmd.Env = s.env
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	harness.StartCommand(t, cmd)
	ready := make(chan string, 1)
	go harness.ReadWebEvents(out, func(one harness.BrowserResult) {
		if one.Event == "web" {
			ready <- strings.TrimSuffix(one.Web, "/test")
		} else {
			s.results <- one
		}
	})
	select {
	case s.address = <-ready:
	case <-time.After(20 * time.Second):
		t.Fatal("serve --web does not begin")
	}
	return s
}

// TestSpeedTestInABrowser has a real browser go through the page, both ways and with several
// connections: the result has a link and is in the history.
func TestSpeedTestInABrowser(t *testing.T) {
	t.Parallel()
	s := startSpeed(t)
	args := harness.ChromiumCommand(t, s.address+"/?start")
	args[len(args)-1] = s.address + "/test?start&ms=1000&many=3"
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() }()
	var result harness.BrowserResult
	select {
	case result = <-s.results:
	case <-ctx.Done():
		t.Fatal("the browser came to no result")
	}
	ways := ""
	for _, d := range result.Directions {
		ways += fmt.Sprint(d.Direction, d.Streams, " ")
		if d.GoodputBps < 1e6 || d.Limiter == "" {
			t.Errorf("%+v", d)
		}
	}
	if ways != "up1 up3 down1 down3 " {
		t.Errorf("measured were %s", ways)
	}
	r, err := http.Get(s.address + result.Page)
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || r.StatusCode != http.StatusOK || !bytes.Contains(page, []byte("Your download of")) {
		t.Errorf("%s: %s %s", result.Page, r.Status, page)
	}
	list := exec.Command(harness.Program(t), "history", "show", filepath.Base(result.Page), "--json")
	list.Env = s.env
	doc, err := list.Output()
	if err != nil || !bytes.Contains(doc, []byte(`browser://127.0.0.1`)) {
		t.Errorf("history: %v %s", err, doc)
	}
}

// TestNDT7ClientOfOthers has M-Lab's own client test with our server, in Node and in a browser.
func TestNDT7ClientOfOthers(t *testing.T) {
	npm, node := testenv.Program(t, testenv.NPM), testenv.Program(t, testenv.Node)
	dir := t.TempDir()
	install := exec.Command(npm, "install", "--silent", "--no-audit", "--no-fund", "@m-lab/ndt7@0.1.4")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	client := filepath.Join(dir, "node_modules", "@m-lab", "ndt7", "src")
	t.Run("Node", func(t *testing.T) {
		t.Parallel()
		s := startSpeed(t)
		script := filepath.Join(dir, "client.js")
		if err := os.WriteFile(script, []byte(nodeClient), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), node, "--experimental-websocket", script, client,
			strings.TrimPrefix(s.address, "http://"))
		var problems bytes.Buffer
		cmd.Stderr = &problems
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s%s", err, out, problems.String())
		}
		ndt7Agrees(t, out)
	})
	t.Run("browser", func(t *testing.T) {
		t.Parallel()
		came := make(chan []byte, 1)
		var origin string
		mux := http.NewServeMux()
		mux.Handle("GET /", http.FileServer(http.Dir(client)))
		mux.HandleFunc("GET /page", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, browserClient, r.URL.Query().Get("server"))
		})
		mux.HandleFunc("POST /result", func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body) // the check below sees missing text
			came <- body
		})
		site := httptest.NewServer(mux)
		defer site.Close()
		at, err := url.Parse(site.URL)
		if err != nil {
			t.Fatal(err)
		}
		origin = at.Host
		s := startSpeed(t, "--web-origin", origin)
		args := harness.ChromiumCommand(t, site.URL+"/page?server="+strings.TrimPrefix(s.address, "http://"))
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = cmd.Wait() }()
		select {
		case out := <-came:
			ndt7Agrees(t, out)
		case <-time.After(3 * time.Minute):
			t.Fatal("the browser came to no result")
		}
	})
}

// ndt7Agrees reads the client's last measurements of a download and an upload: both ends' counts
// are there and do not contradict each other.
func ndt7Agrees(t *testing.T, out []byte) {
	t.Helper()
	var said map[string]struct {
		Code   int
		Error  string
		Client struct{ NumBytes, ElapsedTime float64 }
		Server struct {
			AppInfo struct{ NumBytes, ElapsedTime float64 }
			TCPInfo struct{ BytesAcked, BytesReceived, MinRTT, RTT float64 }
		}
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for name, one := range said {
		kernel := one.Server.TCPInfo.BytesAcked
		if name == "upload" {
			kernel = one.Server.TCPInfo.BytesReceived
		}
		if one.Code != 0 || one.Error != "" || one.Client.NumBytes < 1e6 || one.Server.AppInfo.NumBytes < 1e6 ||
			kernel < 0.8*one.Server.AppInfo.NumBytes || one.Server.TCPInfo.RTT <= 0 || one.Server.AppInfo.ElapsedTime < 8e6 {
			t.Errorf("%s: %+v", name, one)
		}
		t.Logf("%s: client %.0f Mbit/s, server %.0f Mbit/s", name, one.Client.NumBytes*8/1e6/one.Client.ElapsedTime,
			one.Server.AppInfo.NumBytes*8/one.Server.AppInfo.ElapsedTime)
	}
	if len(said) != 2 {
		t.Errorf("%s", out)
	}
}

// ndt7Run runs the client's two tests one after the other; both programs below use it.
const ndt7Run = `
async function both(ndt7, config) {
	const said = {};
	for (const name of ['download', 'upload']) {
		const one = said[name] = {Error: ''};
		one.Code = await ndt7[name + 'Test'](config, {error: e => { one.Error = String(e); },
			[name + 'Complete']: e => { one.Client = e.LastClientMeasurement; one.Server = e.LastServerMeasurement; },
		}, ndt7.discoverServerURLs(config, {}));
	}
	return said;
}
`

// nodeClient gives Node the Worker that browsers have.
const nodeClient = ndt7Run + `
const fs = require('node:fs'), path = require('node:path'), threads = require('node:worker_threads');
const [dir, server] = process.argv.slice(2);
global.Worker = class {
	constructor(file) {
		const code = 'const {parentPort} = require("node:worker_threads"); global.self = globalThis;' +
			'globalThis.postMessage = m => parentPort.postMessage(m);' +
			'parentPort.on("message", data => self.onmessage({data}));' +
			fs.readFileSync(path.join(dir, file), 'utf8');
		this.thread = new threads.Worker(code, {eval: true, execArgv: ['--experimental-websocket']});
		this.thread.on('message', data => this.onmessage({data}));
		this.thread.on('error', e => this.onmessage({data: {MsgType: 'error', Error: String(e)}}));
	}
	postMessage(m) { this.thread.postMessage(m); }
	terminate() { this.thread.terminate(); }
};
both(require(path.join(dir, 'ndt7.js')), {server, protocol: 'ws', mlabDataPolicyInapplicable: true})
	.then(said => { process.stdout.write(JSON.stringify(said), () => process.exit(0)); });
`

const browserClient = `<!doctype html><script src="/ndt7.js"></script><script>` + ndt7Run + `
both(ndt7, {server: %q, protocol: 'ws', mlabDataPolicyInapplicable: true}).then(said =>
	fetch('/result', {method: 'POST', body: JSON.stringify(said)}));
</script>`
