//go:build linux

package pages

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	bigs "math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// visitor requests pages and documents of a ui.
type visitor struct {
	t      *testing.T
	client *http.Client
	base   string
	token  string // "" brings none
}

func (v *visitor) ask(method, path string) (status int, body string) {
	v.t.Helper()
	r, err := http.NewRequest(method, v.base+path, nil)
	if err != nil {
		v.t.Fatal(err)
	}
	if v.token != "" {
		r.Header.Set("Authorization", "Bearer "+v.token)
	}
	answer, err := v.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// document requests a JSON document.
func (v *visitor) document(path string, doc any) {
	v.t.Helper()
	status, body := v.ask("GET", path)
	if err := json.Unmarshal([]byte(body), doc); err != nil || status != http.StatusOK {
		v.t.Fatalf("%s: %d, %v: %.300s", path, status, err, body)
	}
}

// opened returns a visitor that opens the page at the address that ui printed.
func (ui *servedUI) opened(t *testing.T) *visitor {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v := &visitor{t: t, client: &http.Client{Jar: jar}, base: ui.open}
	status, page := v.ask("GET", "")
	_, at, found := strings.Cut(page, "url=")
	at, _, _ = strings.Cut(at, `"`)
	if status != http.StatusOK || !found {
		t.Fatalf("%d: %s", status, page)
	}
	v.base = ui.address + strings.TrimSuffix(at, "/")
	return v
}

// TestUITestsAPathAgain checks that a path is tested from its page by the command of its series, with the key that
// the configuration has for it, and that the result joins that series. One test runs at a time and can be stopped. A
// path that somebody else measured is not tested.
func TestUITestsAPathAgain(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	far, key := harness.StartServe(t, program)
	dir := t.TempDir()
	config, keyFile := filepath.Join(dir, "config.toml"), filepath.Join(dir, "far.key")
	// A fast loopback moves more at once than a day's budget.
	const settings = "[far.office]\npeer = \"fullpipe://%s\"\nkey-file = \"far.key\"\n[defaults]\ntime = \"300ms\"\n" +
		"[defaults.recheck]\nday-bytes = \"0\"\n"
	for name, text := range map[string]string{keyFile: key + "\n", config: fmt.Sprintf(settings, far)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "FULLPIPE_HISTORY="+dir, "FULLPIPE_CONFIG="+config, "FULLPIPE_KEY=")
	for _, line := range []string{"measure office --quiet", "recheck office", "measure office --parallel 2 --quiet",
		"history import -"} {
		cmd := exec.Command(program, strings.Fields(line)...)
		cmd.Env, cmd.Stdin = env, strings.NewReader(iperf3Result)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", line, err, out)
		}
	}
	ui := runUI(t, program, env)
	v := ui.opened(t)
	var paths printed.Paths
	v.document("/api/v1/paths", &paths)
	if len(paths.Paths) != 4 {
		t.Fatalf("%+v", paths.Paths)
	}
	tested := map[int]int{}
	for _, p := range paths.Paths {
		status, body := v.ask("POST", "/api/v1/paths/"+p.PathKey+"/retest")
		tested[status]++
		if _, page := v.ask("GET", "/paths/"+p.PathKey); status == http.StatusNotImplemented {
			if !strings.Contains(page, "with other options") || strings.Contains(page, "test again now") {
				t.Errorf("%s is offered: %s", p.Far, body)
			}
			continue
		} else if !strings.Contains(page, "stop it") {
			t.Errorf("%s: %d, %s", p.Far, status, page)
		}
		if again, body := v.ask("POST", "/api/v1/paths/"+p.PathKey+"/retest"); again != http.StatusConflict {
			t.Errorf("a second one at once: %d: %s", again, body)
		}
		answer, err := v.client.Get(v.base + "/api/v1/retest")
		if err != nil {
			t.Fatal(err)
		}
		var last printed.PageTest
		intervals := 0
		for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
			if text, is := strings.CutPrefix(lines.Text(), "data: "); is {
				last = printed.PageTest{}
				if err := json.Unmarshal([]byte(text), &last); err != nil {
					t.Fatal(err)
				}
				if last.GoodputBps != nil {
					intervals++
				}
			}
		}
		answer.Body.Close()
		if last.State != printed.TestIsDone || last.PathKey != p.PathKey || last.Results != 1 || intervals == 0 {
			t.Errorf("%d intervals, %+v, %+v; began: %s", intervals, last, last.Error, body)
		}
		var runs printed.History
		v.document("/api/v1/paths/"+p.PathKey+"/runs", &runs)
		if len(runs.Runs) != 2 || runs.Runs[1].Outcome != printed.Done || runs.Runs[1].Origin != runs.Runs[0].Origin {
			t.Errorf("%+v", runs.Runs)
		}
	}
	if tested[http.StatusOK] != 2 || tested[http.StatusNotImplemented] != 2 {
		t.Errorf("tested: %v", tested)
	}
	importedPathsAreNotTested(t, program, env, dir)
}

