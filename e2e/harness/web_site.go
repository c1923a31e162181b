//go:build linux

package harness

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// MeasureDoc is the part of `measure --json` that tests of far ends read.
type MeasureDoc struct {
	Directions []struct {
		GoodputBps float64 `json:"goodput_bps"`
		Bytes      int64
		Limiter    string
		Confidence string
		Candidates []string
		Warnings   []string
		Shares     map[string]float64
	}
	Error struct{ Message, Try string }
}

// RunJSON runs a fullpipe command at an end of a lab and decodes its JSON output into doc.
func RunJSON(t *testing.T, e *lab.End, doc any, env []string, args ...string) {
	t.Helper()
	program := Program(t)
	var out, problems bytes.Buffer
	if _, err := e.Run(lab.Command{Args: append([]string{program}, args...), Env: env, Stdout: &out,
		Stderr: &problems}); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), doc); err != nil {
		t.Fatalf("%v: %v: %s%s", args, err, out.String(), problems.String())
	}
}

// StartWebSite starts a lab with nginx at its far end: HTTP on port 80, HTTP with a send buffer of
// 16 KiB on 81, HTTP/2 over TLS on 443, HTTP/1.1 over TLS on 444. env makes clients trust it.
func StartWebSite(t *testing.T, path string) (l *lab.Lab, env []string) {
	t.Helper()
	nginx := testenv.Program(t, testenv.Nginx)
	l, _ = StartLab(t, path)
	dir := t.TempDir()
	WriteCertificate(t, dir, net.ParseIP(lab.FarAddr.String()))
	os.Chmod(dir, 0o755)
	file, err := os.Create(filepath.Join(dir, "object"))
	if err != nil {
		t.Fatal(err)
	}
	file.Truncate(64 << 20)
	file.Close()
	tls := fmt.Sprintf("ssl_certificate %[1]s/cert.pem; ssl_certificate_key %[1]s/key.pem; root %[1]s;", dir)
	config := fmt.Sprintf(`user root; daemon off; pid %[1]s/pid; error_log stderr; worker_processes 1; events {}
http { access_log off; client_body_temp_path %[1]s/1; proxy_temp_path %[1]s/2; fastcgi_temp_path %[1]s/3; uwsgi_temp_path %[1]s/4; scgi_temp_path %[1]s/5;
server { listen 80; root %[1]s; location /moved { return 302 /object; } }
server { listen 81 sndbuf=16k; root %[1]s; }
server { listen 443 ssl http2; %[2]s }
server { listen 444 ssl; %[2]s } }`, dir, tls)
	if err := os.WriteFile(filepath.Join(dir, "nginx.conf"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := l.Far.Start(lab.Command{Args: []string{nginx, "-e", "stderr", "-p", dir, "-c",
		filepath.Join(dir, "nginx.conf")}, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	l.Far.AwaitListener(t.Context(), server)
	return l, []string{"SSL_CERT_FILE=" + filepath.Join(dir, "cert.pem")}
}
