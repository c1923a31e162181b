package cli

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestServe_DistinguishesKeys runs a server with keys by name, and changes them under it.
func TestServe_DistinguishesKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.toml")
	run := func(args ...string) (status int, out, errs string) {
		t.Helper()
		cmd := program(t, args...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		status, _ = ended(t, cmd)
		return status, strings.TrimSpace(stdout.String()), stderr.String()
	}
	made := func(args ...string) string {
		t.Helper()
		status, key, errs := run(append([]string{"key"}, append(args, "--keys", file)...)...)
		if status != 0 || len(key) != 64 {
			t.Fatalf("key %v: %d, %q, %s", args, status, key, errs)
		}
		return key
	}
	office := made("new", "office", "--max-time", "1")
	elsewhere := made("new", "elsewhere", "--from", "192.0.2.0/24")
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if status, _, errs := run("key", "new", "office", "--keys", file); status != exit.Misused ||
		!strings.Contains(errs, "there is a key called office") {
		t.Errorf("a second office: %d, %s", status, errs)
	}
	if _, out, _ := run("key", "show", "--keys", file, "--json"); strings.Contains(out, office) ||
		!strings.Contains(out, `"max_time_s": 1`) || !strings.Contains(out, `"schema": "fullpipe/keys/v1"`) {
		t.Errorf("show --json: %s", out)
	}
	if _, out, _ := run("key", "show", "--keys", file); strings.Contains(out, office) ||
		!strings.Contains(out, "from 192.0.2.0/24") || !strings.Contains(out, "max-time 1s") {
		t.Errorf("show: %s", out)
	}

	serve := program(t, "serve", "--keys", file, "--listen", "127.0.0.1:0")
	stdout := must.Get(serve.StdoutPipe())(t)
	var log bytes.Buffer
	serve.Stderr = &log
	must.Do(t, serve.Start())
	defer func() {
		serve.Process.Kill()
		serve.Wait()
	}()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, log.String())
	}
	address := strings.TrimPrefix(strings.TrimSpace(line), "fullpipe listens on ")
	measure := func(key string, args ...string) (int, string) {
		t.Helper()
		status, _, errs := run(append([]string{"measure", address, "--key", key, "--no-history", "-q"}, args...)...)
		return status, errs
	}
	if status, errs := measure(office, "-t", "200ms"); status != 0 {
		t.Errorf("office: %d, %s", status, errs)
	}
	if status, errs := measure(office, "-t", "2s"); status == 0 || !strings.Contains(errs, "1s") {
		t.Errorf("office beyond its bound: %d, %s", status, errs)
	}
	if status, errs := measure(office, "-u", "-t", "200ms"); status == 0 || !strings.Contains(errs, "limits") {
		t.Errorf("office by UDP, which has no limits: %d, %s", status, errs)
	}
	if status, errs := measure(elsewhere, "-t", "200ms"); status == 0 || !strings.Contains(errs, "key") {
		t.Errorf("a key of another network: %d, %s", status, errs)
	}

	// The file changes, without a notice to the server.
	renewed := made("rotate", "office", "--overlap", "1h")
	for _, key := range []string{renewed, office} {
		if status, errs := measure(key, "-t", "200ms"); status != 0 {
			t.Errorf("during the overlap: %d, %s", status, errs)
		}
	}
	text := must.Get(os.ReadFile(file))(t)
	_, rest, _ := strings.Cut(string(text), "until = ")
	until, _, _ := strings.Cut(rest, "\n")
	past := strings.Replace(string(text), until,
		time.Now().Add(-time.Minute).UTC().Format("2006-01-02T15:04:05Z")+" # over", 1)
	must.Do(t, os.WriteFile(file, []byte(past), 0o600))
	if status, errs := measure(office, "-t", "200ms"); status == 0 || !strings.Contains(errs, "key") {
		t.Errorf("after the overlap: %d, %s", status, errs)
	}
	if status, errs := measure(renewed, "-t", "200ms"); status != 0 {
		t.Errorf("the new one after the overlap: %d, %s", status, errs)
	}
}