// importedPathsAreNotTested exports the history in a directory, imports it into an empty one with this host's own
// identifier, and asks for tests of its paths.
func importedPathsAreNotTested(t *testing.T, program string, env []string, from string) {
	t.Helper()
	export := exec.Command(program, "history", "export")
	export.Env = env
	exported, err := export.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	id, err := os.ReadFile(filepath.Join(from, "host_id"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "host_id"), id, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	env = append(slices.Clone(env), "FULLPIPE_HISTORY="+dir)
	load := exec.Command(program, "history", "import", "-")
	load.Env, load.Stdin = env, bytes.NewReader(exported)
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	v := runUI(t, program, env).opened(t)
	var paths printed.Paths
	v.document("/api/v1/paths", &paths)
	refused := 0
	for _, p := range paths.Paths {
		if status, body := v.ask("POST", "/api/v1/paths/"+p.PathKey+"/retest"); status != http.StatusNotImplemented {
			t.Errorf("%s: %d: %s", p.Far, status, body)
		} else if strings.Contains(body, "measured on this host") {
			refused++
		}
	}
	if len(paths.Paths) != 4 || refused != 2 {
		t.Errorf("%d of %d imported paths would be tested but for who measured them", refused, len(paths.Paths))
	}
}

// certificateOf creates a certificate for a name. It returns the certificate's files and the pool that trusts it.
func certificateOf(t *testing.T, dir, name string) (cert, key string, trusts *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: bigs.NewInt(1), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for file, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusts = x509.NewCertPool()
	trusts.AddCert(parsed)
	return cert, key, trusts
}

// TestUIForOthers checks access over TLS, by the certificate's name alone, with a token: a viewer looks, an operator
// labels.
func TestUIForOthers(t *testing.T) {
	t.Parallel()
	const name = "history.example.net"
	dir := t.TempDir()
	cert, key, trusts := certificateOf(t, dir, name)
	const viewer, operator = "a-viewers-token-0123", "an-operators-token-0123"
	files := map[string]string{}
	for role, token := range map[string]string{"viewer": viewer, "operator": operator} {
		files[role] = filepath.Join(dir, role)
		if err := os.WriteFile(files[role], []byte(token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ui := startUI(t, "--listen", "127.0.0.1:0", "--listen-cert", cert, "--listen-key", key,
		"--listen-token-file", files["viewer"], "--listen-operator-token-file", files["operator"])
	at, err := url.Parse(ui.address)
	if err != nil || at.Scheme != "https" {
		t.Fatalf("%s, %v", ui.address, err)
	}
	// as requests the server under any name, and trusts its certificate if it may.
	as := func(host, token string, roots *x509.CertPool) *visitor {
		dialer := &net.Dialer{}
		transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, at.Host)
		}, TLSClientConfig: &tls.Config{RootCAs: roots}}
		t.Cleanup(transport.CloseIdleConnections)
		return &visitor{t: t, client: &http.Client{Transport: transport}, base: "https://" + host + ":" + at.Port(),
			token: token}
	}
	var paths printed.Paths
	as(name, viewer, trusts).document("/api/v1/paths", &paths)
	var runs printed.History
	as(name, viewer, trusts).document("/api/v1/paths/"+paths.Paths[0].PathKey+"/runs", &runs)
	label := "/api/v1/runs/" + runs.Runs[0].ID + "/labels/site?value=Bern"
	retest := "/api/v1/paths/" + paths.Paths[0].PathKey + "/retest"
	for _, c := range []struct {
		name         string
		as           *visitor
		method, path string
		status       int
		says         string
	}{
		{"no token", as(name, "", trusts), "GET", "/api/v1/paths", 401, "a token is needed"},
		{"no token, the page", as(name, "", trusts), "GET", "/", 401, ""},
		{"a wrong token", as(name, "a-viewers-token-0124", trusts), "GET", "/api/v1/paths", 401, "unknown token"},
		{"a viewer looks", as(name, viewer, trusts), "GET", "/", 200, "hurt()"},
		{"a viewer follows", as(name, viewer, trusts), "GET", "/api/v1/retest", 200, `"state":"none"`},
		{"a viewer labels", as(name, viewer, trusts), "PUT", label, 403, "operator"},
		{"a viewer tests", as(name, viewer, trusts), "POST", retest, 403, "operator"},
		{"a viewer stops", as(name, viewer, trusts), "DELETE", "/api/v1/retest", 403, "operator"},
		{"an operator labels", as(name, operator, trusts), "PUT", label, 200, ""},
		{"an operator tests what others measured", as(name, operator, trusts), "POST", retest, 501, "other options"},
		{"an operator stops nothing", as(name, operator, trusts), "DELETE", "/api/v1/retest", 200, `"none"`},
		{"a name that the certificate does not have", as("other.example.net", operator, trusts), "GET", "/", 0,
			"certificate is valid for " + name},
		{"a certificate that nobody vouches for", as(name, operator, nil), "GET", "/", 0, "unknown authority"},
	} {
		if status, body := c.as.ask(c.method, c.path); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s: %d, %.300s", c.name, status, body)
		}
	}
	// A browser that was led here by another name reports it in Host, even if the handshake had the right one.
	v := as(name, operator, trusts)
	r, err := http.NewRequest("GET", v.base+"/api/v1/paths", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "attacker.example"
	r.Header.Set("Authorization", "Bearer "+operator)
	answer, err := v.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("by another name: %s", answer.Status)
	}
	if answer, err := http.Get("http://" + at.Host + "/"); err == nil {
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("unencrypted: %s", answer.Status)
		}
	}
}
